"""Runs containers: an engine's own program is the guarded process, and what it started goes with it."""

import asyncio
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import structlog

from foliot.domain.commands import SEARCHED, CommandPolicy, Rights
from foliot.domain.ids import encode
from foliot.domain.outcome import Answer, Failure
from foliot.domain.spec import ContainerHandler
from foliot.worker.child.nursery import Command
from foliot.worker.commands.attendant import Attendant
from foliot.worker.commands.executor import NOT_ALLOWED, environment_of, tidy
from foliot.worker.commands.folders import Folders
from foliot.worker.executor import Assignment

log = structlog.get_logger("worker")

ENGINES: Final = ("podman", "docker")
"""In this order: the first needs no service that is root."""
_INHERITED: Final = ("HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "DOCKER_HOST", "DOCKER_CONFIG", "CONTAINER_HOST")
"""What an engine's program needs to find its service, its images and the keys to its registries."""
_PATIENCE: Final = 10.0


class Engine(NamedTuple):
    program: str
    environment: Mapping[str, str]


async def find_engine(names: Sequence[str] = ENGINES) -> Engine | None:
    """The first engine that is here and answers; a program without its service is none."""
    environment = {name: os.environ[name] for name in _INHERITED if name in os.environ} | {"PATH": SEARCHED}
    for name in names:
        program = name if "/" in name else shutil.which(name, path=f"{SEARCHED}:{os.environ.get('PATH', '')}")
        if program and await _answers(program, environment):
            return Engine(program, environment)
    return None


async def _answers(program: str, environment: Mapping[str, str]) -> bool:
    nowhere = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            program, "info", env=environment, stdin=nowhere, stdout=nowhere, stderr=nowhere
        )
    except OSError:
        return False
    try:
        return await asyncio.wait_for(process.wait(), _PATIENCE) == 0
    except TimeoutError:
        process.kill()
        await process.wait()
        return False


class Asked(msgspec.Struct, frozen=True):
    """What of a container travels with a run."""

    image: str
    args: list[str] = []
    env: dict[str, str] = {}


class Containers:
    """What a worker that has an engine may run for tenants."""

    def __init__(self, attendant: Attendant, policy: CommandPolicy, engine: Engine, folders: Folders) -> None:
        self._attendant = attendant
        self._policy = policy
        self._engine = engine
        self._folders = folders

    async def execute(self, tenant: str, assignment: Assignment) -> Answer:
        """Run one attempt. When this returns, or is cancelled, its container is gone."""
        asked = asked_of(assignment)
        rights = self._policy.of(tenant)
        if rights is None or not rights.allows_image(asked.image):
            said = f"{asked.image!r} is not among the images that the operator of this worker allows tenant {tenant!r}"
            return Failure(said, permanent=True, classes=(NOT_ALLOWED,))
        if split := [name for name, value in {**rights.environment, **asked.env}.items() if set(value) & {"\n", "\r"}]:
            said = (
                f"the variable {split[0]} has several lines, and a container's variables are handed over line by line"
            )
            return Failure(f"{said}: encode it, as base64 for example", permanent=True, classes=(NOT_ALLOWED,))
        folder = self._folders.make(None, None)
        try:
            return await self._attendant.run(assignment, self._command(assignment, asked, rights, folder))
        finally:
            await asyncio.to_thread(tidy, folder)

    def _command(self, assignment: Assignment, asked: Asked, rights: Rights, folder: Path) -> Command:
        # In a file: among the words, every user of the machine could read it, and in the environment of the engine's
        # own program, which is often root, a variable would be as good as a command.
        variables = folder / "variables"
        variables.touch(mode=0o600)
        given = {**rights.environment, **asked.env, **environment_of(assignment, {}, "/tmp", None)}  # noqa: S108 - its own
        kept = {name: value for name, value in given.items() if name not in {"PATH", "HOME"} or name in asked.env}
        variables.write_text("".join(f"{name}={value}\n" for name, value in kept.items()), encoding="utf-8")
        name = f"foliot-{encode('run', assignment.run.id)}-{assignment.run.fence}".replace("_", "-")
        return Command(
            argv=[self._engine.program, *_options(assignment, rights, name, variables), asked.image, *asked.args],
            descriptors={},
            environment=self._engine.environment,
            folder=str(folder),
            last=[self._engine.program, "rm", "--force", name],
            bound=assignment.spec.stops_when_cut_off,
        )


def asked_of(assignment: Assignment) -> Asked:
    handler = assignment.handler
    if not isinstance(handler, ContainerHandler):
        raise TypeError("not a container")
    if assignment.target:
        return msgspec.json.decode(assignment.target, type=Asked)
    return Asked(handler.image, list(handler.args), {name: str(value) for name, value in handler.env.items()})


def _options(assignment: Assignment, rights: Rights, name: str, variables: Path) -> list[str]:
    """No more than a command has: no privileges, no way to gain any, no network unless the operator says so."""
    handler = assignment.spec.handler
    resources = handler.resources if isinstance(handler, ContainerHandler) else ContainerHandler().resources
    memory = min(rights.limits.memory_mib, resources.memory_mib or rights.limits.memory_mib)
    return [
        *("run", "--rm", "--interactive", "--name", name, "--env-file", str(variables)),
        *("--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--log-driver", "none"),
        *("--pids-limit", str(rights.limits.processes), "--memory", f"{memory}m"),
        *(("--cpus", f"{resources.cpus:g}") if resources.cpus is not None else ()),
        *(() if rights.network else ("--network", "none")),
        *("--tmpfs", "/tmp", "--"),  # noqa: S108 - of the container's own
    ]
