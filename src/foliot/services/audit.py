"""The audit trail for those who read it, and the attempts that were denied."""

import asyncio
from collections import Counter
from datetime import UTC, datetime
from typing import Final, NamedTuple

import msgspec
import structlog

from foliot.domain.access import Authority, Role
from foliot.domain.audit import NOBODY
from foliot.domain.errors import FoliotError, NotFound
from foliot.domain.ids import encode
from foliot.kit import telemetry
from foliot.store import audit, tenants
from foliot.store.audit import Deed, Note, Sealed, Sought
from foliot.store.database import Database
from foliot.wire.audit import KEY_PREFIX, AuditEntry
from foliot.wire.pages import Page, id_below, page_of

log = structlog.get_logger("audit")

FLUSHED_EVERY: Final = 1.0
"""Seconds."""
MOST_DENIALS: Final = 100
"""Different ones of a tenant, or of callers that nobody knows, that are written down at a time; the rest is counted.

So trying every key fills no disk, and nobody's denied attempts get lost among those of others."""
UNKNOWN: Final = "-"
"""Instead of a tenant's name: callers without a valid key."""
_OTHERS: Final = "others"
_FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(9000, 1, 1, tzinfo=UTC)


class Denial(NamedTuple):
    """Somebody turned away, once or several times: the first time stands for all."""

    deed: Deed
    why: str
    attempts: int

    @property
    def kind(self) -> tuple[Deed, str]:
        """What makes two of them the same."""
        return self.deed._replace(request=None), self.why


class AuditTrail:
    """`own` shows one tenant's entries; operators read those of others, and all is written, by `database`."""

    def __init__(self, database: Database, own: Database | None = None) -> None:
        self._database = database
        self._own = own or database
        self._denied: dict[tuple[Deed, str], Denial] = {}
        self._different: Counter[int] = Counter()
        self._others: Counter[int] = Counter()

    async def page(
        self,
        authority: Authority,
        *,
        tenant: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
        **sought: str | None,
    ) -> Page[AuditEntry]:
        """Newest first: of one's own tenant or, for operators, of another, or of callers that nobody knows."""
        number = authority.tenant if tenant is None else await self._named(authority, tenant)
        database = self._own if number == authority.tenant else self._database
        filters = Sought(since or _FIRST, until or _LAST, **sought)
        rows = await audit.list_entries(database, number, filters, below=id_below(cursor), limit=limit + 1)
        return page_of(rows, limit, _view, lambda row: encode("c", row.entry.id))

    async def _named(self, authority: Authority, name: str) -> int:
        if authority.role is Role.OPERATOR and name == UNKNOWN:
            return NOBODY
        number = await tenants.find_tenant(self._database, name) if name.isprintable() else None
        if number is None or not authority.reaches(number):
            raise NotFound("there is no such tenant", "a key speaks for its own tenant, an operator's for all")
        return number

    def denied(self, deed: Deed, why: str) -> None:
        """Note, soon, that somebody was turned away. The same of the same within a second is one entry with a count.

        Request ids differ each time: of several only the first is kept.
        """
        telemetry.CALLS_DENIED.inc()
        self._count(Denial(deed, why, 1))

    def _count(self, denial: "Denial") -> None:
        if (first := self._denied.get(denial.kind)) is not None:
            self._denied[denial.kind] = first._replace(attempts=first.attempts + denial.attempts)
        elif self._different[denial.deed.tenant] < MOST_DENIALS:
            self._different[denial.deed.tenant] += 1
            self._denied[denial.kind] = denial
        else:
            self._others[denial.deed.tenant] += denial.attempts

    async def flush(self) -> int:
        """Write down what was denied since the last time. What cannot be written now is kept for the next."""
        gathered, others = self._denied, self._others
        if not gathered:
            return 0
        self._denied, self._different, self._others = {}, Counter(), Counter()
        notes = [
            Note(deed, None, "denied", after={"reason": why, "attempts": attempts})
            for deed, why, attempts in gathered.values()
        ]
        reason = f"more than {MOST_DENIALS} different ones at a time"
        for tenant, attempts in others.items():
            some = Deed(tenant, _OTHERS, None, None, None, _OTHERS)
            notes.append(Note(some, None, "denied", after={"reason": reason, "attempts": attempts}))
        try:
            async with self._database.transaction() as connection:
                await audit.write(connection, notes)
        except BaseException:
            since, self._denied = self._denied, {}  # what was gathered first keeps its place, and its request
            self._different = Counter()
            self._others += others
            for denial in (*gathered.values(), *since.values()):
                self._count(denial)
            raise
        return len(notes)

    async def run(self) -> None:
        """Flush every second, until cancelled; then once more."""
        try:
            while True:
                await asyncio.sleep(FLUSHED_EVERY)
                try:
                    await self.flush()
                except (FoliotError, OSError) as error:
                    log.warning("denied calls cannot be noted yet", error=str(error))
        finally:
            async with asyncio.timeout(2):
                await self.flush()


def _view(row: Sealed) -> AuditEntry:
    entry, link = row
    return AuditEntry(
        entry_id=encode("aud", entry.id),
        at=entry.at,
        actor=entry.actor,
        key_id=None if entry.key is None else KEY_PREFIX + entry.key,
        ip=entry.ip,
        request_id=entry.request,
        action=entry.action,
        subject=entry.subject,
        outcome=entry.outcome,
        before=None if entry.before is None else msgspec.Raw(entry.before.encode()),
        after=None if entry.after is None else msgspec.Raw(entry.after.encode()),
        position=None if link is None else link.position,
        hash=None if link is None else link.hash.hex(),
    )
