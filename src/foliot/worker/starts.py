"""Tells the database which handlers begin: some before they do, the others when they take a while."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from foliot.store.dispatch import Claimed
from foliot.worker.port import Carrier
from foliot.worker.runner import Runner


class Starts:
    """Keeps what is to be told until it is on record; the runner hears which of it is still ours."""

    def __init__(self, carrier: Carrier, runner: Runner) -> None:
        self._carrier = carrier
        self._runner = runner
        self._begun: list[tuple[Claimed, datetime]] = []
        self.something = asyncio.Event()

    def add(self, begun: Sequence[tuple[Claimed, datetime]]) -> None:
        if begun:
            self._begun += begun
            self.something.set()

    async def run_once(self) -> int:
        """Tell of everything in one statement; how many there were. What fails is told again the next time."""
        self.something.clear()
        begun = self._begun[:]
        batch = begun + self._runner.to_mark()
        if batch:
            ours = await self._carrier.note_started(batch)
            del self._begun[: len(begun)]
            self._runner.noted([run for run, _ in batch], ours)
        return len(batch)
