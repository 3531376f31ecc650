# Written by `make sdk` from sdk/aio/tenants.py: change that.
"""Tenants, their keys, and who did what."""

from typing import Any

from foliot.sdk import calls
from foliot.sdk.calls import Rate
from foliot.sdk.client.connection import Connection
from foliot.sdk.client.pages import Items
from foliot.sdk.records import Record


class TenantCalls(Connection):
    def tenants(self, **query: Any) -> Items[Record]:
        """Tenants by name: all of them for an operator's key, its own for any other."""
        return self._page(Record, "tenants", **query)

    def create_tenant(self, name: str, **first_key: Any) -> Record:
        """Create a tenant; `key` of the answer is its first key (`role`, `serves`), in plain text this once."""
        return Record(self.request(calls.create_tenant(name, first_key)))

    def get_tenant(self, tenant: str) -> Record:
        """The tenant of this client's key: its `weight`, its `limits`, and how many runs wait for them."""
        return Record(self.request(calls.get("tenants", tenant)))

    def limit_tenant(self, tenant: str, *, concurrency: int | None) -> Record:
        """Let so many runs of the tenant go at once, over all its jobs; None takes the limit away."""
        return Record(self.request(calls.limit_tenant(tenant, concurrency)))

    def change_tenant(
        self, tenant: str, *, weight: int | None = None, quotas: dict[str, Any] | None = None, **limits: Any
    ) -> Record:
        """Change a tenant's share, its limits (`concurrency`, `rate_limit`, `backlog`) or quotas; None takes one away.

        `rate_limit` is `(per second, burst)`; quotas are `jobs`, `schedules` and `keys`.
        """
        return Record(self.request(calls.change_tenant(tenant, weight, limits, quotas or {})))

    def keys(self, **query: Any) -> Items[Record]:
        """Keys of one's own tenant, newest first: `name`, `status`; an operator may name another `tenant`."""
        return self._page(Record, "keys", **query)

    def get_key(self, key: str) -> Record:
        """What a key (`key_…`) may do, until when, and when it was last used."""
        return Record(self.request(calls.get("keys", key)))

    def create_key(self, name: str, **fields: Any) -> Record:
        """Create a key: `role`, `scopes`, `serves`, `expires_in`; the answer has it as `key`, this once."""
        return Record(self.request(calls.create_key(name, fields)))

    def rotate_key(self, key: str, **fields: Any) -> Record:
        """Create a `key` that may do the same; the `former` one ends after `overlap`, a day by default."""
        return Record(self.request(calls.rotate_key(key, fields)))

    def revoke_key(self, key: str) -> Record:
        """Within 5 seconds it opens nothing any more."""
        return Record(self.request(calls.revoke_key(key)))

    def limit_key(self, key: str, *, rate_limit: Rate) -> Record:
        """Let a key call so fast, `(per second, burst)`, within what its tenant may; None takes the limit away."""
        return Record(self.request(calls.limit_key(key, rate_limit)))

    def audit(self, **query: Any) -> Items[Record]:
        """Changes and denied attempts, newest first; `subject`, `action`, `since` and others narrow it down."""
        return self._page(Record, "audit", **query)

    def signing_secret(self) -> str:
        """What calls of HTTP handlers are signed with: `whsec_…`."""
        return str(self.request(calls.get("signing-secret"))["secret"])

    def secrets(self, **query: Any) -> Items[Record]:
        """Secrets by name: `version` and `updated_at`, never what they are."""
        return self._page(Record, "secrets", **query)

    def get_secret(self, name: str) -> Record:
        """A secret's `version` and `updated_at`, never what it is."""
        return Record(self.request(calls.get("secrets", name)))

    def set_secret(self, name: str, value: str) -> Record:
        """Keep a secret, or another value of it, for runs that refer to it as `{"$secret": name}`."""
        return Record(self.request(calls.set_secret(name, value)))

    def delete_secret(self, name: str) -> Record:
        """Runs that refer to it fail from now on."""
        return Record(self.request(calls.delete_secret(name)))

    def get_encryption(self, tenant: str | None = None) -> Record:
        """Whether payloads are encrypted (`enabled`), and with which `key_version`; an operator may name a tenant."""
        return Record(self.request(calls.get("encryption", tenant=tenant)))

    def switch_encryption(self, *, enabled: bool, tenant: str | None = None) -> Record:
        """Encrypt payloads, results and errors from now on, or no more; `operation_id` does so with what is stored."""
        return Record(self.request(calls.switch_encryption(enabled, tenant)))

    def rotate_encryption(self, tenant: str | None = None) -> Record:
        """Have a new key encrypt from now on; `operation_id` is how what is stored follows."""
        return Record(self.request(calls.rotate_encryption(tenant)))
