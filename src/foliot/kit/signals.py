"""Hints between processes: the names of the channels, and a notifier that never sends too many."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

READY: Final = "foliot_ready"
"""There may be something to claim."""
DUE: Final = "foliot_due"
"""Something may fall due sooner than the scheduler thinks."""
FLEET: Final = "foliot_fleet"
"""A queue was paused or resumed, a worker is to leave, or runs require labels as none did before: workers beat, and so
learn of it."""
RECALL: Final = "foliot_recall"
"""Runs that remote workers hold are to stop, or to be handed back: gateways tell those whom it concerns."""


def recall_channel(worker: int) -> str:
    """The same for a worker that listens itself: the others are not to be woken for it."""
    return f"{RECALL}_{worker:x}"


class Hints:
    """Coalesces hints: all that were given since the last pause are sent at once. Losing them costs a poll interval."""

    def __init__(self, send: Callable[[Sequence[str]], Awaitable[None]], pause: float = 0.02) -> None:
        """`send`: given each channel once."""
        self._send = send
        self._pause = pause
        self._given: set[str] = set()
        self._any = asyncio.Event()

    def give(self, channel: str) -> None:
        self._given.add(channel)
        self._any.set()

    async def run(self) -> None:
        """Send what was given until cancelled."""
        while True:
            await self._any.wait()
            self._any.clear()
            given, self._given = self._given, set()
            with suppress(Exception):  # only a hint: the other side polls
                await self._send(sorted(given))
            await asyncio.sleep(self._pause)
