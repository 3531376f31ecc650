"""Runs commands: one guarded process for each attempt, judged by its exit status."""

import asyncio
import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import structlog

from foliot.domain.commands import CommandPolicy, Rights
from foliot.domain.ids import encode
from foliot.domain.outcome import Failure
from foliot.domain.redaction import Redaction
from foliot.domain.spec import CommandHandler
from foliot.wire.codec import rfc3339
from foliot.worker.alone import GRACE
from foliot.worker.child.answer import Answer
from foliot.worker.child.child import CannotStart, Child
from foliot.worker.child.fate import Fate
from foliot.worker.child.nursery import Command, Nursery
from foliot.worker.commands.folders import Folders, remove
from foliot.worker.commands.isolation import OURSELVES, Account, Isolation, account_of
from foliot.worker.commands.output import Tail, open_tail
from foliot.worker.commands.rules import PRIVATE, Walls, rules_of
from foliot.worker.commands.verdict import how, not_started, verdict
from foliot.worker.executor import Assignment

log = structlog.get_logger("worker")

NOT_ALLOWED: Final = "CommandNotAllowed"


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


class Commands:
    """What a worker may run for tenants; `hidden` are places that hold what commands must not know."""

    def __init__(
        self,
        nursery: Nursery,
        policy: CommandPolicy,
        isolation: Isolation,
        folders: Folders,
        *,
        hidden: Sequence[str] = (),
        redaction: Redaction | None = None,
        told: Told = write_to_log,
    ) -> None:
        self._nursery = nursery
        self._policy = policy
        self._isolation = isolation
        self._folders = folders
        self._hidden = tuple(hidden)
        self._redaction = redaction or Redaction()
        self._told = told

    async def execute(self, tenant: str, assignment: Assignment) -> Answer:
        """Run one attempt. When this returns, or is cancelled, nobody whom the command started is left."""
        argv = argv_of(assignment)
        rights = self._policy.of(tenant)
        program = "" if rights is None else find_program(argv[0], rights.environment["PATH"])
        if rights is None or not rights.allows(program, argv):
            said = f"{argv[0]!r} is not among the commands that the operator of this worker allows tenant {tenant!r}"
            return Failure(said, permanent=True, classes=(NOT_ALLOWED,))
        account = account_of(rights.account, assignment.run.tenant) if self._isolation.other_user else OURSELVES
        folder = self._folders.make(account.uid, account.gid)
        try:
            command = self._command(assignment, rights, account, folder)._replace(argv=argv, program=program)
            return await self._run(assignment, command)
        finally:
            await asyncio.to_thread(_tidy, folder)

    def _command(self, assignment: Assignment, rights: Rights, account: Account, folder: Path) -> Command:
        parts = self._isolation.parts - ({"net"} if rights.network else set())
        walls = Walls(frozenset(parts), self._hidden, rights.readable, rights.writable)
        seen_as = PRIVATE[0] if "mount" in parts else str(folder)
        return Command(
            argv=(),
            descriptors={},
            environment=environment_of(assignment, rights.environment, seen_as, account.name),
            folder=seen_as,
            rules=rules_of(account.uid, account.gid, rights.limits, walls, str(folder)),
            bound=assignment.spec.stops_when_cut_off,
        )

    async def _run(self, assignment: Assignment, command: Command) -> Answer:
        (out, stdout), (err, stderr) = await open_tail(), await open_tail()
        try:
            try:
                with _holding(assignment.run.payload) as stdin:
                    command = command._replace(descriptors={0: stdin, 1: stdout, 2: stderr})
                    child = await self._nursery.start(command)
            finally:
                os.close(stdout)
                os.close(stderr)
            return self._judge(await self._end(assignment, child, out, err), out, err)
        except CannotStart as error:
            return not_started(command.argv[0], error)
        finally:
            out.close()
            err.close()

    async def _end(self, assignment: Assignment, child: Child, out: Tail, err: Tail) -> Fate:
        try:
            fate = await _drained(child, out, err)
        except asyncio.CancelledError:
            child.stop(GRACE)
            self._tell(assignment, await _drained(child, out, err), out, err)
            raise
        finally:
            if not child.is_over:
                child.abandon()
        self._tell(assignment, fate, out, err)
        return fate

    def _tell(self, assignment: Assignment, fate: Fate, out: Tail, err: Tail) -> None:
        hide = self._redaction.hide
        self._told(Ended(assignment, how(fate), hide(out.text), hide(err.text), out.cut + err.cut))

    def _judge(self, fate: Fate, out: Tail, err: Tail) -> Answer:
        tail = err if err.text.strip() else out
        return verdict(fate, self._redaction.hide(tail.text), tail.cut)


async def _drained(child: Child, out: Tail, err: Tail) -> Fate:
    fate = await child.ended()
    if fate.status is not None:  # everybody is gone who could hold them open
        await asyncio.wait([out.ended, err.ended])
    return fate


def argv_of(assignment: Assignment) -> list[str]:
    handler = assignment.spec.handler
    if not isinstance(handler, CommandHandler):
        raise TypeError("not a command")
    target = msgspec.json.decode(assignment.run.target) if assignment.run.target else {}
    return [str(word) for word in target.get("argv") or handler.argv]


def find_program(name: str, path: str) -> str:
    """The file to execute: a whole path as it is, a bare name as the operator's PATH finds it; else nothing."""
    return name if "/" in name else shutil.which(name, path=path) or ""


def environment_of(
    assignment: Assignment, given: Mapping[str, str], folder: str, account: str | None
) -> dict[str, str]:
    """Nothing of the worker's own: what the operator set, and what the command needs to know of its run."""
    run = assignment.run
    about = {
        "FOLIOT_RUN": encode("run", run.id),
        "FOLIOT_NAME": assignment.name,
        "FOLIOT_ATTEMPT": str(run.attempt + 1),
        "FOLIOT_FENCE": str(run.fence),
        "FOLIOT_SCHEDULED_AT": rfc3339(run.scheduled_at),
        "TRACEPARENT": f"00-{run.id:032x}-{run.fence:016x}-01",
    }
    if run.job is not None:
        about["FOLIOT_JOB"] = encode("job", run.job)
    who = {} if account is None else {"USER": account, "LOGNAME": account}
    return {**who, "HOME": folder, "TMPDIR": folder, **given, **about}


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


def _tidy(folder: Path) -> None:
    try:
        remove(folder)
    except OSError as error:
        log.warning("the folder of a command could not be removed", folder=str(folder), error=str(error))
