"""From a guard to its child: fork, a session of its own, exec. Standard library only: the guardian imports it."""

import fcntl
import os
import signal
import struct
from contextlib import suppress
from typing import Any, Final, NamedTuple

from foliot.worker.child.confine import Refusal, confine, part_ways
from foliot.worker.child.init import STATUS, reign
from foliot.worker.child.kernel import be_readable, die_with_parent
from foliot.worker.child.kin import die_with

LENGTH: Final = struct.Struct("!I")
DEAF_TO: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""What a terminal or an impatient operator sends to everybody. A guardian does not hear it: the supervisor decides."""

_RESTORED: Final = (*DEAF_TO, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD)
_EXPENDABLE: Final = "500"
"""When memory runs out the child goes before its supervisor."""
_LAST_WORDS: Final = 256


class Launched(NamedTuple):
    """A child; `trouble` is an errno and the part that it is about, if it could not be executed."""

    pid: int
    trouble: str
    verdict: int

    def status(self, own: int) -> int:
        """How what was ordered ended, of a child that ended with the status `own`: they are not always the same."""
        told = b""
        with suppress(BlockingIOError):
            told = os.read(self.verdict, STATUS.size)
        return int(STATUS.unpack(told)[0]) if len(told) == STATUS.size else own


def launch(order: dict[str, Any], descriptors: list[int]) -> Launched:
    """Start what `order` says, with `descriptors` at its places; return when it runs, or cannot."""
    rules = order["rules"]
    if rules is not None:
        try:
            part_ways(rules)
        except Refusal as refusal:
            return Launched(0, f"{refusal.errno} {refusal.part}", -1)
    (trouble, tell), (verdict, judge) = os.pipe(), os.pipe()
    os.set_blocking(verdict, False)
    parent = os.getpid()
    pid = os.fork()
    if not pid:
        try:
            _become(order, descriptors, tell, judge, parent)
        except Refusal as refusal:
            os.write(tell, f"{refusal.errno} {refusal.part}".encode())
        finally:
            os._exit(127)
    os.close(tell)
    os.close(judge)
    told = os.read(trouble, _LAST_WORDS)
    os.close(trouble)
    return Launched(pid, told.decode(), verdict)


def _become(order: dict[str, Any], descriptors: list[int], tell: int, judge: int, parent: int) -> None:
    os.setsid()
    rules = order["rules"]
    if rules is None:
        be_readable(True)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 - as in kin
        file.write(_EXPENDABLE)
    if rules is not None:
        confine(rules)
    if rules is None or "pid" not in rules["parts"]:
        if not die_with(parent):
            return
    else:
        die_with_parent(signal.SIGKILL)  # who is dead already is followed by the guardian, which takes its children
        if inside := os.fork():
            reign(inside, judge)
    for number in _RESTORED:
        signal.signal(number, signal.SIG_DFL)
    moved = _place(order["places"], descriptors, tell)
    try:
        if order["folder"]:
            os.chdir(order["folder"])
        os.execvpe(order["program"], order["argv"], order["environment"])  # noqa: S606 - no shell
    except OSError as error:
        os.write(moved, f"{error.errno or 1} ".encode())


def _place(places: list[int], descriptors: list[int], tell: int) -> int:
    """The descriptors where the child looks for them, nothing else but `tell`, until it executes; where that is now."""
    above = max(places) + 1
    moved = [fcntl.fcntl(each, fcntl.F_DUPFD, above + 1) for each in descriptors]  # out of each other's way
    os.dup2(fcntl.fcntl(tell, fcntl.F_DUPFD, above + 1), above, inheritable=False)
    for place, each in zip(places, moved, strict=True):
        os.dup2(each, place)
    os.closerange(above + 1, os.sysconf("SC_OPEN_MAX"))
    return above
