"""What the system says about a process: whose it is, what it runs, and whether it is only a zombie."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from signal import Signals
from typing import Final

PROC: Final = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A process at one glance; with `started` a pid that was given away again is told apart."""

    pid: int
    uid: int
    started: str
    zombie: bool
    program: str
    command: str

    def serves(self, data: Path) -> bool:
        """Say whether this is a postmaster (not one of its children) whose data folder is `data`."""
        if self.program not in {"postgres", "postmaster"}:
            return False
        # Reading another user's cwd takes a privilege that root in a container may lack; the command line does not.
        if f" -D {data} " in f"{self.command} ":
            return True
        try:
            return (PROC / str(self.pid) / "cwd").samefile(data)
        except OSError:
            return False


def look_at(pid: int) -> Process | None:
    """Return what runs under `pid` now, or None."""
    try:
        return _from_proc(pid) if (PROC / "self/stat").exists() else _from_ps(pid)
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):  # it went away while we looked
        return None


def children_of(cluster: str, uid: int) -> Iterator[Process]:
    """Yield the processes that a server of this `cluster_name` has forked (only where there is a /proc)."""
    for pid in [int(entry.name) for entry in PROC.glob("[0-9]*")]:
        found = look_at(pid)
        if found and found.uid == uid and found.command.startswith(f"postgres: {cluster}: "):
            yield found


def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for `condition`; say whether it came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


class Adopted:
    """A server that some earlier launcher started, with the part of `Popen` that a launcher needs."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._returncode: int | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        """Return None while it runs; its true status is only known if it was handed to us as a child, else 1."""
        if self._returncode is None:
            now = look_at(self.pid)
            if now is None or now.zombie or now.started != self._process.started:
                self._returncode = self._reap()
        return self._returncode

    def send_signal(self, signal: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, Signals(signal))

    def _reap(self) -> int:
        # An orphan goes to init or to a subreaper, and in a container that may be us.
        with suppress(ChildProcessError):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
        return 1


def _from_proc(pid: int) -> Process:
    folder = PROC / str(pid)
    # The program's name, in parentheses, may hold anything: what follows the last one is safe to split.
    fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
    status = (folder / "status").read_text(errors="replace")
    effective = status.partition("\nUid:")[2].split()[1]
    arguments = os.fsdecode((folder / "cmdline").read_bytes()).split("\0")
    program = Path(arguments[0]).name
    return Process(pid, int(effective), fields[19], fields[0] in "ZX", program, " ".join(arguments).strip())


def _from_ps(pid: int) -> Process:
    line = subprocess.run(  # noqa: S603 - a fixed program and a number
        ["/bin/ps", "-ww", "-o", "uid=,state=,lstart=,command=", "-p", str(pid)],
        env={"LC_ALL": "C"},
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    ).stdout
    words = line.split(maxsplit=7)
    command = "".join(words[7:]).strip()
    program = Path(command.partition(" -")[0]).name
    return Process(pid, int(words[0]), " ".join(words[2:7]), words[1].startswith("Z"), program, command)
