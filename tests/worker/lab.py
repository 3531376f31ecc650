"""Commands as a worker runs them, in the test's process or in one of an ordinary user's own."""

import asyncio
import fcntl
import json
import os
import pwd
import signal
import subprocess
import sys
import tempfile
import termios
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

import foliot
from foliot.domain.commands import SEARCHED, CommandPolicy
from foliot.domain.outcome import Answer, Failure
from foliot.domain.redaction import Redaction
from foliot.domain.spec import CommandHandler, Spec
from foliot.kit.clock import steady
from foliot.worker.child import kernel
from foliot.worker.child.nursery import Nursery, open_nursery
from foliot.worker.commands.attendant import Attendant, Ended
from foliot.worker.commands.executor import Commands
from foliot.worker.commands.folders import Folders, open_folders
from foliot.worker.commands.isolation import Isolation, probe
from worker.making import assignment

LEASE = 3_600.0
LAST = 1.0
"""Seconds that are left of the lease of one that stops itself."""
ANYTHING = {"tenants": {"*": {"allow": ["*"]}}}
OWN = os.getpid()
"""Tests run beside each other on one machine: what they look for there has this in its name."""
PLANTED = f"a-secret-that-was-planted-by-{OWN}"
TENANT = 1_000 + OWN % 30_000
"""Whose user ids no other test process uses at the same time."""


class Lab:
    """Runs commands, remembers what they wrote."""

    def __init__(self, nursery: Nursery, folders: Folders, isolation: Isolation) -> None:
        self.nursery = nursery
        self.folders = folders
        self.isolation = isolation
        self.heard: list[Ended] = []

    async def run(
        self,
        *argv: str,
        payload: Any = None,
        policy: dict[str, Any] | None = None,
        tenant: tuple[str, int] = ("acme", TENANT),
        secrets: Sequence[str] = (),
        hidden: Sequence[str] = (),
        **fields: Any,
    ) -> Answer:
        attendant = Attendant(self.nursery, Redaction(secrets), self.heard.append)
        allowed = msgspec.convert(policy or ANYTHING, CommandPolicy)
        commands = Commands(attendant, allowed, self.isolation, self.folders, hidden)
        spec = Spec(handler=CommandHandler(argv), **fields)
        asked = assignment(spec, payload=msgspec.json.encode(payload), tenant=tenant[1])
        return await commands.execute(tenant[0], asked)

    async def sh(self, script: str, **fields: Any) -> Answer:
        return await self.run("/bin/sh", "-c", script, **fields)

    @property
    def said(self) -> str:
        """What the last command wrote to its standard output."""
        return self.heard[-1].stdout


@asynccontextmanager
async def open_lab(*, walls: bool | None, folder: Path | None = None, secretive: bool = False) -> AsyncIterator[Lab]:
    """With all walls, with none, as where the kernel refuses them, or (None) with those that can be had here.

    The test is skipped where what it is about cannot be had.
    """
    async with open_nursery(secretive=secretive) as nursery:
        with open_folders(folder) as folders:
            found = await probe(nursery, folders, *([()] if walls is False else []))
            if not found.other_user:
                pytest.skip(f"no other user can be had here: {found.refused}")
            if walls and found.refused:
                pytest.skip(f"not all walls can be had here: {found.refused}")
            yield Lab(nursery, folders, found)


def living(marker: str) -> list[int]:
    """Processes, not dead and unburied ones, whose command line has the marker in it."""
    found = []
    for path in Path("/proc").iterdir():
        try:
            words = (path / "cmdline").read_bytes() if path.name.isdigit() else b""
            if marker.encode() in words and int(path.name) != os.getpid():
                found.append(int(path.name))
        except OSError:
            continue
    return found


