"""Runs what was claimed: a bounded number of handlers at once, each with a deadline."""

import asyncio
import traceback
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

import msgspec

from foliot.domain.errorclass import TIMEOUT, classes_of
from foliot.domain.outcome import SUCCEEDED, Ending, Failure, Outcome, Snoozed, judge
from foliot.domain.spec import Spec
from foliot.kit.chance import Chance
from foliot.kit.clock import Steady, Wall, steady, wall
from foliot.kit.loop import any_of
from foliot.store.dispatch import Claimed, Settlement
from foliot.worker.executor import Assignment, Executor

BLINK: Final = timedelta(milliseconds=50)
"""Handlers that take longer are noted in the database; deadlines are looked at this often."""

ALONE_AT_ONCE: Final = 4
"""Runs that are under way each in a process of its own because they are suspects: each is as big as the application."""

LAST_WORDS: Final = timedelta(seconds=3)
"""How long a handler that was told to stop may take to clean up."""
_TAKEN_OVER: Final = "its worker lost the run"


class Going:
    """One handler under way."""

    __slots__ = ("assignment", "began", "noted", "stopped", "task", "why")

    def __init__(self, assignment: Assignment, task: "asyncio.Task[None]", began: float) -> None:
        self.assignment = assignment
        self.began = began
        self.task = task
        self.noted = False
        self.stopped: Ending | None = None
        self.why = ""

    def stop(self, ending: Ending, why: str = "") -> None:
        """Ask the handler to end. Once only: a second cancellation would break into its clean-up."""
        if self.stopped is None:
            self.stopped, self.why = ending, why
            # Not at once: a task cancelled before its first step never takes it, and nobody would hear of its end.
            asyncio.get_running_loop().call_soon(self.task.cancel)


