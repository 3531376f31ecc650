"""Sees one attempt through that runs in a guarded process: what it is given, what it writes, how it ends."""

import asyncio
import fcntl
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, NoReturn

import structlog

from foliot.domain.ids import encode
from foliot.domain.outcome import Answer, Ending, Failure, Returned
from foliot.domain.redaction import Redaction
from foliot.domain.result import is_small_json
from foliot.worker.alone import GRACE
from foliot.worker.child.child import CannotStart, Child, Forsaken
from foliot.worker.child.fate import Fate
from foliot.worker.child.nursery import Command, Nursery
from foliot.worker.commands.output import Tail, open_tail
from foliot.worker.commands.verdict import error_of, how, not_started, verdict
from foliot.worker.executor import Assignment

log = structlog.get_logger("worker")


class Ended(NamedTuple):
    """How a command ended, and what it wrote. Secrets are hidden already."""

    assignment: Assignment
    how: str
    stdout: str
    stderr: str
    cut: int
    """Bytes of both that were not kept."""


Told = Callable[[Ended], None]


def write_to_log(ended: Ended) -> None:
    """What was written goes to the worker's own log, the end of it."""
    said = log.bind(run=encode("run", ended.assignment.run.id), attempt=ended.assignment.run.attempt + 1)
    shown = {name: text[-1_000:] for name, text in (("stdout", ended.stdout), ("stderr", ended.stderr)) if text}
    said.info("the command " + ended.how, **shown, **({"cut_bytes": ended.cut} if ended.cut else {}))


class Attendant:
    """Secrets that `redaction` knows are in nothing that is kept; `told` hears of every end."""

    def __init__(self, nursery: Nursery, redaction: Redaction | None = None, told: Told = write_to_log) -> None:
        self._nursery = nursery
        self._redaction = redaction or Redaction()
        self._told = told

    async def run(self, assignment: Assignment, command: Command) -> Answer:
        """When this returns, or is cancelled, nobody whom it started is left. Its payload is its standard input."""
        (out, stdout), (err, stderr) = await open_tail(), await open_tail()
        try:
            try:
                with _holding(assignment.payload) as stdin:
                    command = command._replace(descriptors={0: stdin, 1: stdout, 2: stderr})
                    child, given_up = await self._start(command)
            finally:
                os.close(stdout)
                os.close(stderr)
            if given_up:
                await self._stop(assignment, child, out, err)
            return self._judge(await self._end(assignment, child, out, err), out, err)
        except Forsaken as error:  # it may have begun: whoever is delivered at most once must not be taken for unspent
            return Failure(error.message, ending=Ending.RELEASED)
        except CannotStart as error:
            return not_started(command.argv[0], error)
        finally:
            out.close()
            err.close()

    async def _start(self, command: Command) -> tuple[Child, bool]:
        """Also says whether it was given up meanwhile: it may have begun, and is ended like any other then."""
        starting = asyncio.ensure_future(self._nursery.start(command))
        try:
            return await asyncio.shield(starting), False
        except asyncio.CancelledError:
            try:
                return await starting, True
            except CannotStart:
                raise asyncio.CancelledError from None

    async def _end(self, assignment: Assignment, child: Child, out: Tail, err: Tail) -> Fate:
        try:
            fate = await _drained(child, out, err)
        except asyncio.CancelledError:
            await self._stop(assignment, child, out, err)
        finally:
            if not child.is_over:
                child.abandon()
        self._tell(assignment, fate, out, err)
        return fate

    async def _stop(self, assignment: Assignment, child: Child, out: Tail, err: Tail) -> NoReturn:
        """What is to end has a moment for its last words; they are those of the cancellation."""
        try:
            child.stop(GRACE)
            self._tell(assignment, await _drained(child, out, err), out, err)
        finally:
            if not child.is_over:
                child.abandon()
        raise asyncio.CancelledError(self._last_words(out, err)) from None

    def _tell(self, assignment: Assignment, fate: Fate, out: Tail, err: Tail) -> None:
        hide = self._redaction.hide
        self._told(Ended(assignment, how(fate), hide(out.text), hide(err.text), out.cut + err.cut))

    def _judge(self, fate: Fate, out: Tail, err: Tail) -> Answer:
        tail = _telling(out, err)
        answer = verdict(fate, self._redaction.hide(tail.text), tail.cut)
        if answer is not None or out.cut:
            return answer
        said = self._redaction.hide(out.text).strip().encode()
        return Returned(said) if said != b"null" and is_small_json(said) else None

    def _last_words(self, out: Tail, err: Tail) -> str:
        """For who wants to know what it was about when its time was up."""
        tail = _telling(out, err)
        return error_of("", self._redaction.hide(tail.text), tail.cut)


def _telling(out: Tail, err: Tail) -> Tail:
    return err if err.text.strip() else out


async def _drained(child: Child, out: Tail, err: Tail) -> Fate:
    fate = await child.ended()
    if fate.status is not None:  # everybody is gone who could hold them open
        await asyncio.wait([out.ended, err.ended])
    return fate


@contextmanager
def _holding(payload: bytes) -> Iterator[int]:
    """A descriptor from which the payload can be read, and nothing else be done."""
    if sys.platform != "linux":
        with tempfile.TemporaryFile() as file:
            file.write(payload)
            file.seek(0)
            yield file.fileno()
        return
    held = os.memfd_create("payload", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.write(held, payload)
        os.lseek(held, 0, os.SEEK_SET)
        fcntl.fcntl(held, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
        yield held
    finally:
        os.close(held)