async def main(walls: bool, argv: list[str], payload: Any) -> None:
    """Run one command under a lease, and say on a line what became of it. SIGUSR1: stop, shortly before it ends."""
    kernel.be_readable(False)
    async with open_nursery(silence=timedelta(seconds=LAST), secretive=True) as nursery:
        nursery.hold(steady() + LEASE)
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, _stop_soon, nursery)
        with open_folders() as folders:
            lab = Lab(nursery, folders, await probe(nursery, folders, *([] if walls else [()])))
            answer = await lab.run(*argv, payload=payload and {**payload, "pids": _relatives()})
            told = {
                "error": answer.error if isinstance(answer, Failure) else None,
                "said": lab.heard[-1].stdout if lab.heard else "",
                "terminal": _has_terminal(),
            }
            print(json.dumps({**told, "parts": sorted(lab.isolation.parts)}), flush=True)  # noqa: T201


def _stop_soon(nursery: Nursery) -> None:
    """By our own hand, so that no slow machine lets the lease end before we are stopped."""
    nursery.hold(steady() + LAST)
    os.kill(os.getpid(), signal.SIGSTOP)


def _has_terminal() -> bool:
    with suppress(OSError):
        os.close(os.open("/dev/tty", os.O_RDWR))
        return True
    return False


def _relatives() -> list[int]:
    """Ourselves and our guardian: who knows secrets, or could end a command's guard."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [os.getpid(), *map(int, children)]


@contextmanager
def as_process(
    argv: Sequence[str], asked: Any = None, *, walls: bool, ordinary: bool = False, terminal: bool = False
) -> "Iterator[subprocess.Popen[str]]":
    """A lab of its own that runs one command, with a secret in its environment; of an ordinary user, if so wanted.

    `terminal`: it was started from one.
    """
    paths = ":".join(filter(None, _paths()))
    environment = {"PYTHONPATH": paths, "FOLIOT_DATABASE_URL": PLANTED, "PATH": SEARCHED}
    python, become = sys.executable, None
    with tempfile.TemporaryDirectory(prefix="foliot-python-") as place:
        if ordinary and os.geteuid() == 0:
            # Root's own Python may lie where nobody else may go: it is shown in another place.
            python, become = f"{place}/bin/{Path(sys.executable).resolve().name}", partial(_become_nobody, place)
            environment["LD_LIBRARY_PATH"] = f"{place}/lib"
        if terminal:
            ours, theirs = os.openpty()
            become = partial(_sit_down_at, theirs)
        command = [python, "-m", "worker.lab", json.dumps([walls, argv, asked])]
        with subprocess.Popen(
            command,
            env=environment,
            cwd="/",
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=become,  # noqa: PLW1509 - it has no threads
        ) as process:
            try:
                yield process
            finally:
                process.kill()
                for each in (ours, theirs) if terminal else ():
                    os.close(each)


def _sit_down_at(terminal: int) -> None:
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


def _paths() -> list[str]:
    return [*map(str, (Path(__file__).parents[1], Path(foliot.__file__).parents[1])), *sys.path]


def skip_unless_somebody_can_be_ordinary() -> None:
    """Root becomes another user for it, who must find Python and Foliot in a place where he may go."""
    if os.geteuid():
        return
    with tempfile.TemporaryDirectory(prefix="foliot-python-") as place:
        pid = os.fork()
        if not pid:
            try:
                _become_nobody(place)
                os._exit(not all(os.access(path, os.R_OK | os.X_OK) for path in _paths() if os.path.isdir(path)))  # noqa: PTH112
            except OSError:
                os._exit(2)
        trouble = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if trouble:
        pytest.skip("nobody but root may read this code" if trouble == 1 else "root cannot become another user here")


def _become_nobody(place: str) -> None:
    nobody = pwd.getpwnam("nobody")
    kernel.unshare(kernel.NEW_MOUNT)
    kernel.mount("none", "/", None, kernel.RECURSIVE | kernel.PRIVATE)
    kernel.mount(sys.base_prefix, place, None, kernel.BIND)
    os.setgroups([])
    os.setresgid(nobody.pw_gid, nobody.pw_gid, nobody.pw_gid)
    os.setresuid(nobody.pw_uid, nobody.pw_uid, nobody.pw_uid)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(main(*json.loads(sys.argv[1])))
