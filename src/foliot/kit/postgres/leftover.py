"""What an earlier launcher left in the data folder: a server to adopt or to end, or only its traces."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from foliot.kit.postgres.errors import PostgresError
from foliot.kit.postgres.process import PROC, Adopted, children_of, look_at, until

# Children notice a dead postmaster within milliseconds unless they are deep in a computation.
ORPHANS_MAY_LEAVE: Final = 2.0
MEMORY_MAY_LINGER: Final = 10.0
HARDER: Final = 10.0


class Running(Protocol):
    """A server we may watch and signal: our child (`Popen`) or an adopted one."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def send_signal(self, signal: int, /) -> None: ...


@dataclass(frozen=True, slots=True)
class PidFile:
    """What `postmaster.pid` says; a torn or empty file has pid 0."""

    pid: int
    socket: Path | None
    memory: tuple[int, int] | None
    status: str


def read_pid_file(data: Path) -> PidFile | None:
    try:
        lines = (data / "postmaster.pid").read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return None
    lines += [""] * (8 - len(lines))
    pid, socket, memory = lines[0].strip(), lines[4].strip(), lines[6].split()
    return PidFile(
        pid=int(pid) if pid.removeprefix("-").isdecimal() else 0,
        socket=Path(socket) if socket else None,
        memory=(int(memory[0]), int(memory[1])) if len(memory) == 2 and "".join(memory).isdecimal() else None,
        status=lines[7].strip(),
    )


def find_postmaster(data: Path, uid: int) -> Adopted | None:
    """Return the live server of `data`: never a zombie, a process that was given its pid later, or someone else's."""
    file = read_pid_file(data)
    found = look_at(abs(file.pid)) if file and file.pid else None
    if file is None or found is None or found.zombie or found.uid != uid or not found.serves(data):
        return None
    if file.pid < 0:
        raise PostgresError(f"postgres --single (pid {found.pid}) works on {data}: leave it, then start again.")
    return Adopted(found)


def end(server: Running, first: signal.Signals, timeout: float, log: Callable[[str], None]) -> None:
    """Stop a server, ever less politely; committed work survives all of it."""
    harder = [(order, HARDER) for order in (signal.SIGQUIT, signal.SIGKILL) if order is not first]
    for order, patience in [(first, timeout), *harder]:
        server.send_signal(order)
        if until(lambda: server.poll() is not None, patience):
            return
        log(f"PostgreSQL (pid {server.pid}) has not ended {patience:g} s after {order.name}")
    raise PostgresError(
        f"PostgreSQL (pid {server.pid}) cannot be ended, even by SIGKILL: see why it hangs (ps, dmesg)."
    )


def clear_traces(data: Path, socket: Path, uid: int) -> None:
    """Remove what a dead server left, once nothing uses its shared memory; the caller has found no live postmaster."""
    # A new server would judge these files by kill(pid, 0), which a zombie or a recycled pid of the same user answers.
    file = read_pid_file(data)
    if file and file.memory:
        _wait_for_memory(file.memory, socket.name, uid)
    for trace in (data / "postmaster.pid", socket / ".s.PGSQL.5432", socket / ".s.PGSQL.5432.lock"):
        trace.unlink(missing_ok=True)


def _wait_for_memory(memory: tuple[int, int], cluster: str, uid: int) -> None:
    if until(lambda: not _attached(memory), ORPHANS_MAY_LEAVE):
        return
    # Without a postmaster they can still write, and two writers would ruin the data. To them a kill is the crash that
    # has already happened: the next start recovers what was committed.
    for orphan in children_of(cluster, uid):
        with suppress(ProcessLookupError):
            os.kill(orphan.pid, signal.SIGKILL)
    if not until(lambda: not _attached(memory), MEMORY_MAY_LINGER):
        raise PostgresError(
            f"Processes of an earlier PostgreSQL still run: end them (ps -ef | grep {cluster}), then start again."
        )


def _attached(memory: tuple[int, int]) -> bool:
    """Say whether anyone holds the segment; where the system does not tell, the new server checks by itself."""
    try:
        rows = (PROC / "sysvipc/shm").read_text().splitlines()[1:]
    except OSError:
        return False
    for key, segment, _, _, _, _, attached, *_ in map(str.split, rows):
        # The same 32 bits, printed once as signed and once as unsigned.
        if int(segment) == memory[1] and (int(key) ^ memory[0]) & 0xFFFFFFFF == 0:
            return int(attached) > 0
    return False
