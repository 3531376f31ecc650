"""Holds one child to its lease, and leaves nobody behind. Standard library only: the guardian imports it."""

import mmap
import os
import select
import signal
import socket
import time
from contextlib import suppress
from typing import Any, Final

from foliot.worker.child.kernel import adopt_orphans
from foliot.worker.child.kin import buried, descendants, group_of, send, wake_on_child
from foliot.worker.child.launch import launch

# As kit.clock has it: the one that goes on while we are stopped, and while the machine sleeps.
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_LOOK: Final = 1_000
"""Milliseconds between two looks at the clock, at most: a timer stands still while the machine sleeps."""


_LAST_DEED: Final = 10.0
"""Seconds that what is to be done last may take."""


class Guard:
    """One child and all its descendants.

    Says `started PID` or `failed ERRNO PART`, then perhaps `lapsed`, and at the end, when nobody is left,
    `ended STATUS`: a line each. Is told `stop SECONDS`.
    """

    def __init__(self, control: socket.socket, page: mmap.mmap, lease: int) -> None:
        self._control = control
        self._leases = memoryview(page).cast("d")
        self._lease = lease
        self._child = 0
        self._status: int | None = None
        self._kill_at = float("inf")
        self._asked = b""

    def hold(self, order: dict[str, Any], descriptors: list[int]) -> None:
        """Start what was ordered; return when it and everybody it left behind are gone."""
        adopt_orphans()
        wake = wake_on_child()
        launched = launch(order, descriptors)
        self._child = launched.pid
        for each in descriptors:
            os.close(each)
        if launched.trouble:
            self._say(f"failed {launched.trouble}")
            return
        self._say(f"started {self._child}")
        self._watch(wake)
        self._end_all()
        if order["last"] and self._status != 0:
            self._do_last(order["last"], order["environment"])
        self._say(f"ended {launched.status(self._status or 0)}")

    def _watch(self, wake: int) -> None:
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        while self._lives():
            now = time.clock_gettime(_CLOCK)
            if now >= self._leases[self._lease]:
                self._say("lapsed")
                return
            if now >= self._kill_at:
                return
            left = min(self._leases[self._lease], self._kill_at) - now
            for descriptor, _ in poll.poll(min(left * 1_000 + 1, _LOOK)):
                if descriptor == wake:
                    os.read(wake, 1_024)
                else:
                    self._listen()

    def _lives(self) -> bool:
        with suppress(ChildProcessError):
            self._bury()
        return self._status is None

    def _bury(self) -> None:
        for pid, status in buried():
            if pid == self._child:
                self._status = status

    def _listen(self) -> None:
        """`stop SECONDS`: SIGTERM for everybody now, the end in so many. Without a supervisor: the end now."""
        said = self._control.recv(1_024)
        *lines, self._asked = (self._asked + said).split(b"\n")
        for line in lines:
            self._kill_at = min(self._kill_at, time.clock_gettime(_CLOCK) + float(line.removeprefix(b"stop ")))
            # The group at once, which misses nobody who is just being born in it; then whoever has left it.
            for each in (-self._child, *(pid for pid in descendants() if group_of(pid) != self._child)):
                send(each, signal.SIGTERM)
                send(each, signal.SIGCONT)  # who is stopped hears nothing else
        if not said:
            self._kill_at = 0.0

    def _end_all(self) -> None:
        send(-self._child, signal.SIGKILL)
        # While one of them lives, one of them is our child: when a parent dies, its children become ours.
        with suppress(ChildProcessError):
            while True:
                self._bury()
                for pid in descendants():
                    send(pid, signal.SIGKILL)
                time.sleep(0.001)

    def _do_last(self, argv: list[str], environment: dict[str, str]) -> None:
        """What the child did somewhere else, it cannot undo any more: we do it, though nobody supervises us.

        Whether or not it was killed: a program that ended with an error may have lost hold of what it began.
        """
        pid = os.fork()
        if not pid:
            try:
                os.closerange(0, os.sysconf("SC_OPEN_MAX"))
                for _ in range(3):
                    os.open(os.devnull, os.O_RDWR)
                os.execvpe(argv[0], argv, environment)  # noqa: S606 - no shell
            finally:
                os._exit(127)
        until = time.clock_gettime(_CLOCK) + _LAST_DEED
        while not os.waitpid(pid, os.WNOHANG)[0]:
            if time.clock_gettime(_CLOCK) >= until:
                send(pid, signal.SIGKILL)
            time.sleep(0.005)

    def _say(self, line: str) -> None:
        with suppress(OSError):  # nobody listens any more
            self._control.sendall(f"{line}\n".encode())
