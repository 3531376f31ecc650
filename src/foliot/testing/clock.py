"""A clock that stands still until it is moved, and an event loop that lives by it: nobody waits for a sleep."""

import asyncio
import selectors
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from foliot.domain.duration import parse_duration
from foliot.domain.errors import InvalidField

Result = TypeVar("Result")
_START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_LOOK: Final = 0.02
"""Seconds between looks at the clock while a thread is at work, or the network: somebody may have moved it."""


class ManualClock:
    """Tells the time that it was set to; any thread may move it, and only forward."""

    def __init__(self, start: datetime = _START) -> None:
        if start.tzinfo is None:
            raise InvalidField("start", "has no offset from UTC", "use datetime(…, tzinfo=timezone.utc)")
        self._start = start.astimezone(UTC)
        self._elapsed = 0.0
        self._lock = threading.Lock()

    def __call__(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def steady(self) -> float:
        """Seconds since it was made."""
        return self._elapsed

    def advance(self, duration: str | float | timedelta) -> datetime:
        """Move it by a timedelta, seconds or `PT15M`; what it shows then. Nothing runs by that alone."""
        step = duration if isinstance(duration, timedelta) else parse_duration(duration, "duration")
        if step < timedelta():
            raise InvalidField("duration", "is negative", "time does not go back")
        with self._lock:
            self._elapsed += step.total_seconds()
        return self()

    def reach(self, instant: datetime) -> None:
        """Move it to an instant, unless it is past it."""
        with self._lock:
            self._elapsed = max(self._elapsed, (instant - self._start).total_seconds())


class Threads(ThreadPoolExecutor):
    """Threads that say how many of them are at work."""

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="inline")
        self.busy = 0

    def submit(self, deed: Callable[..., Result], /, *arguments: Any, **more: Any) -> "Future[Result]":
        self.busy += 1
        begun = super().submit(deed, *arguments, **more)
        begun.add_done_callback(self._done)
        return begun

    def _done(self, _: "Future[Any]") -> None:
        self.busy -= 1


class _Leaping(selectors.DefaultSelector):
    """Where a loop waits: if only for time, it has passed at once.

    While a thread is at work the clock stands still, unless that moves it. While something waits for the network, time
    passes as it really does: what else is to wake a sleep beside a connection that is merely open?
    """

    def __init__(self, clock: ManualClock, threads: Threads) -> None:
        super().__init__()
        self._clock = clock
        self._threads = threads

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if (found := super().select(0)) or (timeout is not None and timeout <= 0):
            return found
        has_network = len(self.get_map()) > 1  # one is the loop's own, by which threads wake it
        if timeout is not None and not has_network and not self._threads.busy:
            self._clock.advance(timeout)
            return []
        began = time.monotonic()
        found = super().select(_LOOK if timeout is None else min(timeout, _LOOK))
        if has_network:
            self._clock.advance(time.monotonic() - began)
        return found


def new_loop(clock: ManualClock, threads: Threads) -> asyncio.AbstractEventLoop:
    loop = asyncio.SelectorEventLoop(_Leaping(clock, threads))
    loop.time = clock.steady  # type: ignore[method-assign]
    loop.set_default_executor(threads)
    return loop
