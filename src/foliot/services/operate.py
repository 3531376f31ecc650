"""Carrying operations out: hands out what comes next as the runs before it end, and counts what has become of them."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from foliot.domain.ids import encode
from foliot.domain.operation import OperationKind
from foliot.domain.pace import allowance, used
from foliot.kit import telemetry
from foliot.store import letters, operations, sweeps
from foliot.store.database import Connection, Database
from foliot.store.flows import Flow, reserve
from foliot.store.letters import Rankable
from foliot.store.operations import Fed, Hungry
from foliot.store.recovery import is_contended
from foliot.store.sweeps import HungrySweep, Step

MOST_OPERATIONS: Final = 500
"""Operations that one transaction serves."""
CHUNK: Final = 1_000
"""Runs that one transaction makes, and dead letters that one deals with."""
SHORTEST: Final = 0.05
LONGEST: Final = 0.5
"""Seconds between looks while there is something to look after: short after something happened."""
IDLE: Final = 1.0
"""Seconds between looks for new operations; a hint comes sooner."""


class Operator:
    """Any number of these may run: an operation is served by whoever has its row."""

    def __init__(self, database: Database) -> None:
        self._line = database.line(lock_timeout="300ms")
        self._ranks = database.line(synchronous_commit="off")
        self._above = 0
        self._nap = SHORTEST

    async def run_once(self, now: datetime | None = None) -> int:
        """Count what has ended and hand out what there is room for; how much there was to do."""
        served, ended = await self._account()
        fed = await self._feed(served)
        telemetry.RUNS_BACKFILLED.inc(fed.made)
        found = ended + fed.made + fed.skipped + await self._sweep(served, now)
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
        """Hand out runs of back-fills. Ranks are reserved before the lock, for as many as there seems to be room."""
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

    async def _sweep(self, served: list[int], now: datetime | None) -> int:
        """Deal with the next dead letters of replays and discards; how many there were."""
        found = 0
        for sweep in await sweeps.hungry_sweeps(self._line, served, now) if served else []:
            try:
                found += await self._sweep_one(sweep)
            except Exception as error:
                if not is_contended(error):  # a job that is being edited: others must not wait for it
                    raise
        return found

    async def _sweep_one(self, sweep: HungrySweep) -> int:
        limit = _limit(sweep)
        if not limit:
            return 0
        taken = await sweeps.next_letters(self._line, sweep, limit)
        ranks = await self._ranked(taken) if sweep.kind is OperationKind.REPLAY else {}
        async with self._line.borrow(atomic=True) as connection:
            if not await sweeps.lock_sweep(connection, sweep):
                return 0
            if sweep.kind is OperationKind.REPLAY:
                done = await _replay(connection, sweep, ranks)
            else:
                done = await _discard(connection, sweep, [each.id for each in taken])
            await sweeps.move_sweep(connection, sweep, _step(sweep, taken, done, is_last=len(taken) < limit))
        counter = telemetry.LETTERS_REPLAYED if sweep.kind is OperationKind.REPLAY else telemetry.LETTERS_DISCARDED
        counter.inc(len(done))
        return len(taken)

    async def _ranked(self, taken: Sequence[Rankable]) -> dict[int, int]:
        """Each with a rank in its flow, behind what waits there already."""
        counts: Counter[Flow] = Counter(each.flow for each in taken)
        ranks = await reserve(self._ranks, counts, {each.tenant: each.weight for each in taken}, 0)
        return {each.id: ranks.take(each.flow) for each in taken}


def _limit(sweep: HungrySweep) -> int:
    room = min(sweep.room, CHUNK)
    if sweep.per_second is None:
        return room
    return min(room, allowance(sweep.per_second, sweep.paced_until, sweep.now))


async def _replay(connection: Connection, sweep: HungrySweep, ranks: dict[int, int]) -> list[int]:
    note = f"replayed by {encode('op', sweep.id)}"
    told = await letters.replay(connection, sweep.tenant, ranks, note, sweep.created_at)
    return [each.id for each in told if each.done]


async def _discard(connection: Connection, sweep: HungrySweep, numbers: list[int]) -> list[int]:
    note = f"discarded by {encode('op', sweep.id)}"
    return await letters.discard(connection, sweep.tenant, numbers, note, sweep.created_at)


def _step(sweep: HungrySweep, taken: Sequence[Rankable], done: Sequence[int], *, is_last: bool) -> Step:
    pace = sweep.per_second
    return Step(
        done=done,
        refused=len(taken) - len(done),
        is_last=is_last,
        done_through=taken[-1].id if taken else sweep.done_through,
        paced_until=None if pace is None else used(pace, sweep.paced_until, sweep.now, len(done)),
    )


def _shared(wanted: list[Hungry]) -> list[Hungry]:
    """What fits into one transaction, the same for each that wants so much."""
    share = max(1, CHUNK // len(wanted)) if wanted else 0
    return [each._replace(room=min(each.room, share)) for each in wanted]
