"""What a worker does for handlers while they run: tells them to stop, takes what they report, and gets it on record."""

import asyncio
from collections.abc import Callable, Container, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import structlog

from foliot.domain.errors import FenceLost
from foliot.domain.outcome import Ending
from foliot.domain.report import Progress
from foliot.kit.clock import Steady, Wall, steady, wall
from foliot.kit.hush import HUSH
from foliot.sdk.desk import Desk, promised
from foliot.store.dispatch import Claimed
from foliot.store.recovery import Refused, is_contended, is_gone
from foliot.store.reports import Report
from foliot.worker.executor import Assignment
from foliot.worker.port import Carrier
from foliot.worker.underway import Underway

log = structlog.get_logger("worker")

T = TypeVar("T")

TELL_EVERY: Final = 1.0
"""Seconds between two times that progress is written down, whoever made it."""


class _Saved(NamedTuple):
    run: Claimed
    state: bytes
    done: "Future[None]"


class _Asked(NamedTuple):
    run: Claimed
    done: "Future[bytes | None]"


class WorkerDesk(Desk):
    """One for all handlers of a process. Handlers call it from any thread, the worker from its loop."""

    def __init__(self, clock: Steady = steady, wall: Wall = wall) -> None:
        self.underway = Underway()
        self.stopping = self.underway.stopping
        self.something = asyncio.Event()
        """Set when `tell` should be called."""
        self._clock = clock
        self._wall = wall
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_draining = False
        self._leaves_by: datetime | None = None
        self._watchers: set[Callable[[], None]] = set()
        self._progress: dict[Claimed, tuple[Progress, datetime]] = {}
        self._saves: list[_Saved] = []
        self._asks: list[_Asked] = []
        self._told = float("-inf")
        self._is_put_off = False

    def open(self) -> None:
        """Handlers are about to begin, on this loop."""
        self._loop = asyncio.get_running_loop()

    def close(self) -> None:
        """The worker has ended: what has not been written down will not be."""
        self._loop = None
        saves, self._saves, asks, self._asks = self._saves, [], self._asks, []
        left: list[Future[Any]] = [each.done for each in saves]
        left += [each.done for each in asks]
        for done in left:
            done.set_exception(_lost())

    @property
    def is_draining(self) -> bool:
        return self._is_draining

    @property
    def leaves_by(self) -> datetime | None:
        return self._leaves_by

    def drain(self, leaves_by: datetime | None = None) -> None:
        """Give handlers their notice."""
        self._is_draining, self._leaves_by = True, leaves_by or self._leaves_by
        for watcher in list(self._watchers):
            watcher()

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Have `watcher` called when the notice is given, until what this returns is called."""
        self._watchers.add(watcher)
        return lambda: self._watchers.discard(watcher)

    def why_stopped(self, attempt: Assignment) -> str | None:
        going = self.underway.told_to_stop(attempt.run)
        if going is None or going.stopped is None:
            return None
        going.noticed = True
        return going.stopped.reason

    def has_noticed(self, attempt: Assignment) -> bool:
        """Whether its handler was told to stop, and knows it."""
        going = self.underway.told_to_stop(attempt.run)
        return going is not None and going.noticed

    def is_cancelled(self, attempt: Assignment) -> bool:
        """Whether somebody asked for its end, and it was told."""
        going = self.underway.told_to_stop(attempt.run)
        return going is not None and going.stopped is not None and going.stopped.ending is Ending.CANCELLED

    def hold(self, attempt: Assignment) -> None:
        self._on_loop(lambda: self.underway.hold(attempt))

    def extend(self, attempt: Assignment) -> datetime | None:
        self._on_loop(lambda: self.underway.extend(attempt, self._clock()))
        return self._wall() + attempt.spec.timeout

    def note(self, attempt: Assignment, progress: Progress) -> None:
        if progress.message is not None:
            progress = msgspec.structs.replace(progress, message=HUSH.hide(progress.message))
        self._progress[attempt.run] = (progress, self._wall())
        if not self._is_put_off:
            self._is_put_off = True
            self._on_loop(self._put_off)

    def save(self, attempt: Assignment, state: bytes) -> "Future[None]":
        done = promised()
        self._saves.append(_Saved(attempt.run, state, done))
        self._on_loop(self.something.set)
        return done

    def last(self, attempt: Assignment) -> "Future[bytes | None]":
        done = promised()
        self._asks.append(_Asked(attempt.run, done))
        self._on_loop(self.something.set)
        return done

    def do(self, deed: Coroutine[Any, Any, T]) -> "Future[T]":
        loop = self._loop
        if loop is None:
            deed.close()
            raise _lost()
        return asyncio.run_coroutine_threadsafe(deed, loop)

    def owes(self, runs: Callable[[Container[Claimed]], bool]) -> bool:
        """Whether something is to be told now: at once, or because one of these is about to end."""
        return self.something.is_set() or (bool(self._progress) and runs(self._progress))

    async def tell(self, carrier: Carrier) -> None:
        """Write down what was reported, and fetch what was asked for. What fails is told again the next time."""
        self.something.clear()
        progress, saves = dict(self._progress), self._saves[:]
        states = {each.run: each.state for each in saves}
        at = self._wall()
        reports = []
        for run in {**progress, **states}:
            said, since = progress.get(run, (None, at))
            reports.append(Report(run.id, run.fence, said, since, states.get(run), run.tenant))
        try:
            held = await carrier.report(reports) if reports else set()
        except Exception as error:
            if is_gone(error) or isinstance(error, Refused):
                self.something.set()
                raise
            if is_contended(error):
                self._later(TELL_EVERY / 5)  # nobody's end waits for it
                return
            log.exception("what handlers reported cannot be kept", runs=len(reports))
            held = set()  # for a few words nobody's work is given up
        self._told = self._clock()
        self._forget(progress, saves)
        for each in saves:
            if (each.run.id, each.run.fence) in held:
                each.done.set_result(None)
            else:
                each.done.set_exception(_lost())
        await self._answer(carrier)

    def _forget(self, progress: Mapping[Claimed, object], saves: Sequence[_Saved]) -> None:
        """These have been told; what was said meanwhile comes next."""
        for run, word in progress.items():
            if self._progress.get(run) is word:
                del self._progress[run]
        self._is_put_off = bool(self._progress)
        if self._is_put_off:
            self._put_off()
        del self._saves[: len(saves)]

    async def _answer(self, carrier: Carrier) -> None:
        while self._asks:
            asked = self._asks[0]
            try:
                state = await carrier.last_checkpoint(asked.run)
            except Exception:
                self.something.set()
                raise
            del self._asks[0]
            asked.done.set_result(state)

    def _put_off(self) -> None:
        """Have what was noted told a while after the last time."""
        self._later(max(self._told + TELL_EVERY - self._clock(), 0.0))

    def _later(self, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self.something.set)

    def _on_loop(self, deed: Callable[[], object]) -> None:
        loop = self._loop
        if loop is None:
            self.close()
        else:
            loop.call_soon_threadsafe(deed)


def _lost() -> FenceLost:
    return FenceLost("the attempt counts no more", "another one may have the run: let this one end")
