"""Letting jobs follow a calendar that has changed: each is edited, in turn, to what its calendar says now.

An edit is what it is for owners: instants up to it belong to the schedule before, later ones to the new one. A process
that is killed leaves jobs that follow the version before; whoever looks next finds them.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import structlog

from foliot.domain.errors import Conflict, FoliotError, NotFound
from foliot.domain.job import Draft
from foliot.domain.schedule import calendar_of
from foliot.store.calendars import CalendarBook
from foliot.store.database import Database, Row
from foliot.store.reading import JobRow
from foliot.wire.calendars import Calendars

log = structlog.get_logger("scheduler")

CHUNK: Final = 200
"""Jobs that are looked up at a time."""

Change = Callable[[int, int, Callable[[JobRow], Draft]], Awaitable[object]]
"""An edit: of a tenant, a job, to what is made of its present row."""
Redraft = Callable[[int, JobRow, Calendars], Draft]


class _FollowsError(Exception):
    """The job follows the calendar as it is already, or follows none any more."""


class Recalendar:
    """Any number of these may run: an edit that comes second finds nothing to do."""

    def __init__(self, database: Database, change: Change, redraft: Redraft) -> None:
        self._line = database.line(hot=False)
        self._book = CalendarBook(database)
        self._change = change
        self._redraft = redraft

    async def run_once(self) -> int:
        """Move all jobs of the calendars that have changed; how many were moved."""
        moved = 0
        for calendar, version in await self._line.fetch("calendars_behind"):
            moved += await self._move_jobs(calendar)
            await self._line.fetch("settle_calendar", calendar, version)
        return moved

    async def pause(self) -> float:
        return 1.0

    async def close(self) -> None:
        await self._line.close()

    async def _move_jobs(self, calendar: int) -> int:
        moved, after = 0, 0
        while jobs := await self._line.fetch("jobs_behind", calendar, after, CHUNK):
            for job in jobs:
                moved += await self._move(job)
            after = jobs[-1]["id"]
        return moved

    async def _move(self, job: Row) -> bool:
        tenant, number = job["tenant"], job["id"]

        async def change(calendars: Calendars) -> None:
            await self._change(tenant, number, partial(self._redrafted, tenant, calendars))

        try:
            await self._book.resolving(tenant, change, names=[job["name"]])
        except (_FollowsError, NotFound, Conflict):
            return False  # overtaken by its owner; if it is still behind, the next round finds it
        except FoliotError as error:
            log.warning("a job cannot follow its calendar", job=number, calendar=job["name"], error=str(error))
            return False
        return True

    def _redrafted(self, tenant: int, calendars: Calendars, row: JobRow) -> Draft:
        draft = self._redraft(tenant, row, calendars)
        followed = None if row.schedule_key is None else calendar_of(row.schedule_key)
        if draft.calendar is None or followed in {each.calendar.digest for each in calendars.found.values()}:
            raise _FollowsError
        return draft
