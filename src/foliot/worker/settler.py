"""Writes down how attempts ended: while one statement is in flight, the next batch gathers."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Final

from foliot.kit import telemetry
from foliot.store.dispatch import Settlement
from foliot.worker.port import Carrier

LARGEST_BATCH: Final = 2_000


class Settler:
    """Keeps outcomes until they are on record, however long the database is away."""

    def __init__(self, carrier: Carrier, lost: Callable[[list[Settlement]], None]) -> None:
        self._carrier = carrier
        self._lost = lost
        self._ended: list[Settlement] = []
        self.something = asyncio.Event()
        self._left: Counter[int] = Counter()
        self._over: list[int] = []
        self._drained = asyncio.Event()
        self._drained.set()
        self.settled = 0

    @property
    def backlog(self) -> int:
        return len(self._ended)

    @property
    def empty(self) -> bool:
        return not self._ended and not self._over

    @property
    def fences(self) -> list[int]:
        """Claims that are known here and may still stand."""
        return [*self._left, *self._over]

    def expect(self, fence: int, runs: int) -> None:
        """A claim is forgotten when all its runs have been settled."""
        self._left[fence] = runs

    def add(self, settlement: Settlement) -> None:
        self._ended.append(settlement)
        self._drained.clear()
        self.something.set()

    async def drained(self) -> None:
        """Return when everything that ended is on record."""
        await self._drained.wait()

    async def run_once(self) -> int:
        """Settle one batch; how many there were. What fails stays for the next time."""
        self.something.clear()
        batch = self._ended[:LARGEST_BATCH]
        if batch:
            if lost := await self._carrier.settle(batch):
                self._lost(lost)
            del self._ended[: len(batch)]
            self._count(batch)
        if self._over:
            over = self._over[:]
            await self._carrier.forget(over)
            del self._over[: len(over)]
        if self.empty:
            self._drained.set()
        return len(batch)

    def _count(self, batch: list[Settlement]) -> None:
        self.settled += len(batch)
        for ending, count in Counter(each.outcome.ending for each in batch).items():
            telemetry.ATTEMPTS.labels(ending.word).inc(count)
        for each in batch:
            fence = each.run.fence
            self._left[fence] -= 1
            if not self._left[fence]:
                del self._left[fence]
                self._over.append(fence)
