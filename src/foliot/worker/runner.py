"""Runs what was claimed: a bounded number of handlers at once, each with a deadline."""

import asyncio
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

import msgspec

from foliot.domain.errorclass import TIMEOUT, classes_of
from foliot.domain.outcome import SUCCEEDED, Ending, Failure, Outcome, Snoozed, judge
from foliot.domain.spec import Spec
from foliot.kit.chance import Chance
from foliot.kit.clock import Steady, Wall, steady, wall
from foliot.store.dispatch import Claimed, Settlement
from foliot.worker.executor import Assignment, Executor

BLINK: Final = timedelta(milliseconds=50)
"""Handlers that take longer are noted in the database; deadlines are looked at this often."""

LAST_WORDS: Final = timedelta(seconds=3)
"""How long a handler that was told to stop may take to clean up."""


class Going:
    """One handler under way."""

    __slots__ = ("assignment", "began", "noted", "stopped", "task")

    def __init__(self, assignment: Assignment, task: "asyncio.Task[None]", began: float) -> None:
        self.assignment = assignment
        self.began = began
        self.task = task
        self.noted = False
        self.stopped: Ending | None = None

    def stop(self, ending: Ending) -> None:
        """Ask the handler to end. Once only: a second cancellation would break into its clean-up."""
        if self.stopped is None:
            self.stopped = ending
            # Not at once: a task cancelled before its first step never takes it, and nobody would hear of its end.
            asyncio.get_running_loop().call_soon(self.task.cancel)


class Runner:
    """Holds what waits and what runs; tells `ended` about every attempt that ended, exactly once."""

    def __init__(
        self,
        concurrency: int,
        ended: Callable[[Settlement], None],
        chance: Chance,
        clock: Steady = steady,
        wall: Wall = wall,
    ) -> None:
        self._concurrency = concurrency
        self._ended = ended
        self._chance = chance
        self._clock = clock
        self._wall = wall
        self._waiting: deque[tuple[Claimed, Spec, str, Executor]] = deque()
        self._going: dict[int, Going] = {}  # by identity: a run may come back while its last try still cleans up
        self._start_before = float("inf")
        self._idle = asyncio.Event()
        self._idle.set()
        self.busy = asyncio.Event()
        """Set while a handler is under way."""

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def going(self) -> int:
        return len(self._going)

    def add(self, run: Claimed, spec: Spec, name: str, executor: Executor) -> None:
        self._waiting.append((run, spec, name, executor))
        self._start_next()

    def hold_until(self, lease_ends: float) -> None:
        """Start nothing from then on, unless told a later end."""
        self._start_before = lease_ends
        self._start_next()

    def _start_next(self) -> None:
        while self._waiting and len(self._going) < self._concurrency:
            now = self._clock()
            if now >= self._start_before:  # cut off, or stood still, for a whole lease: others may have taken over
                return
            run, spec, name, executor = self._waiting.popleft()
            assignment = Assignment(run, spec, name, self._wall())
            # The task is owned by `_going` until `_run` takes it out; `stop` waits for all of them.
            task = asyncio.get_running_loop().create_task(self._run(assignment, executor))
            self._going[id(run)] = Going(assignment, task, now)
            self._idle.clear()
            self.busy.set()

    async def _run(self, assignment: Assignment, executor: Executor) -> None:
        run = assignment.run
        try:
            answer = await executor(assignment)
            outcome = SUCCEEDED if answer is None else self._not_done(assignment, answer)
        except asyncio.CancelledError:
            outcome = self._interrupted(assignment)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is the answer to its attempt
            outcome = self._not_done(assignment, Failure(traceback.format_exc(), classes=classes_of(type(error))))
        del self._going[id(run)]
        self._ended(Settlement(run, assignment.started_at, outcome))
        if not self._going:
            self._idle.set()
            self.busy.clear()
        self._start_next()

    def _not_done(self, assignment: Assignment, answer: Failure | Snoozed) -> Outcome:
        # Told to stop, a handler may well come to its end by an error of its own: that is not why it ended.
        if self._going[id(assignment.run)].stopped is not None:
            return self._interrupted(assignment)
        match answer:
            case Failure():
                return self._judge(assignment, answer)
            case Snoozed(delay=delay, reason=reason):
                return Outcome.snoozed(delay, _storable(reason))

    def _interrupted(self, assignment: Assignment) -> Outcome:
        match self._going[id(assignment.run)].stopped:
            case Ending.TIMED_OUT:
                limit = assignment.spec.timeout.total_seconds()
                late = Failure(f"timed out after {limit:g} s", ending=Ending.TIMED_OUT, classes=(TIMEOUT,))
                return self._judge(assignment, late)
            case None:
                classes = classes_of(asyncio.CancelledError)
                return self._judge(assignment, Failure("the handler cancelled itself", classes=classes))
            case _:
                return Outcome.released()

    def _judge(self, assignment: Assignment, failure: Failure) -> Outcome:
        run, spec = assignment.run, assignment.spec
        classes = tuple(map(_storable, failure.classes))
        return judge(
            msgspec.structs.replace(failure, error=_storable(failure.error), classes=classes),
            failures=run.failures + 1,
            max_retries=spec.max_retries,
            backoff=spec.backoff,
            chance=self._chance(),
            rules=spec.rules,
        )

    def look(self) -> list[tuple[Claimed, datetime]]:
        """Cancel what is past its deadline; returns runs that have gone on for a blink and were not told of before."""
        begun, now = [], self._clock()
        for going in self._going.values():  # in order of their start
            taken = timedelta(seconds=now - going.began)
            if taken < BLINK:
                break
            if not going.noted:
                going.noted = True
                begun.append((going.assignment.run, going.assignment.started_at))
            if taken >= going.assignment.spec.timeout:
                going.stop(Ending.TIMED_OUT)
        return begun

    def hand_back_waiting(self) -> None:
        """Give up what has not begun."""
        while self._waiting:
            run, *_ = self._waiting.popleft()
            self._ended(Settlement(run, None, Outcome.released()))

    async def finish(self, grace: timedelta) -> None:
        """Let what runs come to its end; hand back what has not by the end of the grace period."""
        self.hand_back_waiting()
        try:
            await asyncio.wait_for(self._idle.wait(), grace.total_seconds())
        except TimeoutError:
            for going in self._going.values():
                going.stop(Ending.RELEASED)
            with suppress(TimeoutError):  # who does not heed it keeps its claim, which is taken back when we have left
                await asyncio.wait_for(self._idle.wait(), LAST_WORDS.total_seconds())

    def abandon(self) -> None:
        """Stop everything at once: the lease is lost, and others may be running the same."""
        self._waiting.clear()
        for going in self._going.values():
            going.stop(Ending.RELEASED)


def _storable(text: str) -> str:
    """The text as the database can keep it: PostgreSQL has no NUL in text, UTF-8 no half surrogate pairs."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
