"""Runs commands: one guarded process for each attempt, judged by its exit status."""

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import structlog

from foliot.domain.commands import CommandPolicy, Rights
from foliot.domain.errors import FoliotError
from foliot.domain.ids import encode
from foliot.domain.outcome import Answer, Failure
from foliot.domain.spec import CommandHandler
from foliot.wire.codec import rfc3339
from foliot.worker.child.nursery import Command
from foliot.worker.commands.attendant import Attendant
from foliot.worker.commands.folders import Folders, remove
from foliot.worker.commands.isolation import OURSELVES, Account, Isolation, account_of
from foliot.worker.commands.rules import PRIVATE, Walls, rules_of
from foliot.worker.executor import Assignment

log = structlog.get_logger("worker")

NOT_ALLOWED: Final = "CommandNotAllowed"


class Commands:
    """What a worker may run for tenants; `hidden` are places that hold what commands must not know."""

    def __init__(
        self,
        attendant: Attendant,
        policy: CommandPolicy,
        isolation: Isolation,
        folders: Folders,
        hidden: Sequence[str] = (),
    ) -> None:
        self._attendant = attendant
        self._policy = policy
        self._isolation = isolation
        self._folders = folders
        self._hidden = tuple(hidden)

    async def execute(self, tenant: str, assignment: Assignment) -> Answer:
        """Run one attempt. When this returns, or is cancelled, nobody whom the command started is left."""
        argv = argv_of(assignment)
        rights = self._policy.of(tenant)
        program = "" if rights is None else find_program(argv[0], rights.environment["PATH"])
        if rights is None or not rights.allows(program, argv):
            said = f"{argv[0]!r} is not among the commands that the operator of this worker allows tenant {tenant!r}"
            return Failure(said, permanent=True, classes=(NOT_ALLOWED,))
        try:
            account = account_of(rights.account, assignment.run.tenant) if self._isolation.other_user else OURSELVES
        except FoliotError as error:
            return Failure(str(error), permanent=True, classes=(NOT_ALLOWED,))
        folder = self._folders.make(account.uid, account.gid)
        try:
            command = self._command(assignment, rights, account, folder)._replace(argv=argv, program=program)
            return await self._attendant.run(assignment, command)
        finally:
            await asyncio.to_thread(tidy, folder)

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


def argv_of(assignment: Assignment) -> list[str]:
    handler = assignment.spec.handler
    if not isinstance(handler, CommandHandler):
        raise TypeError("not a command")
    target = msgspec.json.decode(assignment.target) if assignment.target else {}
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


def tidy(folder: Path) -> None:
    """Remove it; what cannot be removed now is when the worker ends, or the next one starts."""
    try:
        remove(folder)
    except OSError as error:
        log.warning("the folder of a command could not be removed", folder=str(folder), error=str(error))
