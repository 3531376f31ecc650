"""Runs an application's functions inside its tests: without a database, a network, or a wait."""

import asyncio
import threading
import weakref
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Final, Self, Unpack

import msgspec

from foliot.domain.errors import InvalidField
from foliot.domain.outcome import Ending
from foliot.domain.spec import FunctionHandler
from foliot.kit.loop import is_on_a_loop
from foliot.sdk.calls import Delay, submit
from foliot.sdk.fields import Handler, Policy
from foliot.sdk.protocol import Request
from foliot.sdk.worker import Worker
from foliot.testing.attempts import Attempts, Connect
from foliot.testing.capture import capturing
from foliot.testing.clock import ManualClock, Threads, new_loop
from foliot.testing.fires import fires_of
from foliot.testing.runs import InlineRun
from foliot.wire.jobs import payload_of
from foliot.wire.runs import RunBody, spec_and_target, start_of

_FIRST: Final = 1 << 32


class Inline:
    """Runs a worker's functions here, with the checks, contexts, time-outs and retries that a worker would apply.

    Its clock stands still while nobody moves it: `advance` does, `run` moves it to the end of a run, and the sleep of
    a coroutine takes as long as it says, in no time. Retries wait for the share `jitter` of the longest wait.
    """

    def __init__(
        self,
        worker: Worker,
        *,
        clock: ManualClock | None = None,
        jitter: float = 0.5,
        connect: Connect | None = None,
    ) -> None:
        self.worker = worker
        self.clock = clock or ManualClock()
        self.runs: list[InlineRun] = []
        """All that were handed in or fired, in that order."""
        self._by_key: dict[str, tuple[bytes, InlineRun]] = {}
        threads = Threads()
        self._attempts = Attempts(self.clock, threads, lambda: jitter, connect)
        self._loop = new_loop(self.clock, threads)
        self._close = weakref.finalize(self, _close, self._loop, threads)
        tasks = [task for task in worker.tasks.values() if task.is_scheduled]
        now = self.clock()
        found = [fires_of(_FIRST + number, task, now) for number, task in enumerate(tasks)]
        self._fires = [each for each in found if each is not None]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._close()

    def submit(
        self,
        handler: Handler,
        payload: Any = None,
        *,
        delay: Delay = None,
        at: datetime | None = None,
        idempotency_key: str | None = None,
        **policy: Unpack[Policy],
    ) -> InlineRun:
        """Hand a run in, as a client does; it begins when it is due, by `work`, `advance` or `finish`."""
        return self.take(submit(handler, payload, delay, at, idempotency_key, policy))

    def run(self, handler: Handler, payload: Any = None, **policy: Unpack[Policy]) -> InlineRun:
        """Hand a run in and see it to its end, with all its retries: the clock moves as far as that takes.

        Other runs that fall due meanwhile stay. `run(…).check()` raises unless it completed.
        """
        run = self._servable(self.submit(handler, payload, **policy))
        while not run.is_over:
            self.clock.reach(run.due)
            self._try(run)
        return run

    def call(self, handler: str, payload: Any = None, **policy: Unpack[Policy]) -> Any:
        """Make one try; return what the function returns, or raise what it raises: TimeoutError if it is too slow."""
        run = self._servable(self.submit(handler, payload, **policy))
        self._try(run)
        tried = run.tries[-1]
        run.cancel()  # what would follow
        if tried.status == Ending.TIMED_OUT.word:
            raise TimeoutError(run.error_message)
        if tried.error is not None:
            raise tried.error
        return run.returned

    def work(self) -> int:
        """Run what is due now, and what that hands in; how many tries were made."""
        made = 0
        while (run := self._next(self.clock())) is not None:
            self._try(run)
            made += 1
        return made

    def advance(self, duration: str | float | timedelta) -> int:
        """Let time pass: what falls due begins at its instant, in that order; how many tries were made."""
        step = ManualClock(self.clock()).advance(duration)
        made = self.work()
        while (instant := self._next_instant()) is not None and instant <= step:
            self.clock.reach(instant)
            self._fire()
            made += self.work()
        self.clock.reach(step)
        return made

    def finish(self) -> int:
        """See all runs to their end; the clock moves as far as that takes, and schedules do not fire."""
        made = self.work()
        while (run := self._next(None)) is not None:
            self.clock.reach(run.due)
            made += self.work()
        return made

    @contextmanager
    def captured(self) -> Iterator[list[InlineRun]]:
        """Have every `Foliot` and `AsyncFoliot` hand its runs in here; gives those that were, as they come."""
        taken: list[InlineRun] = []
        with capturing(self.take, self.runs, taken):
            yield taken

    def take(self, request: Request) -> InlineRun:
        """A run as a request describes it, with the checks of the API."""
        if request.key is not None and request.key in self._by_key:
            body, run = self._by_key[request.key]
            if body != request.body:
                raise InvalidField("Idempotency-Key", "stands for another request", "use another key")
            return run
        run = self._made(request.body or b"")
        if request.key is not None:
            self._by_key[request.key] = (request.body or b"", run)
        return run

    def _made(self, raw: bytes) -> InlineRun:
        try:
            body = msgspec.json.decode(raw, type=RunBody)
        except msgspec.ValidationError as error:
            raise InvalidField("run", str(error), "see /docs for a run's fields") from None
        at, delay = start_of(body)
        spec, _ = spec_and_target(body)
        payload = payload_of(body)
        spec.key_of(payload)
        name = spec.handler.name if isinstance(spec.handler, FunctionHandler) else spec.handler.group
        due = at or self.clock() + (delay or timedelta())
        run = InlineRun(_FIRST + len(self.runs), spec, payload, name, None, due)
        self.runs.append(run)
        return run

    def _servable(self, run: InlineRun) -> InlineRun:
        if not self._is_served(run):
            known = ", ".join(self.worker.tasks) or "none"
            raise InvalidField("handler", f"the worker has no function {run.handler!r}", f"it has: {known}")
        return run

    def _is_served(self, run: InlineRun) -> bool:
        return run.spec.handler.group.startswith("fn:") and run.handler in self.worker.tasks

    def _next(self, until: datetime | None) -> InlineRun | None:
        waiting = [run for run in self.runs if run.status == "pending" and self._is_served(run)]
        due = [run for run in waiting if until is None or run.due <= until]
        return min(due, key=lambda run: run.due, default=None)

    def _next_instant(self) -> datetime | None:
        run = self._next(None)
        instants = [each.next for each in self._fires if each.next is not None]
        return min(instants if run is None else [*instants, run.due], default=None)

    def _fire(self) -> None:
        now = self.clock()
        for each in self._fires:
            while each.next is not None and each.next <= now:
                run = None
                if not each.is_skipped:
                    draft = each.draft
                    run = InlineRun(_FIRST + len(self.runs), draft.spec, draft.payload, draft.name, each.job, each.next)
                    self.runs.append(run)
                each.fired(run)

    def _try(self, run: InlineRun) -> None:
        self._complete(self._attempts.make(run, self.worker.tasks[run.handler].function))

    def _complete(self, deed: Coroutine[Any, Any, None]) -> None:
        """On a loop of its own; in an async test that is one in another thread, for which the test waits."""
        if not is_on_a_loop():
            self._loop.run_until_complete(deed)
            return
        failed: list[BaseException] = []

        def away() -> None:
            try:
                self._loop.run_until_complete(deed)
            except BaseException as error:  # noqa: BLE001 - raised again where the test can see it
                failed.append(error)

        thread = threading.Thread(target=away)
        thread.start()
        thread.join()
        if failed:
            raise failed[0]


def _close(loop: asyncio.AbstractEventLoop, threads: Threads) -> None:
    """Also when the interpreter ends, or in the middle of another loop: nothing here waits."""
    threads.shutdown(wait=False, cancel_futures=True)
    loop.close()
