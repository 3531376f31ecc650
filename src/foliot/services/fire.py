"""Turning instants into runs: advances the schedules that have come up, then makes their jobs' runs in chunks."""

from datetime import datetime
from typing import Final

from foliot.domain.misfire import Advance, advance
from foliot.domain.schedule import Recurrence, parse_key
from foliot.kit import telemetry
from foliot.store.database import Database
from foliot.store.dispatch import reserve
from foliot.store.recovery import is_contended
from foliot.store.schedules import (
    DueSchedule,
    OpenFiring,
    advance_schedules,
    due_schedules,
    fire_chunk,
    firing_flows,
    lock_to_fire,
    open_firings,
    rest_schedules,
    seconds_to_next_fire,
)

MOST_SCHEDULES: Final = 1_000
"""Schedules that one transaction advances."""
CHUNK: Final = 2_000
"""Runs that one transaction makes: keeps it well under 100 ms, so that edits of the same schedule need not wait."""


class Firer:
    """Any number of these may run: the cursor's compare-and-set and the firing's progress decide who fires what."""

    def __init__(self, database: Database) -> None:
        self._line = database.line(hot=False, lock_timeout="300ms")
        self._ranks = database.line(synchronous_commit="off")
        self._known: dict[str, Recurrence] = {}
        self._abreast = MOST_SCHEDULES

    async def run_once(self, now: datetime | None = None) -> int:
        """Advance what has come up and do one chunk of open firings; how much there was to do.

        Edits are waited for, so that a stream of them cannot starve a schedule, but not for long: one that hangs must
        not hold up the others.
        """
        for wait in (True, False):
            try:
                return await self._advance(now, wait=wait) + await self._make_runs(wait=wait)
            except Exception as error:
                if not is_contended(error):
                    raise
        return 0

    async def pause(self, longest: float = 1.0) -> float:
        """Seconds to the next instant, at most `longest`."""
        seconds = await seconds_to_next_fire(self._line)
        return longest if seconds is None else min(max(seconds, 0.0), longest)

    async def close(self) -> None:
        await self._line.close()
        await self._ranks.close()

    async def _advance(self, now: datetime | None, *, wait: bool = True) -> int:
        due = await due_schedules(self._line, MOST_SCHEDULES, now)
        moves = [(schedule, self._decide(schedule, now)) for schedule in due]
        if not moves:
            return 0
        async with self._line.borrow(atomic=True) as connection:
            locked = await lock_to_fire(connection, [schedule.id for schedule in due], wait=wait)
            moved = await advance_schedules(connection, [move for move in moves if move[0].id in locked])
        for schedule, move in moves:
            if schedule.id in moved:
                telemetry.OCCURRENCES_MISSED.inc(move.missed)
                if move.fire is not None:
                    lateness = (now or schedule.now) - move.fire
                    telemetry.FIRE_LATENESS.observe(lateness.total_seconds())
        return len(moved)

    def _decide(self, due: DueSchedule, now: datetime | None) -> Advance:
        recurrence = self._known.get(due.key)
        if recurrence is None:
            if len(self._known) > 200_000:
                self._known.clear()
            recurrence = self._known[due.key] = parse_key(due.key)
        return advance(recurrence, next_at=due.next_at, now=now or due.now)

    async def _make_runs(self, *, wait: bool = True) -> int:
        found = await open_firings(self._line, self._abreast, CHUNK)
        if not found:
            return 0
        firings = _as_many_as_fit(found)
        # Large ones are asked for few at a time: to find the end of its next chunk, each one's members are walked.
        self._abreast = MOST_SCHEDULES if len(firings) == len(found) else 2 * len(firings)
        counts, weights = await firing_flows(self._line, firings)
        ranks = await reserve(self._ranks, counts, weights, CHUNK)
        async with self._line.borrow(atomic=True) as connection:
            locked = await lock_to_fire(connection, [firing.schedule for firing in firings], wait=wait)
            mine = [firing for firing in firings if firing.schedule in locked]
            if not mine:
                return 0
            made = await fire_chunk(connection, mine, CHUNK, ranks, weights)
        if deserted := [firing.schedule for firing in mine if not firing.members and not firing.done_through]:
            async with self._line.borrow(atomic=True) as connection:
                await rest_schedules(connection, deserted)
        telemetry.RUNS_FIRED.inc(made.fired)
        telemetry.OCCURRENCES_SKIPPED.inc(made.skipped)
        return len(mine)


def _as_many_as_fit(firings: list[OpenFiring]) -> list[OpenFiring]:
    """Many small firings, or one chunk of a large one."""
    taken: list[OpenFiring] = []
    size = 0
    for firing in firings:
        if taken and size + firing.members > CHUNK:
            break
        taken.append(firing)
        size += firing.members
    return taken
