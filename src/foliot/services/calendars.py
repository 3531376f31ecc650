"""What owners do to their calendars: write, import, read, preview, delete."""

import asyncio
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

import msgspec

from foliot.domain.calendar import Calendar, Stretch, Window
from foliot.domain.condition import UNCONDITIONAL, Condition
from foliot.domain.errors import Conflict, InvalidField, NotFound
from foliot.domain.ics import Imported, read_ics
from foliot.domain.ids import encode
from foliot.domain.zone import check_zone
from foliot.store import calendars
from foliot.store.audit import note
from foliot.store.calendars import CalendarBook, CalendarRow, Content, Followers
from foliot.store.database import Connection, Database
from foliot.store.jobs import clock
from foliot.wire.calendar_views import (
    CalendarSummary,
    CalendarView,
    ClosedView,
    ClosedViews,
    ImportedCalendar,
    UnreadView,
)
from foliot.wire.calendars import NAME, CalendarBody, Calendars, HolidayBody, calendar_of_body, with_closures
from foliot.wire.pages import Page

AHEAD: Final = timedelta(days=90)
"""What a preview shows that is not told how much."""
FARTHEST: Final = timedelta(days=5 * 366)
_NAMED: Final = 5
Done = TypeVar("Done")


class CalendarKeeper:
    """Calendars of one tenant at a time; another tenant's is answered like one that never was."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._book = CalendarBook(database)

    async def resolving(self, tenant: int, deed: Callable[[Calendars], Awaitable[Done]]) -> Done:
        """Do what may need the tenant's calendars, with those that it needs."""
        return await self._book.resolving(tenant, deed)

    async def put(
        self, tenant: int, name: str, body: CalendarBody, condition: Condition = UNCONDITIONAL
    ) -> tuple[CalendarView, bool]:
        """Create or replace; also says whether it is new. Its jobs follow from the moment they have been moved."""
        _check_name(name)
        calendar, document = calendar_of_body(body)
        async with self._database.transaction() as connection:
            before = await calendars.find_calendar(connection, tenant, name, lock=True)
            condition.check(None if before is None else before.version)
            is_new = await calendars.put_calendar(connection, tenant, name, Content(calendar, document, "api"))
            if condition.must_be_new and not is_new:  # a rival was first, after we looked
                condition.check((await self._find(connection, tenant, name)).version)
            await _note(connection, name, before, document)
            return await self._read(connection, tenant, name), is_new

    async def import_(
        self, tenant: int, name: str, ics: str, *, timezone: str | None, add: bool
    ) -> tuple[ImportedCalendar, bool]:
        """Take over the events of an iCalendar file; also says whether the calendar is new."""
        _check_name(name)
        async with self._database.connection() as connection:
            today = (await clock(connection)).date()
        imported = await asyncio.to_thread(read_ics, ics, today)  # a large file keeps a processor busy for a while
        async with self._database.transaction() as connection:
            before = await calendars.find_calendar(connection, tenant, name, lock=True)
            body = _written(before, timezone or imported.timezone)
            calendar, document = with_closures(body, imported.closures, add=add)
            is_new = await calendars.put_calendar(connection, tenant, name, Content(calendar, document, "ics"))
            await _note(connection, name, before, document)
            return _imported(await self._read(connection, tenant, name), imported), is_new

    async def get(self, tenant: int, name: str) -> CalendarView:
        async with self._database.connection() as connection:
            return await self._read(connection, tenant, name)

    async def list(self, tenant: int, *, limit: int, cursor: str | None) -> Page[CalendarSummary]:
        async with self._database.connection() as connection:
            rows = await calendars.list_calendars(connection, tenant, cursor or "", limit + 1)
            counts = await calendars.count_followers(connection, [row.id for row in rows])
        items = [_summary(row, counts[row.id]) for row in rows[:limit]]
        return Page(items, rows[limit - 1].name if len(rows) > limit else None)

    async def delete(self, tenant: int, name: str, condition: Condition = UNCONDITIONAL) -> CalendarView:
        """Remove it, unless jobs follow it; returns what it was."""
        async with self._database.transaction() as connection:
            row = await self._find(connection, tenant, name, lock=True)
            condition.check(row.version)
            if jobs := await calendars.jobs_of_calendar(connection, row.id, _NAMED + 1):
                raise _in_use(name, jobs)
            await calendars.delete_calendar(connection, row.id)
            await _note(connection, name, row, None)
        return _view(row, Followers(0, 0))

    async def preview(self, tenant: int, name: str, since: datetime | None, until: datetime | None) -> ClosedViews:
        """The times without work from now on, or within those bounds."""
        async with self._database.connection() as connection:
            row = await self._find(connection, tenant, name)
            first = since or await clock(connection)
        last = until or first + AHEAD
        if not first < last <= first + FARTHEST:
            raise InvalidField("until", "does not lie within five years after from", "ask for less at a time")
        calendar, _ = calendar_of_body(_body(row))
        closed = calendar.stretches(first, last)
        names = _names_within(closed, _labels(calendar, _body(row)))
        return ClosedViews(
            [
                ClosedView(max(each.start, first), min(each.end, last), list(dict.fromkeys(named)))
                for each, named in zip(closed, names, strict=True)
            ]
        )

    async def _read(self, connection: Connection, tenant: int, name: str) -> CalendarView:
        row = await self._find(connection, tenant, name)
        counts = await calendars.count_followers(connection, [row.id])
        return _view(row, counts[row.id])

    async def _find(self, connection: Connection, tenant: int, name: str, *, lock: bool = False) -> CalendarRow:
        known = NAME.fullmatch(name) is not None  # what cannot be a name is as unknown as any other
        row = await calendars.find_calendar(connection, tenant, name, lock=lock) if known else None
        if row is None:
            raise NotFound("there is no such calendar")
        return row