Waiting = tuple[Claimed, Spec, str, Executor]
"""A run that has not begun, with all that it takes to begin it: its name is its job's or its handler's."""


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
        self._waiting: deque[Waiting] = deque()
        self._suspects: deque[Waiting] = deque()
        self._alone: set[int] = set()
        self._going: dict[int, Going] = {}  # by identity: a run may come back while its last try still cleans up
        # At-most-once runs, and those that were in the hands of a worker when it died (domain/suspicion.py), in a place
        # of their own: they begin as soon as the database knows that they do.
        self._marking: dict[int, Waiting] = {}
        self.something_to_mark = asyncio.Event()
        self._held_until = float("inf")
        self._idle = asyncio.Event()
        self._idle.set()
        self.busy = asyncio.Event()
        """Set while a handler is under way."""

    @property
    def waiting(self) -> int:
        return len(self._waiting) + len(self._suspects)

    @property
    def going(self) -> int:
        """Handlers under way, or about to be."""
        return len(self._going) + len(self._marking)

    def add(self, run: Claimed, spec: Spec, name: str, executor: Executor, *, alone: bool = False) -> None:
        """Of those to be run `alone`, only a few are under way at once; nobody else waits for them."""
        (self._suspects if alone else self._waiting).append((run, spec, name, executor))
        self._start_next()

    def hold_until(self, instant: float) -> None:
        """Start nothing from then on, and stop what must not outlive the lease, unless told a later instant."""
        self._held_until = instant
        self._start_next()

    def _start_next(self) -> None:
        while self.going < self._concurrency:
            queue = self._suspects if self._suspects and len(self._alone) < ALONE_AT_ONCE else self._waiting
            if not queue:
                return
            now = self._clock()
            if now >= self._held_until:  # cut off, or stood still, for almost a lease: others may soon take over
                return
            waiting = queue.popleft()
            if queue is self._suspects:
                self._alone.add(id(waiting[0]))
            if waiting[1].is_at_most_once or waiting[0].deaths:
                self._marking[id(waiting[0])] = waiting
                self.something_to_mark.set()
            else:
                self._begin(waiting, now)

    def _begin(self, waiting: Waiting, now: float) -> None:
        run, spec, name, executor = waiting
        assignment = Assignment(run, spec, name, self._wall())
        # The task is owned by `_going` until `_run` takes it out; `stop` waits for all of them.
        task = asyncio.get_running_loop().create_task(self._run(assignment, executor))
        self._going[id(run)] = Going(assignment, task, now)
        self._idle.clear()
        self.busy.set()

    def to_mark(self) -> list[tuple[Claimed, datetime]]:
        """Runs that may begin once the database has been told, and since when; until `noted` answers."""
        self.something_to_mark.clear()
        now = self._wall()
        return [(run, now) for run, *_ in self._marking.values()]

    def noted(self, begun: Iterable[Claimed], ours: Container[tuple[int, int]]) -> None:
        """The database knows of these: begin those that waited for it, and stop those that are not ours any more."""
        for run in begun:
            is_ours = (run.id, run.fence) in ours
            if (waiting := self._marking.pop(id(run), None)) is None:
                if not is_ours and (going := self._going.get(id(run))) is not None:
                    going.stop(Ending.RELEASED, _TAKEN_OVER)
            elif is_ours and (now := self._clock()) < self._held_until:
                self._begin(waiting, now)
                self._going[id(run)].noted = True
            else:
                self._hand_back(run)
        self._start_next()

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
        self._alone.discard(id(run))
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
            case Failure(ending=Ending.LOST | Ending.RELEASED) if assignment.spec.is_at_most_once:
                return Outcome.unknown(f"begun, and {_storable(answer.error)}")
            case Failure():
                return self._judge(assignment, answer)
            case Snoozed() if assignment.spec.is_at_most_once:
                said = "asked to be called again, and is delivered at most once"
                return self._judge(assignment, Failure(said, classes=("Snooze",)))
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
            case _ if assignment.spec.is_at_most_once:
                return Outcome.unknown(f"stopped before it ended: {self._going[id(assignment.run)].why}")
            case _:
                return Outcome.released()

    def _judge(self, assignment: Assignment, failure: Failure) -> Outcome:
        run, spec = assignment.run, assignment.spec
        classes = tuple(map(_storable, failure.classes))
        return judge(
            msgspec.structs.replace(
                failure,
                error=_storable(failure.error),
                classes=classes,
                permanent=failure.permanent or spec.is_at_most_once,
            ),
            failures=run.failures + 1,
            max_retries=spec.max_retries,
            backoff=spec.backoff,
            chance=self._chance(),
            rules=spec.rules,
        )

    def look(self) -> list[tuple[Claimed, datetime]]:
        """Stop what is past its deadline, and what must not outlive the lease if that is about to end.

        Returns runs that have gone on for a blink and were not told of before.
        """
        begun, now = [], self._clock()
        cut_off = now >= self._held_until
        for going in self._going.values():  # in order of their start
            taken = timedelta(seconds=now - going.began)
            if taken < BLINK:
                break
            if not going.noted:
                going.noted = True
                begun.append((going.assignment.run, going.assignment.started_at))
            if taken >= going.assignment.spec.timeout:
                going.stop(Ending.TIMED_OUT)
            elif cut_off and going.assignment.spec.stops_when_cut_off:
                going.stop(Ending.RELEASED, "its worker was cut off from the database")
        return begun

    def hand_back_waiting(self, which: Callable[[Claimed], bool] = lambda _: True) -> None:
        """Give up what has not begun, all of it or some."""
        unbegun = [run for run, *_ in (*self._marking.values(), *self._waiting, *self._suspects) if which(run)]
        given_up = set(map(id, unbegun))
        self._marking = {name: each for name, each in self._marking.items() if name not in given_up}
        self._waiting = deque(each for each in self._waiting if id(each[0]) not in given_up)
        self._suspects = deque(each for each in self._suspects if id(each[0]) not in given_up)
        for run in unbegun:
            self._hand_back(run)

    def _hand_back(self, run: Claimed) -> None:
        self._alone.discard(id(run))
        self._ended(Settlement(run, None, Outcome.released()))

    def in_hand(self) -> Iterator[Claimed]:
        """What runs, and what waits here for its turn."""
        yield from (going.assignment.run for going in self._going.values())
        yield from (run for run, *_ in (*self._marking.values(), *self._waiting, *self._suspects))

    async def drain(self, stop: asyncio.Event) -> None:
        """Give up what has not begun and let the rest come to its end, however long that takes, or until `stop`."""
        self.hand_back_waiting()
        await any_of(self._idle, stop)

    async def finish(self, grace: timedelta) -> None:
        """Let what runs come to its end; hand back what has not by the end of the grace period."""
        self.hand_back_waiting()
        try:
            await asyncio.wait_for(self._idle.wait(), grace.total_seconds())
        except TimeoutError:
            for going in self._going.values():
                going.stop(Ending.RELEASED, "its worker had to end")
            with suppress(TimeoutError):  # who does not heed it keeps its claim, which is taken back when we have left
                await asyncio.wait_for(self._idle.wait(), LAST_WORDS.total_seconds())

    def abandon(self) -> None:
        """Stop everything at once: the lease is lost, and others may be running the same."""
        self._waiting.clear()
        self._alone.difference_update(self._marking)
        self._marking.clear()
        self._suspects.clear()
        for going in self._going.values():
            going.stop(Ending.RELEASED, _TAKEN_OVER)


def _storable(text: str) -> str:
    """The text as the database can keep it: PostgreSQL has no NUL in text, UTF-8 no half surrogate pairs."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
