"""What a command may not do: namespaces, mounts, limits, account. Standard library only: the guardian imports it.

`rules` say all of it. Whatever of them cannot be had is a Refusal that names the part, and the command does not start:
what is to be done without was found out before (worker/commands/isolation.py), and said.
"""

import fcntl
import os
import resource
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from foliot.worker.child import kernel

PARTS: Final = ("user", "pid", "mount", "proc", "read-only", "net", "ipc", "uts")
"""Walls around a command, each of which a kernel may refuse by itself."""

_IN_THE_CHILD: Final = {
    "mount": kernel.NEW_MOUNT,
    "net": kernel.NEW_NET,
    "ipc": kernel.NEW_IPC,
    "uts": kernel.NEW_UTS,
}
_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - it becomes one of the command's own
_NOTHING: Final = "/dev/null"
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1
_INTERFACE: Final = struct.Struct("16sH14x")


class Refusal(Exception):  # noqa: N818 - reads aloud
    """The kernel does not let us have `part`."""

    def __init__(self, part: str, error: OSError) -> None:
        super().__init__(part, error.errno or 1)
        self.part = part
        self.errno = error.errno or 1


@contextmanager
def _part(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Refusal(name, error) from error


def part_ways(rules: dict[str, Any]) -> None:
    """What the guard does before the fork: its one child is the first of a pid namespace of its own."""
    if "user" in rules["parts"]:
        with _part("user"):
            _enter_user_namespace(os.getuid(), os.getgid())
    kernel.be_readable(False)
    if "pid" in rules["parts"]:
        with _part("pid"):
            kernel.unshare(kernel.NEW_PID)


def _enter_user_namespace(uid: int, gid: int) -> None:
    """Gives an ordinary user the other namespaces, and nothing outside of them: in it we are who we were."""
    kernel.be_readable(True)  # the files of an unreadable process belong to root
    kernel.unshare(kernel.NEW_USER)
    for name, content in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123 - as in kin
            file.write(content)


def confine(rules: dict[str, Any]) -> None:
    """What the child does to itself before it becomes the command. There is no way back."""
    parts = rules["parts"]
    for name in _IN_THE_CHILD.keys() & set(parts):
        with _part(name):
            kernel.unshare(_IN_THE_CHILD[name])
    if "net" in parts:
        _raise_loopback()
    if "mount" in parts:
        with _part("mount"):
            places = _furnish(rules)
        if "proc" in parts:
            with _part("proc"):
                kernel.mount("proc", "/proc", "proc", kernel.NOSUID | kernel.NODEV | kernel.NOEXEC)
        if "read-only" in parts:
            with _part("read-only"):
                kernel.set_writable("/", writable=False, recursive=True)
                for place in places:
                    kernel.set_writable(place, writable=True, recursive=place in rules["writable"])
    with _part("limits"):
        _limit(rules["limits"])
    with _part("account"):
        os.umask(0o022)
        if rules["uid"] is not None:
            os.setgroups([])
            os.setresgid(rules["gid"], rules["gid"], rules["gid"])
            os.setresuid(rules["uid"], rules["uid"], rules["uid"])
        kernel.forget_keys()
        kernel.renounce_privileges()


def _furnish(rules: dict[str, Any]) -> list[str]:
    """The view of the file system that the command gets; which places of it are its own to write to."""
    kernel.mount("none", "/", None, kernel.RECURSIVE | kernel.PRIVATE)
    # Held open: what lies where something else is put over it can still be shown elsewhere.
    folder = os.open(rules["folder"], os.O_PATH)
    shown = [(path, os.open(path, os.O_PATH)) for path in (*rules["readable"], *rules["writable"])]
    for path in sorted(_existing(rules["hidden"]), key=len, reverse=True):  # what is inside first, while it is there
        if os.path.isdir(path):  # noqa: PTH112 - as in kin
            kernel.mount("none", path, "tmpfs", kernel.NOSUID | kernel.NODEV, "mode=0755,size=64k")
        else:
            kernel.mount(_NOTHING, path, None, kernel.BIND)
    private = _existing(rules["private"])
    for path in private:
        kernel.mount(f"/proc/self/fd/{folder}", path, None, kernel.BIND)
    for path in _existing([_SHARED_MEMORY]):
        kernel.mount("none", path, "tmpfs", kernel.NOSUID | kernel.NODEV, "mode=1777,size=64m")
        private.append(path)
    for path, held in shown:
        _show(path, held)
    return [*private, *rules["writable"]]


def _existing(paths: Sequence[str]) -> list[str]:
    """Without what is not there, and each once, by whatever name it goes; the whole world cannot be put under a lid."""
    real = dict.fromkeys(os.path.realpath(path) for path in paths if os.path.exists(path))  # noqa: PTH110 - as in kin
    return [path for path in real if path != "/"]


def _show(path: str, held: int) -> None:
    source = f"/proc/self/fd/{held}"
    if not os.path.exists(path):  # noqa: PTH110 - as in kin
        folder = path if os.path.isdir(source) else os.path.dirname(path)  # noqa: PTH112, PTH120 - as in kin
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - as in kin
        if folder != path:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    # What is under a lid is shown without what is mounted in it, or the lid would come along.
    is_hidden = not os.path.sameopenfile(held, found := os.open(path, os.O_PATH))
    os.close(found)
    kernel.mount(source, path, None, kernel.BIND | (0 if is_hidden else kernel.RECURSIVE))


def _raise_loopback() -> None:
    with _part("net"), socket.socket() as any_socket:
        _, flags = _INTERFACE.unpack(fcntl.ioctl(any_socket, _GET_FLAGS, _INTERFACE.pack(b"lo", 0)))
        fcntl.ioctl(any_socket, _SET_FLAGS, _INTERFACE.pack(b"lo", flags | _UP))


def _limit(limits: dict[str, int]) -> None:
    for name, most in limits.items():
        number = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(number)[1]
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(number, (allowed, allowed))
