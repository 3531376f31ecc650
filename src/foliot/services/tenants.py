"""Who may call: tenants, their keys, and whose key a request carries."""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Final

from foliot.domain.errors import Conflict, InvalidField, NotFound
from foliot.domain.fairness import check_weight
from foliot.domain.rerank import begin
from foliot.store import rerank, tenants
from foliot.store.admission import relimit_tenant
from foliot.store.database import Connection, Database
from foliot.store.rerank import Changed, Weight
from foliot.store.tenants import KeyOwner, TenantRow

REMEMBERED: Final = 5.0
"""Seconds that a key is believed without asking again: a revoked one works no longer than that."""
_TOKEN: Final = re.compile(r"fol_([a-z0-9]{12})_([A-Za-z0-9_-]{43})")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789"


class Tenants:
    def __init__(self, database: Database, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._monotonic = monotonic
        self._known: dict[bytes, tuple[float, KeyOwner]] = {}

    async def create(self, name: str, serves: Sequence[str] = ()) -> str:
        """Make a tenant and its first key, which serves these queues. It is shown once: only its digest is kept."""
        if not _NAME.fullmatch(name):
            raise InvalidField("name", "not a tenant's name", "lower-case letters, digits and '-', at most 63")
        if not await tenants.create_tenant(self._database, name):
            raise Conflict(f"there is a tenant called {name!r} already", "choose another name")
        return await self.issue_key(name, "first key", serves)

    async def issue_key(self, name: str, label: str, serves: Sequence[str] = ()) -> str:
        """Make a key. With it, workers may fetch the work of the queues in `serves`, whosever it is; `*` is all."""
        if not all(serves):
            raise InvalidField("serve", "is empty", "name a queue, or * for all of them")
        tenant = await tenants.find_tenant(self._database, name)
        if tenant is None:
            raise Conflict(f"there is no tenant called {name!r}", "create it first")
        key = "".join(secrets.choice(_LETTERS) for _ in range(12))
        token = f"fol_{key}_{secrets.token_urlsafe(32)}"
        await tenants.insert_key(self._database, key, tenant, _digest(token), label, serves)
        return token

    async def weight(self, name: str) -> Weight:
        found = await rerank.read_weight(self._database, name)
        if found is None:
            raise _unknown(name)
        return found

    async def set_weight(self, name: str, weight: int) -> Weight:
        """Give a tenant another share of every lane.

        Firing, promoting and back-filling go by it at once, submitting within `specs.TENANTS_REMEMBERED` seconds. What
        waits already is moved by a scheduler, in pages.
        """
        check_weight(weight)
        async with self._database.transaction() as connection:
            changed = await rerank.change_weight(connection, name, weight)
            if changed is None:
                raise _unknown(name)
            if changed.before != weight:
                await _begin_reranks(connection, changed, weight)
        return await self.weight(name)

    async def read(self, name: str) -> TenantRow:
        found = await tenants.read_tenant(self._database, name)
        if found is None:
            raise _unknown(name)
        return found

    async def set_limit(self, name: str, limit: int | None) -> TenantRow:
        """Let so many runs of a tenant go at once, over all its jobs; none takes the limit away.

        Who waits for it goes by the new one at once. What is handed in within the next `specs.TENANTS_REMEMBERED`
        seconds, and what was ready or running before there was a limit, may not be counted.
        """
        async with self._database.transaction() as connection:
            tenant = await tenants.change_limit(connection, name, limit)
            if tenant is None:
                raise _unknown(name)
            await relimit_tenant(connection, tenant)
        return await self.read(name)

    async def let_serve(self, token: str, serves: Sequence[str]) -> None:
        """Change which queues a valid key serves; it holds within seconds."""
        if owner := await self.whose(token):
            await tenants.let_serve(self._database, owner.key, serves)

    async def whose(self, token: str) -> KeyOwner | None:
        """The owner of this key, or none if it is not valid."""
        match = _TOKEN.fullmatch(token)
        if match is None:
            return None
        digest, now = _digest(token), self._monotonic()
        if (known := self._known.get(digest)) and now - known[0] < REMEMBERED:
            return known[1]
        owner = await tenants.find_key(self._database, match[1])
        if owner is None or not hmac.compare_digest(owner.digest, digest):
            self._known.pop(digest, None)
            return None
        if len(self._known) > 10_000:
            self._known.clear()
        self._known[digest] = (now, owner)
        return owner


def _unknown(name: str) -> NotFound:
    return NotFound(f"there is no tenant called {name!r}", "create it with `foliot tenant create`")


async def _begin_reranks(connection: Connection, changed: Changed, weight: int) -> None:
    flows = await rerank.hold_flows(connection, changed.tenant)
    works = {
        flow: work
        for flow, ends in flows.items()
        if (work := begin(changed.before, weight, ends.virtual, ends.last)) is not None
    }
    for flow in await rerank.begin_reranks(connection, works):
        if not works[flow].draws_together:
            await rerank.end_flow(connection, flow, works[flow].image)


def _digest(token: str) -> bytes:
    # Keys are 256 random bits, so a plain digest cannot be searched; it needs no salt and no slowness.
    return hashlib.sha256(token.encode()).digest()
