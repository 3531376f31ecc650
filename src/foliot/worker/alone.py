"""Runs functions in processes of their own: one for each attempt, killed with everything that it started."""

import asyncio
import os
import socket
import sys
from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta
from functools import partial
from typing import Any, Final, cast

import msgspec
import structlog

from foliot.domain.errorclass import CRASHED
from foliot.domain.outcome import Answer, Ending, Failure
from foliot.domain.report import Progress
from foliot.sdk.desk import NOBODY, Desk
from foliot.worker.child.answer import CHANNEL, Frames, Numbered, frame, unpack_answer
from foliot.worker.child.child import CannotStart, Child, Forsaken
from foliot.worker.child.fate import Fate
from foliot.worker.child.inside import PATH
from foliot.worker.child.nursery import Command, Nursery
from foliot.worker.executor import Assignment

log = structlog.get_logger("worker")

START_UP: Final = 30.0
"""Seconds within which a process should have come to its function; then the attempt's time begins all the same."""
GRACE: Final = timedelta(seconds=2)
"""From SIGTERM to SIGKILL; also what a process that has answered gets to come to its end."""


class Alone:
    """Functions of the application `reference`. With `spare` one process is always ready for the next attempt.

    A spare that has imported the application hides the third of a second which that takes. Forking from a process that
    has it imported would be cheaper still, but a fork copies locks that other threads hold, and an application has
    threads that we know nothing of.
    """

    def __init__(self, nursery: Nursery, reference: str, desk: Desk = NOBODY, *, spare: bool) -> None:
        self._nursery = nursery
        self._reference = reference
        self._desk = desk
        self._keeps_spare = spare
        self._spare: _Cell | None = None
        self._is_stocking = False

    async def isolated(self, assignment: Assignment) -> Answer:
        """Run an attempt of a function that asked for it."""
        end = await self._run(assignment)
        return Failure(f"its process {end}", classes=(CRASHED,)) if isinstance(end, Fate) else end

    async def suspect(self, assignment: Assignment) -> Answer:
        """Run an attempt of a run under which workers have died: should it do so again, it is known that it was it."""
        end = await self._run(assignment)
        if isinstance(end, Fate):
            return Failure(f"its process {end}", ending=Ending.LOST, classes=(CRASHED,))
        return end

    async def stock(self) -> None:
        """Have a process at hand for the next attempt."""
        if not self._keeps_spare or self._is_stocking or (self._spare is not None and self._spare.is_fit):
            return
        self._is_stocking = True
        try:
            self._spare = await self._open()
        except CannotStart as error:
            log.warning("no process could be started in advance", error=str(error))
        finally:
            self._is_stocking = False

    def close(self) -> None:
        """Give up the spare; nothing may be under way."""
        if self._spare is not None:
            self._spare.close()

    async def _run(self, assignment: Assignment) -> Answer | Fate:
        # Nobody who runs among others spends his time on the start of a process; a suspect has not asked for one.
        self._desk.hold(assignment)
        cell, self._spare = self._spare, None
        if cell is not None and not cell.is_fit:
            cell.close()
            cell = None
        cell = cell or await self._open()
        forget = self._desk.watch(lambda: cell.say("drain", self._desk.leaves_by))
        try:
            cell.assign(assignment, self._desk)
            await self.stock()
            return await cell.end()
        except asyncio.CancelledError:
            cell.say("stop", self._desk.why_stopped(assignment) or "its worker gave it up")
            cell.child.stop(GRACE)
            await cell.child.ended()
            raise
        finally:
            forget()
            cell.close()

    async def _open(self) -> "_Cell":
        ours, theirs = socket.socketpair()
        with theirs, open(os.devnull, "rb") as nothing:  # noqa: ASYNC230, PTH123 - it never blocks
            descriptors = {0: nothing.fileno(), 1: 1, 2: 2, CHANNEL: theirs.fileno()}
            argv = [sys.executable, "-m", "foliot.worker.child.inside", self._reference]
            try:
                environment = {**os.environ, PATH: os.pathsep.join(sys.path)}
                child = await self._start(Command(argv, descriptors, environment))
            except BaseException:
                ours.close()
                raise
        _, channel = await asyncio.get_running_loop().create_unix_connection(_Channel, sock=ours)
        return _Cell(child, channel)

    async def _start(self, command: Command) -> Child:
        """Twice, if need be: what runs inside does nothing before it is told to."""
        try:
            return await self._nursery.start(command)
        except Forsaken:
            return await self._nursery.start(command)


