"""The occurrence ledger: what became of every nominal fire time, and where there are gaps."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby, islice
from typing import Final

import msgspec

from foliot.domain.calendar import LOOKOUT, Calendar
from foliot.domain.errors import InvalidField, NotFound, one_of
from foliot.domain.ids import HIGHEST, encode, first_id_at
from foliot.domain.jitter import LONGEST as LONGEST_JITTER
from foliot.domain.misfire import GRACE
from foliot.domain.occurrence import (
    Fate,
    Firing,
    Nominal,
    Occurrence,
    Owned,
    Stretch,
    by_calendar,
    newest_first,
    occurrence,
    one_time_occurrence,
)
from foliot.domain.schedule import gap, parse_key
from foliot.domain.states import STATUS_OF
from foliot.store import ledger, reading
from foliot.store.calendars import Bodies, fetch_on
from foliot.store.database import Connection, Database
from foliot.store.jobs import clock
from foliot.store.ledger import GapRow, Record
from foliot.wire.codec import rfc3339
from foliot.wire.ledger import GapView, OccurrenceView
from foliot.wire.pages import Page, page_of, strange_cursor
from foliot.wire.timing import EARLIEST, LATEST

KEPT: Final = timedelta(days=30)
"""How long the records of firings are kept."""
MOST_LOOKED_AT: Final = 10_000
"""Instants that one call looks at while it searches for those of a fate; the page's cursor goes on from there."""
_BATCH: Final = 500
_MARGIN: Final = timedelta(minutes=1)
_FARTHEST: Final = 2 * LOOKOUT
"""A calendar moves a run from a day off to another day, and from there to the edge of a blackout."""
_Instant = tuple[Nominal, Stretch]


class Ledger:
    """Reads for one tenant at a time; another tenant's job is answered like one that never was."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._calendars = Bodies()

    async def occurrences(
        self,
        tenant: int,
        job: int,
        *,
        since: datetime | None,
        until: datetime | None,
        status: str | None,
        limit: int,
        cursor: str | None,
    ) -> Page[OccurrenceView]:
        """Newest first, from `since` (30 days ago if not said) to `until` (now, and all that has been dealt with)."""
        wanted = _fate(status)
        async with self._database.connection() as connection:
            if await reading.find_job(connection, tenant, job) is None:
                raise NotFound("there is no such job")
            now = await clock(connection)
            end = until or now if cursor is None else _instant(cursor) - datetime.resolution
            start = max(since or now - KEPT, now - KEPT)
            # As far around as calendars move runs: whether one took place depends on who owned the time it moved to.
            rows = await ledger.stretches(connection, job, start - _FARTHEST, end + _FARTHEST)
            if until is None and cursor is None:  # the clock may have been set back since
                end = max([now, *(stretch.cursor for _, stretch in rows)])
            calendars = await self._calendars.learn(partial(fetch_on, connection), [key for key, _ in rows])
            owned = [(parse_key(key, calendars), stretch) for key, stretch in rows]
            instants = _instants(owned, start, end)
            once = await ledger.one_time_instants(connection, job, start, end)
            found: list[Occurrence] = []
            last, looked = end, 0
            while len(found) <= limit and looked < MOST_LOOKED_AT and (batch := list(islice(instants, _BATCH))):
                told = await self._tell(connection, job, batch, owned, now)
                found += [each for each in told if wanted is None or each.fate is wanted]
                last, looked = batch[-1][0].at, looked + len(batch)
        told = [one_time_occurrence(each, now) for each in once if looked < MOST_LOOKED_AT or each.at >= last]
        found += [each for each in told if wanted is None or each.fate is wanted]
        found.sort(key=lambda each: each.at, reverse=True)
        if len(found) > limit:
            return Page([_view(each) for each in found[:limit]], rfc3339(found[limit - 1].at))
        return Page([_view(each) for each in found], rfc3339(last) if looked >= MOST_LOOKED_AT else None)

    async def gaps(
        self, tenant: int, *, since: datetime | None, until: datetime | None, limit: int, cursor: str | None
    ) -> Page[GapView]:
        """Where instants were missed or came up too late for some of the tenant's jobs, newest first."""
        async with self._database.connection() as connection:
            now = await clock(connection)
        # All that is on record has been dealt with, also what a clock that was set back makes lie in the future again.
        first, last = since or now - KEPT, until or LATEST
        rows = await ledger.gaps(self._database, tenant, first, last, _below(cursor, last), limit + 1)
        calendars = await self._calendars.learn(self._database.fetch, {row.key for row in rows})
        return page_of(
            rows, limit, lambda row: _gap_view(row, calendars), lambda row: f"{rfc3339(row.at)}.{row.schedule}"
        )

    async def _tell(
        self, connection: Connection, job: int, batch: Sequence[_Instant], owned: Sequence[Owned], now: datetime
    ) -> list[Occurrence]:
        records: dict[int, list[Record]] = {}
        for schedule, group in groupby(batch, key=lambda each: each[1].schedule):
            instants = [each.at for each, _ in group]
            records[schedule] = records.get(schedule, []) + await ledger.firings_of(
                connection, schedule, instants[-1], instants[0]
            )
        spans = [(batch[-1][0].at - _MARGIN, batch[0][0].at + GRACE + LONGEST_JITTER + _MARGIN)]
        spans += [
            made for found in records.values() for record in found if (made := _made_elsewhen(record)) is not None
        ]
        ids = [(first_id_at(low), first_id_at(high)) for low, high in spans]
        every = [each.at for each, _ in batch]
        runs = await ledger.traces(connection, job, every, ids)

        def tell() -> list[Occurrence]:
            return [
                occurrence(at, stretch, runs.get(at), _covering(records.get(stretch.schedule, ()), at), now)
                if taken is None
                else by_calendar(taken, stretch.schedule, owned, now - KEPT)
                for (at, taken), stretch in batch
            ]

        if lost := [each.at for each in tell() if each.fate is Fate.UNACCOUNTED]:
            # Opened on time and made long after, because a scheduler hung in between: rare, and dear to look for.
            span = first_id_at(min(lost) - _MARGIN), first_id_at(now + _MARGIN)
            runs |= await ledger.traces(connection, job, lost, [span])
        filled = await ledger.filled_back(connection, job, every)
        return [msgspec.structs.replace(each, filled_back=filled.get(each.at)) for each in tell()]


