"""Who descends from this process, and who of them has ended. Standard library only: the guardian imports it."""

import os
import signal
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress

from foliot.worker.child.kernel import die_with_parent


def die_with(parent: int) -> bool:
    """Have the kernel kill us when our parent dies (on Linux); false if it is dead already."""
    die_with_parent(signal.SIGKILL)
    return os.getppid() == parent


def wake_on_child() -> int:
    """Have the end of any child make the returned descriptor readable."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    return reading


def buried() -> Iterator[tuple[int, int]]:
    """Every child that has ended, with its wait status; ChildProcessError once there are no children at all."""
    while (found := os.waitpid(-1, os.WNOHANG))[0]:
        yield found


def descendants(spared: Collection[int] = ()) -> list[int]:
    """Everybody alive that descends from this process, but for those `spared` and theirs. Nobody without a /proc."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if sys.platform == "linux" else ():  # noqa: PTH208 - pathlib takes 15 ms to import
        with suppress(OSError, ValueError):
            with open(f"/proc/{int(name)}/stat", "rb") as file:  # noqa: PTH123 - as above
                state, parent = file.read().rpartition(b")")[2].split()[:2]
            if state not in {b"Z", b"X"}:
                children.setdefault(int(parent), []).append(int(name))
    found: list[int] = []
    new = [os.getpid()]
    while new:
        new = [pid for parent in new for pid in children.get(parent, ()) if pid not in spared]
        found += new
    return found


def group_of(pid: int) -> int:
    """Its process group; its own number if it is gone."""
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return pid


def send(pid: int, number: int) -> None:
    """Send a signal to a process, or to the group -pid; who is gone already needs none."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
