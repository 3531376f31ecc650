"""What a handler of the chaos application shall do, as its payload says; functions and the HTTP target act alike."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from chaos.records import CONFIDENCE

BEAT: Final = 0.5
"""Seconds between two signs of life of a handler that takes its time."""

LATEST: Final = 60.0
"""Seconds after its time at which a run no longer asks to be called again."""


class Act(msgspec.Struct, frozen=True, omit_defaults=True):
    """A payload. `serial` makes it one of its kind, so that a payload handed to the wrong run shows."""

    tenant: str
    serial: str
    fail: int = 0
    """Fail on purpose in this many first attempts."""
    slow: float = 0.0
    """Seconds to take."""
    snooze: int = 0
    """Ask this often to be called again later, in each process that is called, and not for long."""

    account: str | None = None
    """What it acts on, where only so many may at once."""

    secret: str | None = None
    """What it is given in confidence, and says wherever it can."""

    def fails(self, attempt: int) -> bool:
        return attempt <= self.fail

    def snoozes(self, before: int, late: float) -> bool:
        """Whether to ask, having asked so often `before` in this process; `late`: seconds since the run's time.

        What runs in a process of its own is always asked for the first time: it would never come to an end.
        """
        return before < self.snooze and late < LATEST

    async def take_time(self, beat: Callable[[], Awaitable[object]]) -> None:
        """Like somebody who waits for others: what they do goes on while this process stands still."""
        now = asyncio.get_running_loop().time
        ready = now() + self.slow
        while (left := ready - now()) > 0:
            await asyncio.sleep(min(left, BEAT))
            if now() < ready:
                await beat()


def as_handed_in(payload: Any) -> Any:
    """What a handler received, with the reference to a secret where the secret is."""
    return (
        payload | {"secret": {"$secret": CONFIDENCE}} if isinstance(payload, dict) and "secret" in payload else payload
    )


def new_nonce() -> str:
    return secrets.token_hex(6)
