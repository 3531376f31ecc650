"""What handlers of a test turn to while they run."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

import msgspec

from foliot.domain.outcome import Ending
from foliot.domain.report import Progress
from foliot.domain.spec import LONGEST_TIMEOUT
from foliot.sdk.desk import Desk, resolved
from foliot.testing.clock import ManualClock
from foliot.testing.runs import InlineRun
from foliot.wire.codec import rfc3339
from foliot.worker.verdict import Stop

T = TypeVar("T")


class InHand(NamedTuple):
    """The attempt that is under way: one at a time."""

    run: InlineRun
    timeout: timedelta
    first_began: float


class InlineDesk(Desk):
    """Tells the one handler that runs when its time is up, and keeps what it reports with its run."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._hand: InHand | None = None
        self._began = 0.0
        self._has_noticed = False
        self.stopped: Stop | None = None
        self.stopping: dict[int, Stop] = {}

    def begin(self, run: InlineRun) -> None:
        self._loop = asyncio.get_running_loop()
        self._began = self._clock.steady()
        self._hand = InHand(run, run.spec.timeout, self._began)
        self.stopped, self._has_noticed = None, False
        self.stopping.clear()

    def end(self, why: Stop) -> None:
        """Tell the handler to end."""
        self.stopped = self.stopping[0] = why

    @property
    def time_left(self) -> float:
        """Seconds until the time of the attempt is up."""
        timeout = timedelta() if self._hand is None else self._hand.timeout
        return self._began + timeout.total_seconds() - self._clock.steady()

    def now(self) -> datetime:
        return self._clock()

    def why_stopped(self, attempt: Any) -> str | None:  # noqa: ARG002
        if self.stopped is None and self.time_left <= 0:
            self.end(Stop(Ending.TIMED_OUT))
        self._has_noticed = self.stopped is not None
        return None if self.stopped is None else self.stopped.reason

    def has_noticed(self, attempt: Any) -> bool:  # noqa: ARG002
        return self._has_noticed

    def extend(self, attempt: Any) -> datetime | None:  # noqa: ARG002
        hand, now = self._hand, self._clock.steady()
        if hand is None or now + hand.timeout.total_seconds() > hand.first_began + LONGEST_TIMEOUT.total_seconds():
            return None
        self._began = now
        return self._clock() + hand.timeout

    def note(self, attempt: Any, progress: Progress) -> None:  # noqa: ARG002
        if self._hand is not None:
            said = {"fraction": None, "done": None, "total": None, "message": None, "at": rfc3339(self._clock())}
            self._hand.run.values["progress"] = said | msgspec.to_builtins(progress)

    def save(self, attempt: Any, state: bytes) -> "Future[None]":  # noqa: ARG002
        if self._hand is not None:
            self._hand.run.checkpoint = state
        return resolved(None)

    def last(self, attempt: Any) -> "Future[bytes | None]":  # noqa: ARG002
        return resolved(None if self._hand is None else self._hand.run.checkpoint)

    def do(self, deed: Coroutine[Any, Any, T]) -> "Future[T]":
        return super().do(deed) if self._loop is None else asyncio.run_coroutine_threadsafe(deed, self._loop)
