"""Tenants, their keys, and who did what."""

from typing import Any

from foliot.sdk import calls
from foliot.sdk.aio.connection import AsyncConnection
from foliot.sdk.aio.pages import AsyncItems
from foliot.sdk.calls import Rate
from foliot.sdk.records import Record


class AsyncTenantCalls(AsyncConnection):
    async def tenants(self, **query: Any) -> AsyncItems[Record]:
        """Tenants by name: all of them for an operator's key, its own for any other."""
        return await self._page(Record, "tenants", **query)

    async def create_tenant(self, name: str, **first_key: Any) -> Record:
        """Create a tenant; `key` of the answer is its first key (`role`, `serves`), in plain text this once."""
        return Record(await self.request(calls.create_tenant(name, first_key)))

    async def get_tenant(self, tenant: str) -> Record:
        """The tenant of this client's key: its `weight`, its `limits`, and how many runs wait for them."""
        return Record(await self.request(calls.get("tenants", tenant)))

    async def limit_tenant(self, tenant: str, *, concurrency: int | None) -> Record:
        """Let so many runs of the tenant go at once, over all its jobs; None takes the limit away."""
        return Record(await self.request(calls.limit_tenant(tenant, concurrency)))

    async def change_tenant(
        self, tenant: str, *, weight: int | None = None, quotas: dict[str, Any] | None = None, **limits: Any
    ) -> Record:
        """Change a tenant's share, its limits (`concurrency`, `rate_limit`, `backlog`) or quotas; None takes one away.

        `rate_limit` is `(per second, burst)`; quotas are `jobs`, `schedules` and `keys`.
        """
        return Record(await self.request(calls.change_tenant(tenant, weight, limits, quotas or {})))

    async def keys(self, **query: Any) -> AsyncItems[Record]:
        """Keys of one's own tenant, newest first: `name`, `status`; an operator may name another `tenant`."""
        return await self._page(Record, "keys", **query)

    async def get_key(self, key: str) -> Record:
        """What a key (`key_…`) may do, until when, and when it was last used."""
        return Record(await self.request(calls.get("keys", key)))

    async def create_key(self, name: str, **fields: Any) -> Record:
        """Create a key: `role`, `scopes`, `serves`, `expires_in`; the answer has it as `key`, this once."""
        return Record(await self.request(calls.create_key(name, fields)))

    async def rotate_key(self, key: str, **fields: Any) -> Record:
        """Create a `key` that may do the same; the `former` one ends after `overlap`, a day by default."""
        return Record(await self.request(calls.rotate_key(key, fields)))

    async def revoke_key(self, key: str) -> Record:
        """Within 5 seconds it opens nothing any more."""
        return Record(await self.request(calls.revoke_key(key)))

    async def limit_key(self, key: str, *, rate_limit: Rate) -> Record:
        """Let a key call so fast, `(per second, burst)`, within what its tenant may; None takes the limit away."""
        return Record(await self.request(calls.limit_key(key, rate_limit)))

    async def audit(self, **query: Any) -> AsyncItems[Record]:
        """Changes and denied attempts, newest first; `subject`, `action`, `since` and others narrow it down."""
        return await self._page(Record, "audit", **query)

    async def signing_secret(self) -> str:
        """What calls of HTTP handlers are signed with: `whsec_…`."""
        return str((await self.request(calls.get("signing-secret")))["secret"])

    async def secrets(self, **query: Any) -> AsyncItems[Record]:
        """Secrets by name: `version` and `updated_at`, never what they are."""
        return await self._page(Record, "secrets", **query)

    async def get_secret(self, name: str) -> Record:
        """A secret's `version` and `updated_at`, never what it is."""
        return Record(await self.request(calls.get("secrets", name)))

    async def set_secret(self, name: str, value: str) -> Record:
        """Keep a secret, or another value of it, for runs that refer to it as `{"$secret": name}`."""
        return Record(await self.request(calls.set_secret(name, value)))

    async def delete_secret(self, name: str) -> Record:
        """Runs that refer to it fail from now on."""
        return Record(await self.request(calls.delete_secret(name)))

    async def get_encryption(self, tenant: str | None = None) -> Record:
        """Whether payloads are encrypted (`enabled`), and with which `key_version`; an operator may name a tenant."""
        return Record(await self.request(calls.get("encryption", tenant=tenant)))

    async def switch_encryption(self, *, enabled: bool, tenant: str | None = None) -> Record:
        """Encrypt payloads, results and errors from now on, or no more; `operation_id` does so with what is stored."""
        return Record(await self.request(calls.switch_encryption(enabled, tenant)))

    async def rotate_encryption(self, tenant: str | None = None) -> Record:
        """Have a new key encrypt from now on; `operation_id` is how what is stored follows."""
        return Record(await self.request(calls.rotate_encryption(tenant)))
