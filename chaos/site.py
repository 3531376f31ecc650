"""Where on this machine a chaos run takes place: several may at once, each with networks and ports of its own."""

import fcntl
import os
import random
import socket
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

SITES: Final = 200
SPAN: Final = 100
"""Ports of each."""
_EPHEMERAL: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


class Site:
    """A number from 1 on that nobody else has until `close`, or until this process ends, however it ends."""

    def __init__(self) -> None:
        for number in range(1, SITES + 1):
            with suppress(OSError):  # somebody has it, or it is another user's
                self._lock = _locked(Path(tempfile.gettempdir()) / f"foliot-chaos-{number}.lock")
                self.number = number
                return
        raise RuntimeError(f"{SITES} chaos runs go on here already")

    @property
    def ports(self) -> range:
        first = lowest_ephemeral() - SITES * SPAN + (self.number - 1) * SPAN
        return range(first, first + SPAN)

    def close(self) -> None:
        os.close(self._lock)


def _locked(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def lowest_ephemeral() -> int:
    """The first port that the system gives to outgoing connections, or a usual one that leaves room below it."""
    lowest = int(_EPHEMERAL.read_text().split()[0]) if _EPHEMERAL.exists() else 32_768
    return max(lowest, SITES * SPAN + 1_024)


def socket_of(dsn: str) -> str:
    """Where a server listens whose address names the folder of its socket."""
    folder = dsn.partition("host=")[2].partition("&")[0]
    return f"{folder}/.s.PGSQL.5432"


def free_ports(count: int, among: Sequence[int] = ()) -> list[int]:
    """Ports that nobody listens on now; all are held until all are found.

    Below those that the system gives to outgoing connections: one of them would keep a process that was killed from
    coming back to its port.
    """
    lowest = lowest_ephemeral()
    candidates = among or range(lowest - SITES * SPAN, lowest)
    held: list[socket.socket] = []
    try:
        for port in random.SystemRandom().sample(candidates, len(candidates)):
            with suppress(OSError):
                held.append(socket.create_server(("127.0.0.1", port)))
            if len(held) == count:
                break
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()
