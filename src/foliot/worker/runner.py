"""Runs what was claimed: a bounded number of handlers at once, each with a deadline."""

import asyncio
import traceback
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from contextvars import copy_context
from datetime import datetime, timedelta
from typing import Final

import msgspec
import structlog

from foliot.domain.errorclass import classes_of
from foliot.domain.ids import encode
from foliot.domain.outcome import SUCCEEDED, Answer, Ending, Failure, Outcome
from foliot.domain.redaction import KNOWS_NOTHING, Redaction
from foliot.kit.chance import Chance
from foliot.kit.clock import Steady, Wall, steady, wall
from foliot.kit.loop import any_of
from foliot.store.dispatch import Claimed, Settlement
from foliot.worker.executor import Assignment, Executor
from foliot.worker.lineup import Lineup, Waiting, alone_at_once
from foliot.worker.underway import Going, Underway
from foliot.worker.verdict import Stop, ended, interrupted

log = structlog.get_logger("worker")

LAST_WORDS: Final = timedelta(seconds=3)
"""How long a handler that was told to stop may take to clean up; then it is left behind."""
_TURN: Final = 0.002
"""Seconds for which handlers that wait for nothing may follow each other before everything else has its turn."""
_APART: Final = 999
"""So many runs of a handler that had to wait get a task of their own at once; then it may have changed its ways."""
_TAKEN_OVER: Final = "its worker lost the run"


