"""What processes use, as the kernel counts it: memory at most, and how many processors each of them kept busy."""

import os
import time
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
TICKS: Final = os.sysconf("SC_CLK_TCK")
HELPERS: Final = ("autovacuum", "checkpointer", "background writer", "walwriter", "io worker")
"""Processes of the server that work for nobody in particular."""


def peak_memory(pid: int) -> int | None:
    """Bytes that the process has had resident at most; none where there is no /proc."""
    try:
        lines = (PROC / str(pid) / "status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), None)


def own_memory(*pids: int) -> int:
    """Bytes that these processes have for themselves just now: what they share, like buffers, is not counted."""
    total = 0
    for pid in pids:
        try:
            lines = (PROC / str(pid) / "status").read_text(encoding="utf-8").splitlines()
        except OSError:  # it has gone
            continue
        total += next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:")), 0)
    return total


def parent(pid: int) -> int:
    """Who started this process; 0 where there is no /proc."""
    try:
        return int((PROC / str(pid) / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    except OSError:
        return 0


class Watch:
    """Counts from its beginning on: processors kept busy by each of the named processes and by the server's."""

    def __init__(self, postmaster: int, **named: int) -> None:
        self._postmaster = postmaster
        self._named = named
        self._began = time.monotonic()
        self._before = self._spent()
        self._idle = _idle()

    def busy(self) -> dict[str, float]:
        """Processors on average; `others` is what this machine did besides."""
        elapsed = time.monotonic() - self._began
        now = self._spent()
        shares = {name: (now[name] - self._before.get(name, 0.0)) / elapsed for name in now}
        idle = (_idle() - self._idle) / elapsed
        shares["others"] = max(0.0, (os.cpu_count() or 1) - idle - sum(shares.values()))
        return {name: round(share, 2) for name, share in (shares | {"idle": idle}).items()}

    @property
    def servers(self) -> list[int]:
        """The server's processes."""
        return [self._postmaster, *children(self._postmaster)]

    def _spent(self) -> dict[str, float]:
        spent = {name: _seconds(pid) for name, pid in self._named.items()}
        spent |= {"backends": 0.0, "helpers": _seconds(self._postmaster, with_children=True)}
        for pid in children(self._postmaster):
            spent["helpers" if _is_helper(pid) else "backends"] += _seconds(pid)
        return spent


def _seconds(pid: int, *, with_children: bool = False) -> float:
    """Processor time so far; with that of children that have ended and were waited for."""
    try:
        fields = (PROC / str(pid) / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11 : 15 if with_children else 13])) / TICKS


def children(parent: int) -> list[int]:
    found = []
    for entry in PROC.glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:  # it has gone
            continue
        if int(fields[1]) == parent:
            found.append(int(entry.name))
    return found


def _is_helper(pid: int) -> bool:
    try:
        title = (PROC / str(pid) / "cmdline").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    return any(name in title for name in HELPERS)


def stolen() -> float:
    """Seconds, of all processors, in which one had work and the host ran others; 0 where nobody counts them."""
    try:
        fields = (PROC / "stat").read_text(encoding="utf-8").split(maxsplit=9)
    except OSError:
        return 0.0
    return int(fields[8]) / TICKS


def _idle() -> float:
    try:
        fields = (PROC / "stat").read_text(encoding="utf-8").split(maxsplit=6)
    except OSError:
        return 0.0
    return (int(fields[4]) + int(fields[5])) / TICKS
