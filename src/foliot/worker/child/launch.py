"""From a guard to its child: fork, a session of its own, exec. Standard library only: the guardian imports it."""

import fcntl
import os
import signal
import struct
from contextlib import suppress
from typing import Any, Final

from foliot.worker.child.kin import die_with

LENGTH: Final = struct.Struct("!I")
DEAF_TO: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""What a terminal or an impatient operator sends to everybody. A guardian does not hear it: the supervisor decides."""

_RESTORED: Final = (*DEAF_TO, signal.SIGPIPE, signal.SIGCHLD)
_EXPENDABLE: Final = "500"
"""When memory runs out the child goes before its supervisor."""


def launch(order: dict[str, Any], descriptors: list[int]) -> tuple[int, int]:
    """Start what `order` says, with `descriptors` at its places; the pid, and the errno if it could not be executed."""
    reading, writing = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if not pid:
        try:
            _become(order, descriptors, writing, parent)
        finally:
            os._exit(127)
    os.close(writing)
    told = os.read(reading, LENGTH.size)
    os.close(reading)
    return pid, LENGTH.unpack(told)[0] if told else 0


def _become(order: dict[str, Any], descriptors: list[int], trouble: int, parent: int) -> None:
    os.setsid()
    if not die_with(parent):
        return
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 - as in kin
        file.write(_EXPENDABLE)
    for number in _RESTORED:
        signal.signal(number, signal.SIG_DFL)
    above = max(order["places"]) + 1
    moved = [fcntl.fcntl(each, fcntl.F_DUPFD, above + 1) for each in descriptors]  # out of each other's way
    os.dup2(fcntl.fcntl(trouble, fcntl.F_DUPFD, above + 1), above, inheritable=False)
    for place, each in zip(order["places"], moved, strict=True):
        os.dup2(each, place)
    os.closerange(above + 1, os.sysconf("SC_OPEN_MAX"))
    try:
        if order["folder"]:
            os.chdir(order["folder"])
        os.execvpe(order["argv"][0], order["argv"], {**os.environ, **order["environment"]})  # noqa: S606 - no shell
    except OSError as error:
        os.write(above, LENGTH.pack(error.errno or 1))