class Runner:
    """Holds what waits and what runs; tells `ended` about every attempt that ended, exactly once.

    Handlers that wait for nothing follow each other in one task, the server, which costs less than a task for each. As
    soon as one of them has to wait, that task is its own, and there is another server. What a handler may leave behind
    in its task, variables of the context and a wish to be cancelled, is not for the next one.
    """

    def __init__(
        self,
        concurrency: int,
        ended: Callable[[Settlement], None],
        chance: Chance,
        clock: Steady = steady,
        wall: Wall = wall,
        underway: Underway | None = None,
        redaction: Redaction = KNOWS_NOTHING,
    ) -> None:
        self._concurrency = concurrency
        self._ended = ended
        self._chance = chance
        self._clock = clock
        self._wall = wall
        self._redaction = redaction
        self._waiting = Lineup(alone_at_once(concurrency))
        # At-most-once runs, and those that were in the hands of a worker when it died (domain/suspicion.py), in a place
        # of their own: they begin as soon as the database knows that they do.
        self._marking: dict[int, Waiting] = {}
        self.something_to_mark = asyncio.Event()
        self._underway = Underway() if underway is None else underway
        self._context = copy_context()
        self._server: asyncio.Task[None] | None = None
        self._in_turn: tuple[Assignment, Executor, float] | None = None
        """The handler in which the server is, and since when."""
        self._waiters: dict[Executor, int] = {}
        self._held_until = float("inf")
        self.busy = self._underway.busy
        """Set while a handler is under way."""

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def in_turn(self) -> int:
        """How many of those that wait begin as soon as handlers are free."""
        return self._waiting.in_turn

    @property
    def going(self) -> int:
        """Handlers under way, or about to be."""
        return len(self._underway) + len(self._marking)

    def add(self, batch: Iterable[Waiting]) -> None:
        """Run these when their turn has come."""
        self._waiting.add(batch)
        self._start_next()

    def add_suspect(self, waiting: Waiting) -> None:
        """Run it alone: only a few of these are under way at once, and nobody else waits for them."""
        self._waiting.add_suspect(waiting)
        self._start_next()

    def hold_until(self, instant: float) -> None:
        """Start nothing from then on, and stop what must not outlive the lease, unless told a later instant."""
        self._held_until = instant
        self._start_next()

    def _start_next(self) -> None:
        free = self._concurrency - self.going
        while free > 0 and self._server is None and (waiting := self._waiting.first()) is not None:
            now = self._clock()
            if now >= self._held_until:  # cut off, or stood still, for almost a lease: others may soon take over
                return
            if self._goes_apart(waiting, now):
                self._waiting.take()
                free -= 1
            else:
                self._start_server()

    def _goes_apart(self, waiting: Waiting, now: float) -> bool:
        """Begin those, or have them marked, that are not for the server."""
        if waiting.run.deaths or waiting.spec.is_at_most_once:
            self._marking[id(waiting.run)] = waiting
            self.something_to_mark.set()
        elif self._waiters.get(waiting.executor):
            self._waiters[waiting.executor] -= 1
            self._begin(waiting, now)
        else:
            return False
        return True

    def _begin(self, waiting: Waiting, now: float, *, noted: bool = False) -> None:
        """Begin this one in a task of its own."""
        assignment = Assignment(waiting.run, waiting.spec, waiting.name, self._wall())
        # Not through the loop: a task factory of the application's might take the first step before we know the task,
        # which is owned by `_underway` until it takes itself out; `finish` waits for all of them.
        task = asyncio.Task(self._run(assignment, waiting.executor), context=self._context.copy())
        self._underway.add(Going(assignment, task, now, noted=noted))

    async def _run(self, assignment: Assignment, executor: Executor) -> None:
        self._end(assignment, await self._attempt(assignment, executor))

    def _start_server(self) -> None:
        self._server = asyncio.Task(self._serve(), context=self._context.copy())
        # Comes right behind the first step of the server, that is, when it has come to its end or has to wait.
        asyncio.get_running_loop().call_soon(self._let_go, context=self._context)

    async def _serve(self) -> None:
        """Begin what waits, one after the other, until the turn is over or one of them has to wait itself."""
        server, clean, free = asyncio.current_task(), copy_context(), self._concurrency - self.going
        until = min(self._clock() + _TURN, self._held_until)
        while free > 0 and (now := self._clock()) < until and (waiting := self._waiting.take()) is not None:
            if self._goes_apart(waiting, now):
                free -= 1
                continue
            assignment = Assignment(waiting.run, waiting.spec, waiting.name, self._wall())
            self._in_turn = in_turn = (assignment, waiting.executor, now)
            outcome = await self._attempt(assignment, waiting.executor)
            if self._in_turn is not in_turn:
                self._end(assignment, outcome)
                return
            self._in_turn = None
            self._ended(Settlement(waiting.run, assignment.started_at, outcome))
            if copy_context() != clean or (server is not None and server.cancelling()):
                break
        self._server = None
        self._start_next()

    def _let_go(self) -> None:
        """If the server is in the middle of a handler, that one waits: others need not."""
        if self._in_turn is not None and self._server is not None:
            assignment, executor, began = self._in_turn
            self._waiters[executor] = _APART
            self._underway.add(Going(assignment, self._server, began, noted=False))
            self._in_turn = self._server = None
            self._start_next()

    async def _attempt(self, assignment: Assignment, executor: Executor) -> Outcome:
        answer: Answer
        try:
            answer = await executor(assignment)
        except asyncio.CancelledError as cancelled:
            return interrupted(assignment, self._stopped(assignment), self._chance, str(cancelled))
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is the answer to its attempt
            answer = Failure(traceback.format_exc(), classes=classes_of(type(error)))
        if answer is None:
            return SUCCEEDED
        if isinstance(answer, Failure):
            answer = msgspec.structs.replace(answer, error=self._redaction.hide(answer.error))
        return ended(assignment, answer, self._stopped(assignment), self._chance)

    def _stopped(self, assignment: Assignment) -> Stop | None:
        going = self._underway.of(assignment.run)
        return None if going is None else going.stopped

    def _end(self, assignment: Assignment, outcome: Outcome) -> None:
        """One that had to wait has come to its end, unless it was left behind before."""
        if self._underway.of(assignment.run) is None:
            return
        self._underway.remove(assignment)
        self._over(assignment, outcome)

    def _over(self, assignment: Assignment, outcome: Outcome) -> None:
        self._waiting.gone(assignment.run)
        self._ended(Settlement(assignment.run, assignment.started_at, outcome))
        self._start_next()

    def to_mark(self) -> list[tuple[Claimed, datetime]]:
        """Runs that may begin once the database has been told, and since when; until `noted` answers."""
        self.something_to_mark.clear()
        now = self._wall()
        return [(waiting.run, now) for waiting in self._marking.values()]

    def noted(self, begun: Iterable[Claimed], ours: Container[tuple[int, int]]) -> None:
        """The database knows of these: begin those that waited for it, and stop those that are not ours any more."""
        for run in begun:
            is_ours = (run.id, run.fence) in ours
            if (waiting := self._marking.pop(id(run), None)) is None:
                if not is_ours and (going := self._underway.of(run)) is not None:
                    self._underway.stop(going, self._clock(), Ending.RELEASED, _TAKEN_OVER)
            elif is_ours and (now := self._clock()) < self._held_until:
                self._begin(waiting, now, noted=True)
            else:
                self._hand_back(run)
        self._start_next()

    def look(self) -> list[tuple[Claimed, datetime]]:
        """Stop what is past its deadline, and what must not outlive the lease if that is about to end.

        What was stopped and does not heed it is left behind. Returns runs that have gone on for a blink and were not
        told of before.
        """
        now = self._clock()
        begun = [(going.assignment.run, going.assignment.started_at) for going in self._underway.grow_old(now)]
        for going in self._underway.overdue(now):
            self._underway.stop(going, now, Ending.TIMED_OUT)
        if now >= self._held_until:
            for going in self._underway:
                if going.assignment.spec.stops_when_cut_off:
                    self._underway.stop(going, now, Ending.RELEASED, "its worker was cut off from the database")
        for going in self._underway.deaf(now, LAST_WORDS):
            self._leave_behind(going)
        return begun

    def cancel(self, runs: Container[int]) -> None:
        """Have these stop that are under way: somebody has asked for it."""
        now = self._clock()
        for going in self._underway:
            if going.assignment.run.id in runs:
                self._underway.stop(going, now, Ending.CANCELLED, "cancelled on request")

    def _leave_behind(self, going: Going) -> None:
        """Its attempt is over, though it goes on: a coroutine that swallows its cancellation, or a thread.

        Its place is free, and what it does from now on counts no more. Processes never come to this: they are killed.
        """
        log.warning("a handler does not stop: left behind", run=encode("run", going.assignment.run.id))
        outcome = interrupted(going.assignment, going.stopped, self._chance)
        self._underway.leave_behind(going)
        self._over(going.assignment, outcome)

    def hand_back_waiting(self, which: Callable[[Claimed], bool] = lambda _: True) -> None:
        """Give up what has not begun, all of it or some."""
        marking = [each for each in self._marking.values() if which(each.run)]
        for each in marking:
            del self._marking[id(each.run)]
        for each in (*marking, *self._waiting.remove(which)):
            self._hand_back(each.run)

    def _hand_back(self, run: Claimed) -> None:
        self._waiting.gone(run)
        self._ended(Settlement(run, None, Outcome.released()))

    def in_hand(self) -> Iterator[Claimed]:
        """What runs, and what waits here for its turn."""
        yield from (going.assignment.run for going in self._underway)
        yield from (each.run for each in (*self._marking.values(), *self._waiting))

    async def drain(self, stop: asyncio.Event) -> None:
        """Give up what has not begun and let the rest come to its end, however long that takes, or until `stop`."""
        self.hand_back_waiting()
        await any_of(self._underway.idle, stop)

    async def finish(self, grace: timedelta) -> None:
        """Let what runs come to its end; hand back what has not by the end of the grace period."""
        self.hand_back_waiting()
        try:
            await asyncio.wait_for(self._underway.idle.wait(), grace.total_seconds())
        except TimeoutError:
            for going in self._underway:
                self._underway.stop(going, self._clock(), Ending.RELEASED, "its worker had to end")
            with suppress(TimeoutError):  # who does not heed it keeps its claim, which is taken back when we have left
                await asyncio.wait_for(self._underway.idle.wait(), LAST_WORDS.total_seconds())

    def abandon(self) -> None:
        """Stop everything at once: the lease is lost, and others may be running the same."""
        self._waiting.remove(lambda _: True)
        for run in [each.run for each in self._marking.values()]:
            del self._marking[id(run)]
            self._waiting.gone(run)
        for going in self._underway:
            self._underway.stop(going, self._clock(), Ending.RELEASED, _TAKEN_OVER)
