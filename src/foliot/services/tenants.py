"""Who may call: tenants, their first keys, and whose key a request carries."""

import asyncio
import hmac
import re
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import structlog
from msgspec import UNSET, UnsetType

from foliot.domain.access import Authority, NewKey, Role, check_serves
from foliot.domain.condition import UNCONDITIONAL, Condition
from foliot.domain.errors import Conflict, InvalidField, NotFound
from foliot.domain.fairness import check_weight
from foliot.domain.rerank import begin
from foliot.domain.terms import Terms, facts
from foliot.kit.tokens import is_whole, new_token, read_token
from foliot.store import keys, rerank, tenants, terms
from foliot.store.admission import relimit_tenant
from foliot.store.audit import note
from foliot.store.database import Connection, Database
from foliot.store.keys import KeyOwner, KeyRow
from foliot.store.rerank import Changed, Weight
from foliot.store.submission import Asked, answer_once, do_once
from foliot.store.tenants import TenantRow
from foliot.wire.audit import KEY_PREFIX
from foliot.wire.limits import LimitsView, TenantView
from foliot.wire.terms import QuotasView, RateLimitBody, UsedView

log = structlog.get_logger("api")

REMEMBERED: Final = 5.0
"""Seconds that a key is believed without asking again: a revoked one works no longer than that."""
NOTED_EVERY: Final = 60.0
"""Seconds between two notes of which keys were used."""
FIRST_KEY: Final = "first key"
Render = Callable[[TenantRow, KeyRow, str], bytes]
"""What to say of a new tenant, its first key, and that key in plain text."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


class Change(NamedTuple):
    """What to set for a tenant, each if it is given; what `terms` makes of those that there are may refuse."""

    weight: int | None = None
    concurrency: int | UnsetType | None = UNSET
    """None takes the limit away."""
    terms: Callable[[Terms], Terms] | None = None


class Tenants:
    def __init__(self, database: Database, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._monotonic = monotonic
        self._known: dict[bytes, tuple[float, KeyOwner]] = {}
        self._used: dict[str, float] = {}

    async def create(self, name: str, serves: Sequence[str] = (), role: Role = Role.ADMIN) -> str:
        """Make a tenant and its first key, which serves these queues. It is shown once: only its digest is kept."""
        token, _ = await self.found(name, NewKey(FIRST_KEY, role, serves=serves))
        return token

    async def found(self, name: str, first: NewKey) -> tuple[str, KeyRow]:
        """Make a tenant and its first key, both or neither; the key in plain text, this once."""
        check_name(name)
        check_serves(first.serves)
        async with self._database.transaction() as connection:
            return await _found(connection, name, first)

    async def found_once(self, name: str, first: NewKey, asked: Asked, render: Render) -> bytes:
        """As `found`, but for the same request once; what it is answered with, which `render` makes of it."""
        check_name(name)
        check_serves(first.serves)

        async def make() -> bytes:
            async with self._database.transaction() as connection:
                token, key = await _found(connection, name, first)
                body = render(await tenants.read_held(connection, name), key, token)
                await answer_once(connection, asked, body)
            return body

        return (await do_once(self._database, asked, make))[0]

    async def issue_key(self, name: str, label: str, serves: Sequence[str] = (), role: Role = Role.ADMIN) -> str:
        """Make a key in the place of all that had this label; they are revoked."""
        tenant = await tenants.find_tenant(self._database, name)
        if tenant is None:
            raise _unknown(name)
        token = new_token()
        async with self._database.transaction() as connection:
            for former in await keys.revoke_named(connection, tenant, label):
                await note(connection, KEY_PREFIX + former, None, {"status": "revoked"}, tenant=tenant)
            if row := await keys.make_key(connection, tenant, token, NewKey(label, role, serves=serves)):
                await note(connection, KEY_PREFIX + row.id, None, keys.facts(row), tenant=tenant)
        return token.text

    async def weight(self, name: str) -> Weight:
        found = await rerank.read_weight(self._database, name)
        if found is None:
            raise _unknown(name)
        return found

    async def change(self, name: str, change: Change, condition: Condition = UNCONDITIONAL) -> None:
        """Set all of it or nothing, if the tenant is at the version that is meant.

        Each API process goes by limits and quotas within 5 seconds.
        """
        if change.weight is not None:
            check_weight(change.weight)
        async with self._database.transaction() as connection:
            found = await terms.hold_terms(connection, name)
            if found is None:
                raise _unknown(name)
            condition.check(found.version)
            after = found.terms if change.terms is None else change.terms(found.terms)
            if after != found.terms:
                await terms.change_terms(connection, found.tenant, after)
                await note(connection, f"tenant {name}", facts(found.terms), facts(after), tenant=found.tenant)
            if change.concurrency is not UNSET:
                await _limit(connection, name, change.concurrency)
            if change.weight is not None:
                await _weigh(connection, name, change.weight)

    async def set_weight(self, name: str, weight: int) -> Weight:
        """Give a tenant another share of every lane.

        Firing, promoting and back-filling go by it at once, submitting within `specs.TENANTS_REMEMBERED` seconds. What
        waits already is moved by a scheduler, in pages.
        """
        await self.change(name, Change(weight=weight))
        return await self.weight(name)

    async def read(self, name: str) -> TenantRow:
        found = await tenants.read_tenants(self._database, name=name)
        if not found:
            raise _unknown(name)
        return found[0]

    async def seen_by(self, authority: Authority, *, after: str, limit: int) -> list[TenantRow]:
        """By name: all for an operator, its own for anybody else."""
        only = None if authority.role is Role.OPERATOR else authority.tenant
        return await tenants.read_tenants(self._database, number=only, after=after, limit=limit)

    async def set_limit(self, name: str, limit: int | None) -> TenantRow:
        """Let so many runs of a tenant go at once, over all its jobs; none takes the limit away.

        Who waits for it goes by the new one at once. What is handed in within the next `specs.TENANTS_REMEMBERED`
        seconds, and what was ready or running before there was a limit, may not be counted.
        """
        await self.change(name, Change(concurrency=limit))
        return await self.read(name)

    async def make_operator(self, token: str) -> None:
        """Let a valid key do everything, and serve every queue; it holds within seconds."""
        if owner := await self.whose(token):
            async with self._database.transaction() as connection:
                if await keys.entrust(connection, owner.tenant, owner.key, Role.OPERATOR, ["*"]):
                    was = {"role": owner.role, "serves": [*owner.serves]}
                    became = {"role": Role.OPERATOR, "serves": ["*"]}
                    await note(connection, KEY_PREFIX + owner.key, was, became, tenant=owner.tenant)

    async def whose(self, token: str) -> KeyOwner | None:
        """The owner of this key, or none if it is not valid."""
        read = read_token(token)
        if read is None:
            return None
        now = self._monotonic()
        if (known := self._known.get(read.digest)) and now < known[0]:
            return known[1]
        owner = await keys.find_key(self._database, read.id) if is_whole(token) else None
        if owner is None or not hmac.compare_digest(owner.digest, read.digest):
            self._known.pop(read.digest, None)
            return None
        if len(self._known) > 10_000:
            self._known.clear()
        self._known[read.digest] = (now + min(REMEMBERED, owner.remaining or REMEMBERED), owner)
        self._used[owner.key] = now
        return owner

    async def run(self) -> None:
        """Write down every minute which keys were used, until cancelled."""
        while True:
            await asyncio.sleep(NOTED_EVERY)
            try:
                await self.note_used()
            except Exception as error:  # noqa: BLE001 - nobody shall be refused because of a note
                log.warning("which keys were used is written down later", error=str(error))

    async def note_used(self) -> None:
        """Write down which keys were used since the last time, all at once."""
        used, self._used = self._used, {}
        if not used:
            return
        now = self._monotonic()
        try:
            await keys.note_used(self._database, {key: now - at for key, at in used.items()})
        except BaseException:
            self._used = used | self._used
            raise


def check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidField("name", "not a tenant's name", "lower-case letters, digits and '-', at most 63")


async def _found(connection: Connection, name: str, first: NewKey) -> tuple[str, KeyRow]:
    token = new_token()
    tenant = await tenants.create_tenant(connection, name)
    if tenant is None or (row := await keys.make_key(connection, tenant, token, first)) is None:
        raise Conflict(f"there is a tenant called {name!r} already", "choose another name")
    await note(connection, f"tenant {name}", None, {"key": keys.facts(row)}, tenant=tenant)
    return token.text, row


def view(row: TenantRow, used: UsedView | UnsetType = UNSET) -> TenantView:
    rate = None if row.rate is None else RateLimitBody(row.rate, row.burst)
    return TenantView(
        tenant=row.name,
        weight=row.weight,
        limits=LimitsView(row.concurrency, rate, row.backlog),
        going=row.going,
        waiting=row.waiting,
        quotas=QuotasView(row.most_jobs, row.most_schedules, row.most_keys),
        version=row.version,
        used=used,
    )


async def _limit(connection: Connection, name: str, limit: int | None) -> None:
    before = await tenants.read_held(connection, name)
    await tenants.change_limit(connection, name, limit)
    await relimit_tenant(connection, before.id)
    if limit != before.concurrency:
        was, is_now = {"concurrency": before.concurrency}, {"concurrency": limit}
        await note(connection, f"tenant {name}", was, is_now, tenant=before.id)


async def _weigh(connection: Connection, name: str, weight: int) -> None:
    changed = await rerank.change_weight(connection, name, weight)
    if changed is not None and changed.before != weight:
        await _begin_reranks(connection, changed, weight)
        was, is_now = {"weight": changed.before}, {"weight": weight}
        await note(connection, f"tenant {name}", was, is_now, tenant=changed.tenant)


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
