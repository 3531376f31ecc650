"""Letting jobs follow a calendar that has changed: they are moved, some at a time, to what it says now.

A move is what an edit is for owners: instants up to it belong to the schedule before, later ones to the new one. A
process that is killed leaves jobs that follow the version before; whoever looks next finds them.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

import structlog

from foliot.domain.errors import Conflict, FoliotError
from foliot.domain.job import Draft
from foliot.domain.schedule import calendar_of
from foliot.store.calendars import CalendarBook
from foliot.store.database import Database, Row
from foliot.store.reading import JobRow
from foliot.wire.calendars import Calendars, UnknownCalendars

log = structlog.get_logger("scheduler")

CHUNK: Final = 100
"""Jobs that one transaction moves: their schedules are locked meanwhile, and others want to fire and edit."""

Move = Callable[[int, Sequence[int], Callable[[JobRow], Draft | None]], Awaitable[int]]
"""Of a tenant some jobs, to the schedules of what is made of their present rows."""
Redraft = Callable[[int, JobRow, Calendars], Draft]


class Recalendar:
    """Any number of these may run: a move that comes second finds nothing to do."""

    def __init__(self, database: Database, move: Move, redraft: Redraft) -> None:
        self._line = database.line(hot=False)
        self._book = CalendarBook(database)
        self._move = move
        self._redraft = redraft

    async def run_once(self) -> int:
        """Move all jobs of the calendars that have changed; how many were moved."""
        moved = 0
        for calendar, version in await self._line.fetch("calendars_behind"):
            moved += await self._move_all(calendar)
            await self._line.fetch("settle_calendar", calendar, version)
        return moved

    async def pause(self) -> float:
        return 1.0

    async def close(self) -> None:
        await self._line.close()

    async def _move_all(self, calendar: int) -> int:
        moved, after = 0, 0
        while jobs := await self._line.fetch("jobs_behind", calendar, after, CHUNK):
            moved += await self._move_some(jobs)
            after = jobs[-1]["id"]
        return moved

    async def _move_some(self, jobs: Sequence[Row]) -> int:
        """All are of one calendar. Those that their owners change meanwhile are found by the next round, if need be."""
        tenant, name = jobs[0]["tenant"], jobs[0]["name"]

        async def move(calendars: Calendars) -> int:
            return await self._move(tenant, [job["id"] for job in jobs], partial(self._redrafted, tenant, calendars))

        try:
            return await self._book.resolving(tenant, move, names=[name])
        except Conflict:
            return 0  # it is being changed again and again

    def _redrafted(self, tenant: int, calendars: Calendars, row: JobRow) -> Draft | None:
        try:
            draft = self._redraft(tenant, row, calendars)
        except UnknownCalendars:
            return None  # it follows another one by now
        except FoliotError as error:
            log.warning("a job cannot follow its calendar", job=row.id, calendars=[*calendars.found], error=str(error))
            return None
        followed = None if row.schedule_key is None else calendar_of(row.schedule_key)
        if draft.calendar is None or followed in {each.calendar.digest for each in calendars.found.values()}:
            return None
        return draft
