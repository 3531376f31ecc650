"""What a command may not do, in the words of `child/confine.py`."""

import os
import pwd
import tempfile
from contextlib import suppress
from typing import Any, Final, NamedTuple

from foliot.domain.commands import Limits

PRIVATE: Final = ("/tmp", "/var/tmp")  # noqa: S108 - each command sees its own folder there
"""Where everybody may write: a command finds its own folder there instead."""
_HIDDEN: Final = (
    "/run/docker.sock",
    "/run/containerd",
    "/run/crio",
    "/run/podman",
    "/run/postgresql",
    "/run/dbus",
    "/run/user",
    "/run/systemd/private",
    "/var/run/docker.sock",
    "/var/run/postgresql",
    "/var/lib/docker",
)
"""Doors to who could do more than a command may: engines of containers, databases, service managers."""


class Walls(NamedTuple):
    """Those that stand, and what is behind them."""

    parts: frozenset[str]
    hidden: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()


def rules_of(uid: int | None, gid: int | None, limits: Limits, walls: Walls, folder: str) -> dict[str, Any]:
    named = limits.by_name
    if uid is None and "user" not in walls.parts:
        # The limit counts all processes of the account, and of a worker's own there are many already.
        named["NPROC"] += _own_threads()
    return {
        "uid": uid,
        "gid": gid,
        "parts": sorted(walls.parts),
        "limits": named,
        "folder": folder,
        "private": private_places(),
        "hidden": [*_HIDDEN, *walls.hidden],
        "readable": list(walls.readable),
        "writable": list(walls.writable),
    }


def private_places() -> list[str]:
    return list(dict.fromkeys([*PRIVATE, tempfile.gettempdir()]))


def home_of_worker() -> str:
    """Where the account that a worker runs under keeps its keys and passwords."""
    with suppress(KeyError):
        return pwd.getpwuid(os.geteuid()).pw_dir
    return ""


def _own_threads() -> int:
    """Read from `status`: the files of a process that hides its secrets do not show whose it is."""
    count, own = 0, os.geteuid()
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():  # noqa: PTH112, PTH208 - thousands of names
        with suppress(OSError, KeyError, ValueError), open(f"/proc/{int(name)}/status") as file:  # noqa: PTH123 - as above
            told = dict(line.split(":", 1) for line in file.read().splitlines())
            if int(told["Uid"].split()[0]) == own:
                count += int(told["Threads"])
    return count
