"""An event loop whose time stands still while something happens and jumps when nothing does.

Timers run by virtual time. Statements take none: the loop stands still for them (`statement.py`). The only real waiting
here is for new connections, and it is counted: while an answer is out, time does not move, and it is taken in only when
nothing else can run. So the same seed gives the same order of everything.
"""

import asyncio
import heapq
import itertools
import selectors
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class StandstillError(Exception):
    """Nobody waits for anything that can still happen."""


class _Selector(selectors.DefaultSelector):
    loop: "VirtualLoop"

    def select(self, timeout: float | None = None) -> list[Any]:
        if self.loop.waiting_for_answers:
            # Whoever can run runs first: how quickly an answer comes must not decide about anything.
            if timeout is not None and timeout <= 0:
                return []
            return super().select()
        if timeout is None:
            raise StandstillError("nothing is due, and no answer is awaited")
        self.loop.advance(timeout)
        return []


class _Timer(asyncio.TimerHandle):
    """Two that are due at the same moment run in the order in which they were set."""

    serial: int
    _when: float

    def __lt__(self, other: "_Timer") -> bool:  # type: ignore[override]  # there are no others
        mine, theirs = self._when, other._when
        return mine < theirs or (mine == theirs and self.serial < other.serial)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        selector = _Selector()
        selector.loop = self
        self.waiting_for_answers = 0
        self._now = 0.0
        self._serials = itertools.count()
        super().__init__(selector)

    def time(self) -> float:
        return self._now

    def call_at(  # type: ignore[override]  # the base class names the types of `args` one by one
        self, when: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        timer = _Timer(when, callback, args, self, context)
        timer.serial = next(self._serials)
        heapq.heappush(self._scheduled, timer)  # type: ignore[attr-defined]  # as the base class does
        timer._scheduled = True  # type: ignore[attr-defined]  # noqa: SLF001
        return timer

    def start_over(self) -> None:
        """Back to zero: only while nothing is due."""
        self._now = 0.0

    def advance(self, seconds: float) -> None:
        self._now += seconds

    @contextmanager
    def awaiting_answer(self) -> Iterator[None]:
        self.waiting_for_answers += 1
        try:
            yield
        finally:
            self.waiting_for_answers -= 1
