"""A process and all that it has started: who they are, and how to have them stand still together."""

import os
import signal
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

_CAPTIVE: Final = b"foliot.worker.child.inside"
_STOPPED: Final = "T"


def captives(boot: str, mark: str) -> set[int]:
    """The processes in which a worker runs, or will run, one attempt each; `mark` tells ours from those of others."""
    marks, found = {f"CHAOS_BOOT={boot}".encode(), mark.encode()}, set()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            is_captive = _CAPTIVE in (entry / "cmdline").read_bytes()
            if is_captive and marks <= {*(entry / "environ").read_bytes().split(b"\0")}:
                found.add(int(entry.name))
    return found


def family(pid: int) -> list[int]:
    """The process and its descendants, parents first."""
    if pid <= 1:
        raise ValueError(f"{pid} is nobody's process: all others descend from it")
    children = defaultdict(list)
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            children[int(_stat(entry)[1])].append(int(entry.name))
    found = [pid]
    for each in found:
        found += children[each]
    return found


def boot_of(pid: int) -> str:
    """Boot id of the process under test that it descends from; empty if there is none, or it is gone by now."""
    with suppress(OSError):
        while pid > 1:
            entry = Path("/proc") / str(pid)
            if (boot := _told(entry, "CHAOS_BOOT")) is not None:
                return boot
            pid = int(_stat(entry)[1])
    return ""


def freeze(pid: int) -> list[int]:
    """Stop a whole family; who stands still now. Whoever was born meanwhile is found by another look."""
    frozen: list[int] = []
    while born := [each for each in family(pid) if each not in frozen]:
        for each in born:
            _send(each, signal.SIGSTOP)
        frozen += born
    return frozen


def thaw(frozen: Sequence[int]) -> None:
    """Let them go on, children first. Whoever is gone, and whoever has its number by now, is left alone."""
    for pid in reversed(frozen):
        with suppress(OSError):
            if _stat(Path("/proc") / str(pid))[0] == _STOPPED:
                _send(pid, signal.SIGCONT)


def _told(entry: Path, name: str) -> str | None:
    """What it was told by its environment, as far as that may be read."""
    with suppress(PermissionError):
        told = (each.partition(b"=") for each in (entry / "environ").read_bytes().split(b"\0"))
        return next((value.decode() for key, _, value in told if key == name.encode()), None)
    return None


def _stat(entry: Path) -> list[str]:
    """State, parent and so on: what follows the name, in which anything may stand."""
    return (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
