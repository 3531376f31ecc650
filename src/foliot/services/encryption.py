"""Switching the encryption of a tenant's payloads on and off, and giving it new keys."""

from foliot.domain.access import Authority
from foliot.domain.errors import NotFound
from foliot.domain.ids import encode
from foliot.store import keyring, tenants
from foliot.store.audit import note
from foliot.store.database import Connection, Database
from foliot.store.keyring import HowSealed
from foliot.store.resealing import reseal_secrets
from foliot.store.vault import Vault, needed
from foliot.wire.secrets import EncryptionView


class Encryption:
    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault

    async def read(self, authority: Authority, tenant: str | None = None) -> EncryptionView:
        """Of one's own tenant or, for an operator, of any."""
        number, name = await self._tenant(authority, tenant)
        return await self._view(number, name)

    async def switch(self, authority: Authority, tenant: str | None, *, enabled: bool) -> EncryptionView:
        """From now on, within two seconds, what the tenant writes is sealed, or is not.

        Switched on, what it has stored is sealed too, in the background. Switched off, what is sealed stays so.
        """
        number, name = await self._tenant(authority, tenant)
        operation = None
        async with self._database.transaction() as connection:
            held = await keyring.hold_tenant(connection, number)
            if enabled is not (held.sealed_with is not None):
                version = await self._some_key(connection, number) if enabled else None
                await keyring.put_to_use(connection, number, version)
                if version is not None:
                    operation = await keyring.begin_reseal(connection, number, version)
                was, is_now = {"keyVersion": held.sealed_with}, {"keyVersion": version}
                await note(connection, f"encryption {name}", was, is_now, tenant=number)
        self._vault.forget()
        return await self._view(number, name, operation)

    async def rotate(self, authority: Authority, tenant: str | None = None) -> EncryptionView:
        """Give the tenant a new data key. Its secrets are sealed with it at once, what it has stored in the background.

        Former keys stay, and open what they sealed.
        """
        number, name = await self._tenant(authority, tenant)
        operation, master = None, needed(self._vault.master)
        async with self._database.transaction() as connection:
            held = await keyring.hold_tenant(connection, number)
            version = await keyring.add_key(connection, master, number)
            if held.sealed_with is not None:
                await keyring.put_to_use(connection, number, version)
                operation = await keyring.begin_reseal(connection, number, version)
            was, is_now = {"keyVersion": version - 1 or None}, {"keyVersion": version}
            await note(connection, f"encryption {name}", was, is_now, tenant=number)
        self._vault.forget()
        lock = await self._vault.lock_of(number, version)
        async with self._database.transaction() as connection:
            await reseal_secrets(connection, self._vault, lock)
        return await self._view(number, name, operation)

    async def rewrap(self) -> int:
        """Wrap all data keys with the first of our master keys; how many were wrapped with another."""
        async with self._database.transaction() as connection:
            master = needed(self._vault.master)
            changed = await keyring.rewrap(connection, master)
            await note(connection, "master key", None, {"masterKey": master.current, "rewrapped": changed})
        return changed

    async def _some_key(self, connection: Connection, tenant: int) -> int:
        master = needed(self._vault.master)
        await keyring.raise_canary(connection, master)
        return await keyring.newest(connection, tenant) or await keyring.add_key(connection, master, tenant)

    async def _view(self, number: int, name: str, operation: int | None = None) -> EncryptionView:
        found = await keyring.how_sealed(self._database, number)
        return view(name, found[0] if found else None, operation)

    async def _tenant(self, authority: Authority, name: str | None) -> tuple[int, str]:
        """The tenant that is meant; to all but operators another one is as unknown as one that never was."""
        rows = await tenants.read_tenants(
            self._database, name=name, number=authority.tenant if name is None else None, limit=1
        )
        if not rows or (name is not None and not name.isprintable()) or not authority.reaches(rows[0].id):
            raise NotFound("there is no such tenant", "a key speaks for its own tenant, an operator's for all")
        return rows[0].id, rows[0].name


def view(tenant: str, row: HowSealed | None, operation: int | None = None) -> EncryptionView:
    return EncryptionView(
        tenant=tenant,
        enabled=row is not None and row.sealed_with is not None,
        key_version=None if row is None else row.versions,
        master_keys=[] if row is None else sorted(row.masters),
        key_created_at=None if row is None else row.since,
        operation_id=None if operation is None else encode("op", operation),
    )
