"""Going over to a newer edition of the time zone database: fires that it puts elsewhere are put there.

A process that is killed has recorded nothing, and whoever comes next goes through all schedules again. What has been
fired stays fired: only what follows a schedule's cursor is reckoned anew.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import structlog

from foliot.domain.schedule import next_fire, parse_key, zones_of
from foliot.kit.zonedata import UNKNOWN
from foliot.store import zones
from foliot.store.calendars import Bodies
from foliot.store.database import Database
from foliot.store.zones import Edition, WallClockSchedule

log = structlog.get_logger("scheduler")

CHUNK: Final = 1_000
"""Schedules that are looked up at a time."""
_AT_ONCE: Final = 50
"""Schedules that are reckoned before others have their turn: fires must not wait for it."""
_NAMED: Final = 5
_REST: Final = 3600.0
_SOON: Final = 1.0

_Moves = list[tuple[WallClockSchedule, datetime | None]]


class Rezone:
    """Any number of these may run. One with an older edition than the recorded one changes nothing.

    Each goes through all schedules when it starts, also if its edition is on record: a process with an older one may
    have gone on firing after that, and put fires where it thought they belong.
    """

    def __init__(self, database: Database, version: str) -> None:
        self._database = database
        self._version = version
        self._calendars = Bodies()
        self._is_done = version == UNKNOWN
        self._is_outdated = False
        self._moved = 0
        self._zones: set[str] = set()

    async def run_once(self) -> int:
        """Put all schedules where this edition says, unless that has been done; how many were put elsewhere."""
        recorded = await zones.latest(self._database)
        if self._version == UNKNOWN or not self._is_called_for(recorded):
            return 0
        moved, is_whole = await self._walk()
        self._moved += moved
        if is_whole:
            await self._record(recorded)
        return moved

    async def pause(self) -> float:
        return _REST if self._is_done else _SOON

    async def close(self) -> None:
        """There is nothing of its own to close."""

    def _is_called_for(self, recorded: Edition | None) -> bool:
        if recorded is None or recorded.version <= self._version:
            return not self._is_done or recorded is None or recorded.version < self._version
        if not self._is_outdated:
            hint = "upgrade the time zone data of this machine and restart"
            log.warning("older time zone data than others", here=self._version, there=recorded.version, hint=hint)
        self._is_done = self._is_outdated = True
        return False

    async def _walk(self) -> tuple[int, bool]:
        """Also says whether nothing was left out because somebody else had it at that moment."""
        found, moved, after = 0, 0, 0
        while schedules := await zones.wall_clock_schedules(self._database, after, CHUNK):
            after = schedules[-1].id
            moves = await self._reckon(schedules)
            found += len(moves)
            if moves:
                moved += await self._put(moves)
        return moved, moved == found

    async def _reckon(self, schedules: Sequence[WallClockSchedule]) -> _Moves:
        """Those that fire at another time than they are about to."""
        calendars = await self._calendars.learn(self._database.fetch, [each.key for each in schedules])
        moves: _Moves = []
        for place, each in enumerate(schedules):
            recurrence = parse_key(each.key, calendars)
            if zones_of(recurrence) and (following := next_fire(recurrence, each.cursor)) != each.next_at:
                moves.append((each, following))
                self._zones |= zones_of(recurrence)
            if place % _AT_ONCE == 0:
                await asyncio.sleep(0)
        return moves

    async def _put(self, moves: _Moves) -> int:
        async with self._database.transaction() as connection:
            return len(await zones.put_elsewhere(connection, moves, self._version))

    async def _record(self, before: Edition | None) -> None:
        if before is None or before.version != self._version or self._moved:
            await zones.record(self._database, self._version, self._moved)
        if self._moved:
            named = sorted(self._zones)[:_NAMED]
            was = None if before is None else before.version
            log.warning("newer time zone data", version=self._version, before=was, moved=self._moved, zones=named)
        self._is_done, self._moved, self._zones = True, 0, set()
