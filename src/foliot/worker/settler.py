"""Writes down how attempts ended: while one statement is in flight, the next batch gathers."""

import asyncio
from collections import Counter
from collections.abc import Callable, Container, Sequence
from datetime import timedelta
from operator import attrgetter
from typing import Final

import msgspec
import structlog

from foliot.domain.ids import encode
from foliot.domain.outcome import Ending
from foliot.kit import telemetry
from foliot.store.dispatch import Claimed, Settlement
from foliot.store.recovery import Refused, is_contended, is_gone
from foliot.worker.port import Carrier

log = structlog.get_logger("worker")

LARGEST_BATCH: Final = 2_000
FEW_TIED: Final = 20
"""So many runs that others wait for are settled together in any case."""
TRY_AGAIN: Final = timedelta(seconds=0.5)
"""Between two tries of an outcome that could not be recorded: others are not kept waiting by it."""
FORGET_EVERY: Final = 0.2
"""Seconds between two removals of claims that are over, as long as outcomes wait, which come first."""
_LONGEST_DELAY: Final = timedelta(days=30)

_FAILED: Final = frozenset({Ending.FAILED, Ending.TIMED_OUT, Ending.UNKNOWN})
_ENDING: Final = attrgetter("outcome.ending")
_FENCE: Final = attrgetter("run.fence")


class Settler:
    """Keeps outcomes until they are on record, however long the database is away.

    One that cannot be recorded fails alone. If it is the outcome itself that the database cannot keep, it is recorded
    with other words; if its rows are locked, it is set aside and tried again now and then.
    """

    def __init__(
        self,
        carrier: Carrier,
        lost: Callable[[list[Settlement]], None],
        failed: Callable[[Sequence[Settlement]], None] = lambda _: None,
    ) -> None:
        """`lost` hears of outcomes that were not taken, `failed` of attempts that went wrong."""
        self._carrier = carrier
        self._lost = lost
        self._failed = failed
        self._ended: list[Settlement] = []
        self._aside: list[Settlement] = []
        self._try_again = float("-inf")
        self.something = asyncio.Event()
        self._left: Counter[int] = Counter()
        self._over: list[int] = []
        self._forgot = float("-inf")
        self._drained = asyncio.Event()
        self._drained.set()
        self._portioned = 0
        self.settled = 0

    @property
    def backlog(self) -> int:
        return len(self._ended) + len(self._aside)

    @property
    def empty(self) -> bool:
        return not self._ended and not self._aside and not self._over

    @property
    def rest(self) -> timedelta | None:
        """How long to wait for more at most."""
        return TRY_AGAIN if self._aside else None

    @property
    def fences(self) -> list[int]:
        """Claims that are known here and may still stand."""
        return [*self._left, *self._over]

    def ends_any(self, runs: Container[Claimed]) -> bool:
        """Whether the end of one of these is about to be recorded."""
        return any(each.run in runs for each in self._ended)

    def expect(self, fence: int, runs: int) -> None:
        """A claim is forgotten when all its runs have been settled."""
        self._left[fence] = runs

    def add(self, settlement: Settlement) -> None:
        self._ended.append(settlement)
        if not self.something.is_set():
            self._drained.clear()
            self.something.set()

    async def drained(self) -> None:
        """Return when everything that ended is on record."""
        await self._drained.wait()

    async def run_once(self) -> int:
        """Settle one batch; how many were recorded. What fails stays for the next time."""
        self.something.clear()
        before = self.settled
        if self._ended:
            await self._settle(self._ended, 0, self._portion())
        await self._settle_aside()
        await self._forget()
        if self.empty:
            self._drained.set()
        return self.settled - before

    def _portion(self) -> int:
        """How many of those that ended are settled next: of tied runs that have grown many, a half.

        Under a limit all that may go end together, and claims and settlements would wait for each other. So what takes
        the place of the first half is claimed, and runs, while the other half is settled, and it stays at that.
        """
        count = min(len(self._ended), LARGEST_BATCH)
        if count > max(FEW_TIED, self._portioned * 3 // 2) and self._ended[0].run.tied:
            count //= 2
        self._portioned = count
        return count

    async def _settle(self, queue: list[Settlement], first: int, count: int) -> int:
        """Record `count` outcomes of a queue and take them out of it; how many stay there.

        What failed together is tried apart, half by half: one that cannot be recorded must not keep back the others.
        """
        batch = queue[first : first + count]
        try:
            lost = await self._carrier.settle(batch)
        except Exception as error:
            if is_gone(error) or isinstance(error, Refused):
                raise
            if count == 1:
                return await self._settle_alone(queue, first, error)
            half = count // 2
            stay = await self._settle(queue, first, half)
            return stay + await self._settle(queue, first + stay, count - half)
        if lost:
            self._lost(lost)
        del queue[first : first + count]
        self._count(batch)
        return 0

    async def _settle_alone(self, queue: list[Settlement], index: int, error: Exception) -> int:
        settlement = queue[index]
        said = log.bind(run=encode("run", settlement.run.id), error=str(error))
        if not is_contended(error) and (plain := _in_other_words(settlement, error)) != settlement:
            said.error("an outcome cannot be kept as it is: it is recorded in other words")
            queue[index] = plain
            return await self._settle(queue, index, 1)
        if queue is self._aside:
            return 1
        if not is_contended(error):
            said.error("an outcome cannot be recorded: it is set aside and tried again")
        self._aside.append(queue.pop(index))
        self._try_again = asyncio.get_running_loop().time() + TRY_AGAIN.total_seconds()
        return 0

    async def _settle_aside(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._aside and now >= self._try_again:
            await self._settle(self._aside, 0, len(self._aside))
            self._try_again = now + TRY_AGAIN.total_seconds()

    async def _forget(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._over and (not self._ended or now - self._forgot >= FORGET_EVERY):
            over, self._forgot = self._over[:], now
            await self._carrier.forget(over)
            del self._over[: len(over)]

    def _count(self, batch: list[Settlement]) -> None:
        self.settled += len(batch)
        endings = Counter(map(_ENDING, batch))
        for ending, count in endings.items():
            telemetry.ATTEMPTS.labels(ending.word).inc(count)
        if not _FAILED.isdisjoint(endings):
            self._failed([each for each in batch if each.outcome.ending in _FAILED])
        for fence, count in Counter(map(_FENCE, batch)).items():
            self._left[fence] -= count
            if not self._left[fence]:
                del self._left[fence]
                self._over.append(fence)


def _in_other_words(settlement: Settlement, error: Exception) -> Settlement:
    """The same ending with nothing in it that the database might refuse; a success has nothing of the kind."""
    outcome = settlement.outcome
    if outcome.ending in {Ending.COMPLETED, Ending.RELEASED}:
        return settlement
    said = f"the attempt {outcome.ending.word}; what it said could not be kept ({type(error).__name__})"
    delay = None if outcome.delay is None else min(max(outcome.delay, timedelta()), _LONGEST_DELAY)
    return msgspec.structs.replace(settlement, outcome=msgspec.structs.replace(outcome, error=said, delay=delay))
