"""How often to look at what goes on for a while."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from foliot.kit.clock import Steady, steady
from foliot.sdk.errors import ApiError

LAST_LOOK: Final = 2.0
"""Seconds that a look may take at least, also when the time is over: by no more is it overdrawn."""


class Look(NamedTuple):
    usual: float
    """Seconds until the next one, if nothing is in the way."""
    end: float
    clock: Steady

    @property
    def within(self) -> float:
        """Seconds that it may take."""
        return max(self.end - self.clock(), LAST_LOOK)

    def pause_after(self, trouble: ApiError | None) -> float:
        """Seconds to wait. Who is asked to come again later does so, but no later than at the end."""
        asked = 0.0 if trouble is None else trouble.retry_after or 0.0
        return max(min(max(self.usual, asked), self.end - self.clock()), 0.0)


def looks(timeout: float, clock: Steady = steady) -> Iterator[Look]:
    """Until `timeout` is over: soon after each other at first, for what takes a moment; then less often.

    The last look is at the very end.
    """
    end, pause = clock() + timeout, 0.02
    while clock() < end:
        yield Look(pause, end, clock)
        pause = min(pause * 1.5, 1.0)
    yield Look(0.0, end, clock)


def too_long(thing: str, status: str, timeout: float, trouble: ApiError | None) -> TimeoutError:
    if trouble is not None:
        return TimeoutError(f"{thing} was {status} when it was last seen, and after {timeout:g} s: {trouble}")
    hint = f" (`foliot run get {thing}` says what it waits for)" if thing.startswith("run_") else ""
    return TimeoutError(f"{thing} is still {status} after {timeout:g} s{hint}")
