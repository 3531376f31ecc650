"""Turning instants into runs: advances the schedules that have come up, then makes their jobs' runs in chunks."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Final

from foliot.domain.floor import GATHER, Floor
from foliot.domain.portion import Portion
from foliot.domain.shards import EVERYTHING, Look, Rounds
from foliot.kit import telemetry
from foliot.kit.clock import Steady, steady
from foliot.services.fire.advance import MOST_SCHEDULES, Advancer
from foliot.store.admission import enter
from foliot.store.database import Database
from foliot.store.flows import reserve
from foliot.store.graphs import NO_GRAPHS, fire_graphs
from foliot.store.recovery import is_contended
from foliot.store.schedules import (
    OpenFiring,
    fire_chunk,
    firing_flows,
    lock_to_fire,
    open_firings,
    rest_schedules,
    seconds_to_next_fire,
)

CHUNK: Final = 2_000
"""Runs that one transaction makes at most: 40 ms of work on an idle machine, and fewer where it takes longer."""
FIRST_CHUNK: Final = 500
"""Of a large firing: workers begin with these while the others are made. With two thousand at once they stood idle for
as long as that took, and had all of them to do then."""
LATE_TURN: Final = 50
"""Rounds after which what is late has a turn, though each of them found something that was on time: a second of a
stream so dense that no round is ever idle."""
UNPACED: Final = float("inf")


class Firer:
    """Any number of these may run: the cursor's compare-and-set and the firing's progress decide who fires what.

    What is on time never waits for more than one short transaction of what is late: of that, instants are opened after
    the runs of a round are made, and runs are made only while nothing that is on time is left to do, no more than
    `catch_up_rate` of them a second.
    """

    def __init__(
        self,
        database: Database,
        catch_up_rate: float = UNPACED,
        *,
        shards: Callable[[], frozenset[int] | None] = lambda: None,
        clock: Steady = steady,
    ) -> None:
        """`shards`: those to look after, all if none."""
        # No commit is waited for. Should one be lost with the server, the instant is open or due again, and nobody has
        # seen a run of it: a claim is waited for, and is durable only with all that was committed before it.
        self._line = database.line(hot=False, lock_timeout="300ms", synchronous_commit="off")
        self._ranks = database.line(synchronous_commit="off")
        self._portion = Portion(CHUNK)
        self._abreast = {False: MOST_SCHEDULES, True: MOST_SCHEDULES}
        self._rate = catch_up_rate
        self._late_from = 0.0
        self._clock = clock
        self._longest = 0.0
        self._rounds = Rounds(shards, clock)
        self._floor = Floor(clock)
        self._advancer = Advancer(self._line, self._floor, clock, self._tell)
        self._more = False
        self._passed = 0

    async def run_once(self, now: datetime | None = None) -> int:
        """Advance what has come up and do one chunk of open firings; how much there was to do.

        Edits are waited for, so that a stream of them cannot starve a schedule, but not for long: one that hangs must
        not hold up the others.
        """
        self._more = False
        done = await self._sweep(now)
        if (mine := self._rounds.mine()) is None:
            return done
        for wait in (True, False):
            try:
                return done + await self._fire(now, mine, wait=wait)
            except Exception as error:
                if not is_contended(error):
                    raise
        return done

    async def _sweep(self, now: datetime | None) -> int:
        """Do what others should have done long ago; nobody is waited for."""
        if (others := self._rounds.others()) is None:
            return 0
        try:
            done = await self._fire(now, others, wait=False)
        except Exception as error:
            if not is_contended(error):
                raise
            return 0
        if done:
            telemetry.OVERDUE_TAKEN.inc(done)
            self._rounds.sweep_again()
        return done

    def apart(self) -> float:
        """How far from each other rounds begin that find work, in seconds: not at all while more is left to do."""
        return 0.0 if self._more else GATHER

    async def pause(self, longest: float = 1.0) -> float:
        """Seconds to the next instant, or to the next chunk of what is late; at most `longest`."""
        if (held := self._late_from - asyncio.get_running_loop().time()) > 0:
            longest = min(longest, held)
        if (mine := self._rounds.mine()) is None:
            return longest
        seconds = await seconds_to_next_fire(self._line, mine, self._floor.since(mine))
        return longest if seconds is None else min(max(seconds, 0.0), longest)

    async def close(self) -> None:
        await self._line.close()
        await self._ranks.close()

    async def _fire(self, now: datetime | None, look: Look, *, wait: bool) -> int:
        due = await self._advancer.look(look, now)
        self._more |= len(due.on_time) >= MOST_SCHEDULES
        found = await self._advancer.on_time(due, wait=wait) + await self._make_runs(look, wait=wait)
        if due.late and (not self._more or self._passed % LATE_TURN == LATE_TURN - 1):
            found += await self._advancer.late(due, wait=wait)
        self._advancer.raise_floor(due)
        if found and (self._more or self._passed < LATE_TURN):
            self._passed += 1
            return found
        self._passed = 0
        return found + await self._catch_up(look, wait=wait)

    async def _catch_up(self, look: Look, *, wait: bool) -> int:
        loop = asyncio.get_running_loop()
        if loop.time() < self._late_from:
            return 0
        return await self._make_runs(look, wait=wait, late=True)

    async def _make_runs(self, look: Look = EVERYTHING, *, wait: bool = True, late: bool = False) -> int:
        chunk = self._portion.size
        found = await open_firings(
            self._line, self._abreast[late], chunk, first=min(FIRST_CHUNK, chunk), late=late, look=look
        )
        if not found:
            return 0
        firings = _as_many_as_fit(found, chunk)
        # Large ones are asked for few at a time: to find the end of its next chunk, each one's members are walked.
        self._abreast[late] = MOST_SCHEDULES if len(firings) == len(found) else 2 * len(firings)
        self._more |= len(firings) < len(found) or not all(firing.is_last for firing in firings)
        awaited = await firing_flows(self._line, firings)
        # One id, and the block that it begins: there is room in it for both kinds of firings.
        ranks = await reserve(self._ranks, awaited.counts, awaited.weights, 1)
        began = self._clock()
        async with self._line.borrow(atomic=True) as connection:
            locked = await lock_to_fire(connection, [firing.schedule for firing in firings], wait=wait)
            mine = [firing for firing in firings if firing.schedule in locked]
            if not mine:
                return 0
            graphs = await fire_graphs(connection, mine) if awaited.graphs else NO_GRAPHS
            made = await fire_chunk(connection, mine, ranks, awaited)
            await enter(connection, made.entering)
        took = self._clock() - began
        self._portion.took(sum(firing.members for firing in mine), took)
        self._tell(took)
        if deserted := [firing.schedule for firing in mine if not firing.members and not firing.done_through]:
            async with self._line.borrow(atomic=True) as connection:
                await rest_schedules(connection, deserted)
        if late:
            self._late_from = asyncio.get_running_loop().time() + (made.fired + graphs.fired) / self._rate
        telemetry.RUNS_FIRED.inc(made.fired + graphs.fired)
        telemetry.OCCURRENCES_SKIPPED.inc(made.skipped + graphs.skipped)
        telemetry.OCCURRENCES_PASSED_OVER.inc(made.passed_over)
        return len(mine)

    def _tell(self, seconds: float) -> None:
        self._longest = max(self._longest, seconds)
        telemetry.LONGEST_FIRING.set(self._longest)


def _as_many_as_fit(firings: list[OpenFiring], chunk: int) -> list[OpenFiring]:
    """Many small firings, and one chunk of a large one; of a schedule only one, so that maxRuns counts one by one."""
    taken: dict[int, OpenFiring] = {}
    room = {False: chunk, True: chunk}
    for firing in firings:
        large = not firing.is_last
        if firing.members <= room[large] and firing.schedule not in taken:
            taken[firing.schedule] = firing
            room[large] -= firing.members
    return list(taken.values())
