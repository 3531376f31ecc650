"""Running back-fills: hands out the next instants as the runs before them end."""

from collections import Counter
from typing import Final

from foliot.kit import telemetry
from foliot.store import operations
from foliot.store.database import Database
from foliot.store.dispatch import Flow, reserve
from foliot.store.operations import Fed, Hungry

MOST_OPERATIONS: Final = 500
"""Operations that one transaction serves."""
CHUNK: Final = 1_000
"""Runs that one transaction makes."""
SHORTEST: Final = 0.05
LONGEST: Final = 0.5
"""Seconds between looks while there is something to look after: short after something happened."""
IDLE: Final = 1.0
"""Seconds between looks for new operations; a hint comes sooner."""


class Backfiller:
    """Any number of these may run: an operation is served by whoever has its row."""

    def __init__(self, database: Database) -> None:
        self._line = database.line(lock_timeout="300ms")
        self._ranks = database.line(synchronous_commit="off")
        self._above = 0
        self._nap = SHORTEST

    async def run_once(self) -> int:
        """Count what has ended and hand out what there is room for; how much there was to do."""
        served, ended = await self._account()
        fed = await self._feed(served)
        telemetry.RUNS_BACKFILLED.inc(fed.made)
        found = ended + fed.made + fed.skipped
        if found:
            self._nap = SHORTEST
        return found

    async def pause(self) -> float:
        """Seconds to the next look."""
        if self._above:
            return 0.0
        if not await operations.are_unfinished(self._line):
            return IDLE
        nap, self._nap = self._nap, min(self._nap * 1.5, LONGEST)
        return nap

    async def close(self) -> None:
        await self._line.close()
        await self._ranks.close()

    async def _account(self) -> tuple[list[int], int]:
        """See what became of the runs of some operations; which operations, and how much was found."""
        async with self._line.borrow(atomic=True) as connection:
            mine = await operations.lock_unfinished(connection, self._above, MOST_OPERATIONS)
            self._above = mine[-1] if len(mine) == MOST_OPERATIONS else 0
            if not mine:
                return [], 0
            await operations.stop_orphans(connection, mine)
            if waiting := await operations.with_waiting_runs(connection, mine):
                await operations.cancel_waiting_runs(connection, waiting, wait=False)
            ended = await operations.note_ended(connection, mine)
            return mine, ended + await operations.finish(connection, mine)

    async def _feed(self, served: list[int]) -> Fed:
        """Hand out runs. Ranks are reserved before the lock is taken, for as many as there seems to be room."""
        wanted = _shared(await operations.hungry(self._line, served)) if served else []
        if not wanted:
            return Fed(0, 0)
        counts: Counter[Flow] = Counter()
        for each in wanted:
            counts[each.flow] += each.room
        weights = {each.tenant: each.weight for each in wanted}
        ranks = await reserve(self._ranks, counts, weights, counts.total())
        async with self._line.borrow(atomic=True) as connection:
            held = await operations.lock_to_feed(connection, [each.id for each in wanted])
            mine = [each for each in wanted if each.id in held]
            return await operations.feed(connection, mine, ranks, counts) if mine else Fed(0, 0)


def _shared(wanted: list[Hungry]) -> list[Hungry]:
    """What fits into one transaction, the same for each that wants so much."""
    share = max(1, CHUNK // len(wanted)) if wanted else 0
    return [each._replace(room=min(each.room, share)) for each in wanted]
