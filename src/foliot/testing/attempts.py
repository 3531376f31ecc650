"""One try of a function, as a worker would make it: the same context, time-out and verdict."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any

from foliot.domain.outcome import SUCCEEDED, Ending, Outcome
from foliot.kit.chance import Chance
from foliot.store.dispatch import Claimed
from foliot.testing.clock import ManualClock, Threads
from foliot.testing.desk import InlineDesk
from foliot.testing.runs import InlineRun
from foliot.worker.executor import Assignment
from foliot.worker.functions import function_executors, is_coroutine_function
from foliot.worker.runner import LAST_WORDS
from foliot.worker.verdict import Stop, ended, interrupted

Connect = Callable[[], AbstractAsyncContextManager[Any]]
"""Opens a transaction for `ctx.transaction()`: committed when the block ends, rolled back when it raises."""


class Attempts:
    """Makes tries, one at a time."""

    def __init__(self, clock: ManualClock, threads: Threads, chance: Chance, connect: Connect | None) -> None:
        self._clock = clock
        self._threads = threads
        self._chance = chance
        self._effects = None if connect is None else _Effects(connect)
        self._desk = InlineDesk(clock)
        self._fence = 0

    async def make(self, run: InlineRun, function: Callable[..., Any]) -> None:
        """Try it once, and write down what came of it."""
        began = self._clock()
        run.begin(began)
        run.exception = None
        self._desk.begin(run)
        self._fence += 1
        claimed = Claimed(
            fence=self._fence,
            position=0,
            id=run.number,
            rank=0,
            tenant=0,
            spec=0,
            job=run.job,
            attempt=run.spent,
            deaths=0,
            scheduled_at=run.scheduled_at,
            target=None,
            payload=run.sent,
        )
        assignment = Assignment(claimed, run.spec, run.name, began)
        outcome = await self._outcome(assignment, _heard(function, run))
        run.settle(outcome, began, self._clock)

    async def _outcome(self, assignment: Assignment, function: Callable[..., Any]) -> Outcome:
        effects: Any = self._effects
        executors = function_executors({"it": function}, self._threads, effects, self._desk)
        trial = asyncio.ensure_future(executors["it"](assignment))
        await self._watch(trial)
        stopped = self._desk.stopped
        if effects is not None and effects.is_settled:
            return SUCCEEDED  # whatever it did afterwards
        if not trial.done():
            return interrupted(assignment, stopped, self._chance)
        try:
            return ended(assignment, trial.result(), stopped, self._chance)
        except asyncio.CancelledError:
            return interrupted(assignment, stopped, self._chance)

    async def _watch(self, trial: "asyncio.Future[Any]") -> None:
        """Until it has ended. One that does not heed the end of its time is left behind."""
        while not trial.done() and (left := self._desk.time_left) > 0:
            await asyncio.wait([trial], timeout=left)
        if not trial.done():
            self._desk.end(Stop(Ending.TIMED_OUT))
            trial.cancel()
            await asyncio.wait([trial], timeout=LAST_WORDS.total_seconds())


class _Effects:
    """Stands for what a worker has in the trusted network; see `worker.functions`."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self.is_settled = False

    @asynccontextmanager
    async def transaction(self, settlement: object, timeout: timedelta, isolation: object) -> AsyncIterator[Any]:  # noqa: ARG002, ASYNC109
        self.is_settled = False
        async with self._connect() as connection:
            yield connection
        self.is_settled = True


def _heard(function: Callable[..., Any], run: InlineRun) -> Callable[..., Any]:
    """The function, of which the run knows afterwards what it raised."""

    async def awaited(context: Any, payload: Any) -> Any:
        try:
            run.returned = await function(context, payload)
        except BaseException as error:
            run.exception = error
            raise
        return run.returned

    def called(context: Any, payload: Any) -> Any:
        try:
            run.returned = function(context, payload)
        except BaseException as error:
            run.exception = error
            raise
        return run.returned

    return awaited if is_coroutine_function(function) else called