def _instants(owned: Sequence[Owned], since: datetime, until: datetime) -> Iterator[_Instant]:
    """The instants in (since, until], newest first, each with the stretch that has it."""
    for recurrence, stretch in owned:
        for each in newest_first(recurrence, max(stretch.after, since), min(stretch.until, until)):
            yield each, stretch


def _made_elsewhen(record: Record) -> tuple[datetime, datetime] | None:
    """When runs were made that were not made on time: the clock may have been set back since the firing was opened."""
    opened, closed = record.firing.opened_at, record.closed_at
    if not record.firing.late and opened <= closed:
        return None
    return min(opened, closed) - _MARGIN, max(opened, closed) + _MARGIN


def _covering(records: Sequence[Record], at: datetime) -> Firing | None:
    return next((record.firing for record in records if record.at <= at <= record.through), None)


def _view(each: Occurrence) -> OccurrenceView:
    trace = each.trace
    has_run = trace is not None and each.fate is Fate.FIRED
    return OccurrenceView(
        at=each.at,
        status=each.fate,
        reason=each.reason,
        run_id=encode("run", trace.run) if trace is not None and has_run else None,
        run_status=STATUS_OF[trace.state] if trace is not None and has_run else None,
        due_at=trace.due_at if trace is not None and has_run else None,
        backfill_run_id=None if each.filled_back is None else encode("run", each.filled_back),
    )


def _gap_view(row: GapRow, calendars: Mapping[str, Calendar]) -> GapView:
    found = gap(parse_key(row.key, calendars), row.at - datetime.resolution, row.through, most=10_000)
    return GapView(
        first=row.at,
        last=row.at if found is None else found.last,
        instants=1 if found is None else found.count,
        jobs=row.jobs,
        job_id=encode("job", row.job),
        name=row.name,
        noticed_at=row.opened_at,
    )


def _fate(word: str | None) -> Fate | None:
    if word is None:
        return None
    try:
        return Fate(word)
    except ValueError:
        raise InvalidField("status", f"no occurrence has the status {word[:40]!r}", one_of(Fate)) from None


def _instant(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None or not EARLIEST <= found <= LATEST:
        raise strange_cursor()
    return found


def _below(cursor: str | None, last: datetime) -> tuple[datetime, int]:
    if cursor is None:
        return last, HIGHEST
    text, _, schedule = cursor.rpartition(".")
    if not (schedule.isascii() and schedule.isdigit() and len(schedule) < 19):
        raise strange_cursor()
    return _instant(text), int(schedule)
