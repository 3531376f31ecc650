"""Setting how fast keys may call, and counting what tenants have."""

from foliot.domain.access import Authority, check_may_touch
from foliot.domain.bucket import RateLimit
from foliot.domain.errors import NotFound
from foliot.domain.terms import rate_facts
from foliot.store import keys, terms
from foliot.store.audit import note
from foliot.store.database import Database
from foliot.wire.terms import UsedView


class TermsKeeper:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def used(self, name: str, backlog: int | None = None) -> UsedView:
        """What a tenant has of what it has quotas for."""
        found = await terms.read_terms(self._database, name)
        if found is None:
            raise NotFound(f"there is no tenant called {name!r}", "create it with `foliot tenant create`")
        async with self._database.connection() as connection:
            counted = await terms.count_used(connection, found.tenant, found.terms.quota)
        return UsedView(**counted, backlog=backlog)

    async def change_key(self, authority: Authority, key_id: str, rate: RateLimit | None) -> None:
        """Let a key call so fast, or as fast as its tenant. Each API process goes by it within 5 seconds."""
        bare = key_id.removeprefix("key_")
        row = await keys.read_key(self._database, bare) if key_id.isprintable() and bare != key_id else None
        if row is None or not authority.reaches(row.tenant):
            raise NotFound("there is no such key", "GET /v1/keys lists those that there are")
        check_may_touch(row.role, authority)
        async with self._database.transaction() as connection:
            await terms.change_key_rate(connection, row.tenant, bare, rate)
            if rate != row.rate_limit:
                was, is_now = {"rateLimit": rate_facts(row.rate_limit)}, {"rateLimit": rate_facts(rate)}
                await note(connection, key_id, was, is_now, tenant=row.tenant)