class _Cell:
    """A child, and the channel to what runs inside."""

    def __init__(self, child: Child, channel: "_Channel") -> None:
        self.child = child
        self._channel = channel
        self._begins: asyncio.TimerHandle | None = None

    @property
    def is_fit(self) -> bool:
        """Whether it still waits for something to do: one that cannot import the application does not."""
        return not (self.child.is_over or self._channel.ended.done())

    def say(self, kind: str, body: Any) -> None:
        self._channel.say(frame(kind, body))

    def assign(self, assignment: Assignment, desk: Desk) -> None:
        """Have it begin; what it has to say meanwhile is for the desk."""
        self._channel.heard = partial(self._pass_on, assignment, desk)
        self._begins = asyncio.get_running_loop().call_later(START_UP, desk.extend, assignment)
        self.say("assign", assignment)
        if desk.is_draining:
            self.say("drain", desk.leaves_by)

    def _pass_on(self, attempt: Assignment, desk: Desk, kind: str, body: bytes) -> None:
        match kind:
            case "progress":
                desk.note(attempt, msgspec.msgpack.decode(body, type=Progress))
            case "beat":  # the first one says that the function begins
                self._forget_begin()
                desk.extend(attempt)
            case "save":
                number, state = msgspec.msgpack.decode(body, type=Numbered)
                desk.save(attempt, state or b"").add_done_callback(partial(self._reply, "saved", number))
            case "last":
                number, _ = msgspec.msgpack.decode(body, type=Numbered)
                desk.last(attempt).add_done_callback(partial(self._reply, "last", number))
            case _:
                raise ValueError(f"a child says {kind!r}, which means nothing here")

    def _reply(self, kind: str, number: int, done: "Future[bytes | None]") -> None:
        if done.exception() is None:
            self.say(kind, (number, done.result()))
        else:
            self.say("lost", (number, None))

    async def end(self) -> Answer | Fate:
        """How the attempt ended; the fate of the process, if that is what ended it."""
        either: list[asyncio.Future[Any]] = [self._channel.ended, self.child.over]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        try:
            fate = await asyncio.wait_for(self.child.ended(), GRACE.total_seconds())
        except TimeoutError:  # it has answered: what still holds it is none of the handler's business
            self.child.stop(timedelta(0))
            fate = await self.child.ended()
        if fate.status is not None:  # everybody is gone who could hold it open
            await self._channel.ended
        if self._channel.answer is not None:
            return unpack_answer(self._channel.answer)
        if fate.lapsed:
            return Failure("this worker stood still for its whole lease", ending=Ending.RELEASED)
        if fate.status is None:
            return Failure(f"its process {fate}", ending=Ending.RELEASED)
        return fate

    def _forget_begin(self) -> None:
        if self._begins is not None:
            self._begins.cancel()
            self._begins = None

    def close(self) -> None:
        self._forget_begin()
        self._channel.hang_up()
        if not self.child.is_over:
            self.child.abandon()


class _Channel(asyncio.Protocol):
    def __init__(self) -> None:
        self.heard: Callable[[str, bytes], None] = lambda *_: None
        self.answer: bytes | None = None
        self._frames = Frames()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def say(self, words: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(words)

    def data_received(self, data: bytes) -> None:
        for kind, body in self._frames.feed(data):
            if kind == "answer":
                self.answer = body
            else:
                self.heard(kind, body)

    def eof_received(self) -> bool:
        self._end()
        return True  # what we have to say is another matter

    def connection_lost(self, _: Exception | None) -> None:
        self._end()

    def hang_up(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)
