"""What a handler of the chaos application shall do, as its payload says; functions and the HTTP target act alike."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from chaos.records import CONFIDENCE

BEAT: Final = 0.5
"""Seconds between two signs of life of a handler that takes its time."""


class Act(msgspec.Struct, frozen=True, omit_defaults=True):
    """A payload. `serial` makes it one of its kind, so that a payload handed to the wrong run shows."""

    tenant: str
    serial: str
    fail: int = 0
    """Fail on purpose in this many first attempts."""
    slow: float = 0.0
    """Seconds to take."""
    snooze: int = 0
    """Ask this often to be called again later, in each process that is called."""

    account: str | None = None
    """What it acts on, where only so many may at once."""

    secret: str | None = None
    """What it is given in confidence, and says wherever it can."""

    def fails(self, attempt: int) -> bool:
        return attempt <= self.fail

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