async def _note(connection: Connection, name: str, before: CalendarRow | None, after: Any) -> None:
    was = None if before is None else before.document
    if was != after:
        await note(connection, f"calendar {name}", was, after)


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        hint = "lower-case letters, digits, '.', '_' and '-', at most 63"
        raise InvalidField("name", f"{name[:63]!r} is no name of a calendar", hint)


def _body(row: CalendarRow) -> CalendarBody:
    return msgspec.convert(row.document, CalendarBody)


def _written(before: CalendarRow | None, timezone: str | None) -> CalendarBody:
    """The calendar that an import is laid over."""
    if before is not None:
        return _body(before)
    if timezone is None:
        hint = "add ?timezone=Europe/Berlin to the address, or --timezone to the command"
        raise InvalidField("timezone", "neither the call nor the file says of which zone the days are", hint)
    return CalendarBody(timezone=check_zone(timezone).key)


def _in_use(name: str, jobs: list[tuple[int, str]]) -> Conflict:
    named = ", ".join(f"{job[:60]} ({encode('job', number)})" for number, job in jobs[:_NAMED])
    more = " and more" if len(jobs) > _NAMED else ""
    return Conflict(f"jobs follow the calendar {name!r}: {named}{more}", "give them another, or cancel them, first")


def _fields(row: CalendarRow, followers: Followers) -> dict[str, Any]:
    return {
        "name": row.name,
        "timezone": row.document["timezone"],
        "business_days": row.document["businessDays"],
        "source": row.source,
        "version": row.version,
        "jobs": followers.jobs,
        "pending_jobs": followers.pending,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def _view(row: CalendarRow, followers: Followers) -> CalendarView:
    closures = {name: row.document[name] for name in ("holidays", "blackouts")}
    return CalendarView(**_fields(row, followers), **closures)


def _summary(row: CalendarRow, followers: Followers) -> CalendarSummary:
    holidays, blackouts = len(row.document["holidays"]), len(row.document["blackouts"])
    return CalendarSummary(**_fields(row, followers), holiday_count=holidays, blackout_count=blackouts)


def _imported(view: CalendarView, imported: Imported) -> ImportedCalendar:
    unread = [UnreadView(line, message) for line, message in imported.troubles]
    return ImportedCalendar(calendar=view, events=imported.events, unread=unread)


def _labels(calendar: Calendar, body: CalendarBody) -> list[tuple[Stretch, str]]:
    """What has a name, and when it is."""
    days = [(calendar.day(each.date), each.name) for each in body.holidays if isinstance(each, HolidayBody)]
    once = [
        (window.instants(calendar.zone), each.name)
        for each in body.blackouts
        if isinstance(window := each.window, Window)
    ]
    return [(stretch, name) for stretch, name in (*days, *once) if name]


def _names_within(stretches: Sequence[Stretch], labels: Iterable[tuple[Stretch, str]]) -> list[list[str]]:
    """What is named within each of these stretches, which are disjoint and rise: there may be thousands of both."""
    names: list[list[str]] = [[] for _ in stretches]
    for label, name in labels:
        place = bisect_right(stretches, label.start, key=lambda stretch: stretch.end)
        while place < len(stretches) and stretches[place].start < label.end:
            names[place].append(name)
            place += 1
    return names
