"""Secrets: written, listed by name, replaced, deleted; told to nobody but the worker that runs what refers to them."""

from foliot.domain.errors import NotFound
from foliot.domain.secret import check_name, check_value
from foliot.store import keyring, secrets
from foliot.store.audit import note
from foliot.store.database import Database
from foliot.store.vault import Mark, Vault, needed
from foliot.wire.pages import Page, page_of
from foliot.wire.secrets import SecretView


class Secrets:
    """Serves one tenant at a time; another tenant's secret is answered like one that never was."""

    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault

    async def put(self, tenant: int, name: str, value: str) -> tuple[SecretView, bool]:
        """Keep a secret, or another value of it; also says whether it is new. What runs next gets the new one."""
        check_name(name)
        check_value(value)
        lock = await self._vault.lock_of(tenant, await self._key(tenant))
        sealed = lock.seal(Mark.SECRET, name, "value", value.encode())
        async with self._database.transaction() as connection:
            row = await secrets.put_secret(connection, tenant, name, sealed)
            was = {"version": row.version - 1} if row.version > 1 else None
            await note(connection, f"secret {name}", was, {"version": row.version}, tenant=tenant)
        return SecretView(*row), row.version == 1

    async def page(self, tenant: int, *, limit: int, cursor: str | None) -> Page[SecretView]:
        """By name; never with values."""
        after = "" if cursor is None else check_name(cursor)
        rows = await secrets.list_secrets(self._database, tenant, after=after, limit=limit + 1)
        return page_of(rows, limit, lambda row: SecretView(*row), lambda row: row.name)

    async def read(self, tenant: int, name: str) -> SecretView:
        row = await secrets.find_secret(self._database, tenant, name) if name.isprintable() else None
        if row is None:
            raise _unknown()
        return SecretView(*row)

    async def delete(self, tenant: int, name: str) -> SecretView:
        """What refers to it from now on fails, and is not tried again."""
        async with self._database.transaction() as connection:
            row = await secrets.delete_secret(connection, tenant, name) if name.isprintable() else None
            if row is None:
                raise _unknown()
            await note(connection, f"secret {name}", {"version": row.version}, None, tenant=tenant)
        return SecretView(*row)

    async def _key(self, tenant: int) -> int:
        """The number of the key to seal with; the tenant's first is made now."""
        master = needed(self._vault.master)
        async with self._database.transaction() as connection:
            await keyring.hold_tenant(connection, tenant)
            return await keyring.newest(connection, tenant) or await keyring.add_key(connection, master, tenant)


def _unknown() -> NotFound:
    return NotFound("there is no such secret", "GET /v1/secrets lists those that there are")
