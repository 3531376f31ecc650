"""Moving schedules on that have come up: what is on time at once, what is late a little at a time."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog

from foliot.domain.floor import Floor
from foliot.domain.misfire import GRACE, MOST_OPENED, Advance, Reach, advance
from foliot.domain.portion import Portion
from foliot.domain.schedule import Recurrence, parse_key
from foliot.domain.shards import Look
from foliot.kit import telemetry
from foliot.kit.clock import Steady
from foliot.store.calendars import Bodies
from foliot.store.database import Line
from foliot.store.schedules import DueSchedule, advance_schedules, due_schedules, endings, lock_to_fire

log = structlog.get_logger("scheduler")

MOST_KNOWN: Final = 200_000
"""Recurrences that are kept in memory."""
MOST_SCHEDULES: Final = 1_000
"""Schedules that one transaction advances at most."""
MOST_LATE: Final = 250
"""Schedules that are behind, in a transaction of their own: as many of them as open `MOST_OPENED` instants together."""
MOST_ENDINGS: Final = 1_000
"""Different ends of jobs among a schedule's late instants that are looked at one by one."""
LONGEST: Final = 0.1
"""Seconds after which no further schedule that is behind is reckoned: what comes up meanwhile waits for it."""
AT_ONCE: Final = 50
"""Schedules that are reckoned before others have their turn. One that is behind may be as much work as all of these:
250 crons of every minute that were to catch up with an hour took a second, or three on a busy machine, and a lease ends
after five."""

_Move = tuple[DueSchedule, Advance]


class Due:
    """What a look has found, and where each of it stands since."""

    def __init__(self, look: Look, found: Sequence[DueSchedule], now: datetime | None) -> None:
        """`now`: another clock's than the database's."""
        self.look = look
        self.found = found
        self.now = now
        self.late = [each for each in found if self.time(each) - each.next_at > GRACE]
        self.on_time = [each for each in found if self.time(each) - each.next_at <= GRACE]
        self._stands = {each.id: each.next_at for each in found}

    def time(self, schedule: DueSchedule) -> datetime:
        return self.now or schedule.now

    def moved(self, schedule: DueSchedule, next_at: datetime | None) -> None:
        del self._stands[schedule.id]
        if next_at is not None:
            self._stands[schedule.id] = next_at

    @property
    def done_before(self) -> datetime:
        """Before this nothing is left: not what an edit held, nor late ones that did not fit, here or in the look."""
        seen = max(each.next_at for each in self.late or self.found)
        return min([seen, *self._stands.values()])


class Advancer:
    """Any number of these may run: the cursor's compare-and-set decides who moves a schedule on."""

    def __init__(self, line: Line, floor: Floor, clock: Steady, took: Callable[[float], None]) -> None:
        """`took`: is told how long each transaction was."""
        self._line = line
        self._floor = floor
        self._clock = clock
        self._took = took
        self._known: dict[str, Recurrence] = {}
        self._calendars = Bodies()
        self._most_late = MOST_LATE
        self._portion = Portion(MOST_SCHEDULES)

    async def look(self, look: Look, now: datetime | None) -> Due:
        """Those that are on time first."""
        since = self._floor.since(look) if look.overdue is None else None
        found = await due_schedules(self._line, MOST_SCHEDULES, now, late=self._most_late, look=look, since=since)
        if found:
            await self._learn(found)
        return Due(look, found, now)

    async def on_time(self, due: Due, *, wait: bool) -> int:
        """Move on all that are on time; how many were."""
        moves: list[_Move] = []
        moved = 0
        for place, schedule in enumerate(due.on_time, 1):
            moves.append((schedule, self._decide(due, schedule, Reach())))
            if len(moves) >= self._portion.size:
                moved += await self._move(due, moves, self._portion, wait=wait)
                moves = []
            elif place % AT_ONCE == 0:
                await asyncio.sleep(0)
        return moved + await self._move(due, moves, self._portion, wait=wait)

    async def late(self, due: Due, *, wait: bool) -> int:
        """Move on as many of those that are late as make one short transaction; the others are found again."""
        began, opened = self._clock(), 0
        moves: list[_Move] = []
        reaches = await self._reaches(due)
        for schedule in due.late:
            move = self._decide(due, schedule, reaches[schedule.id])
            opened += len(move.openings)
            if moves and (opened > MOST_OPENED or self._clock() - began > LONGEST):
                break
            moves.append((schedule, move))
            await asyncio.sleep(0)
        # Asked for as many as there was room for, or a few more: where jobs of theirs end is looked up for all.
        self._most_late = MOST_LATE if len(moves) == len(due.late) else min(2 * len(moves), MOST_LATE)
        return await self._move(due, moves, wait=wait)

    def raise_floor(self, due: Due) -> None:
        if due.found and due.look.overdue is None:
            self._floor.reach(due.look, due.done_before)

    async def _move(self, due: Due, moves: Sequence[_Move], portion: Portion | None = None, *, wait: bool) -> int:
        """In one transaction; `portion` is told how long it was."""
        if not moves:
            return 0
        began = self._clock()
        async with self._line.borrow(atomic=True) as connection:
            locked = await lock_to_fire(connection, [schedule.id for schedule, _ in moves], wait=wait)
            moved = await advance_schedules(connection, [move for move in moves if move[0].id in locked], due.now)
        took = self._clock() - began
        self._took(took)
        if portion is not None:
            portion.took(len(moves), took)
        for schedule, move in moves:
            if schedule.id in moved:
                due.moved(schedule, move.next_at)
                telemetry.OCCURRENCES_MISSED.inc(move.missed)
                if move.next_at is None:
                    log.warning("a schedule has nothing more to fire, as far as can be seen", schedule=schedule.key)
                for fire in move.fires:
                    telemetry.FIRE_LATENESS.observe((due.time(schedule) - fire).total_seconds())
        return len(moved)

    async def _reaches(self, due: Due) -> dict[int, Reach]:
        """How far back the late ones are wanted."""
        ends = await endings(self._line, due.late, due.time(due.late[0]), MOST_ENDINGS)
        return {
            each.id: Reach(
                timedelta(seconds=each.latest_within),
                # So many ends that each instant may be somebody's last.
                timedelta(seconds=max(each.all_within, each.latest_within if len(found) == MOST_ENDINGS else 0)),
                found,
            )
            for each in due.late
            for found in [ends.get(each.id, [])]
        }

    async def _learn(self, due: Sequence[DueSchedule]) -> None:
        """Read the recurrences that are not known yet, with the calendars that they follow."""
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        # Not `- self._known.keys()`, which walks over all that is known.
        unknown = {each.key for each in due if each.key not in self._known}
        calendars = await self._calendars.learn(self._line.fetch, unknown)
        self._known.update({key: parse_key(key, calendars) for key in unknown})

    def _decide(self, due: Due, schedule: DueSchedule, reach: Reach) -> Advance:
        return advance(self._known[schedule.key], next_at=schedule.next_at, now=due.time(schedule), reach=reach)
