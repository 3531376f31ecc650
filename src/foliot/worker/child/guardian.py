"""Forks a guard for every child, and takes the place of a guard that is killed.

A process of its own beside each worker process: it imports neither the application nor anything but the standard
library, starts in 50 ms, and a guard, which is a fork of it, in one. It holds no state: whoever kills it costs nobody
anything, guards go on, and the supervisor starts another one.
"""

import marshal
import mmap
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import Any, NoReturn

from foliot.worker.child.guard import Guard
from foliot.worker.child.kernel import adopt_orphans, be_readable
from foliot.worker.child.kin import buried, descendants, send, wake_on_child
from foliot.worker.child.launch import DEAF_TO, LENGTH


def main() -> None:
    for number in DEAF_TO:
        signal.signal(number, signal.SIG_IGN)
    adopt_orphans()
    requests, page, secretive = map(int, sys.argv[1:])
    if secretive:
        be_readable(False)
    Guardian(socket.socket(fileno=requests), mmap.mmap(page, mmap.PAGESIZE)).serve()


class Guardian:
    """Each request is a marshalled order behind its length; the guard's socket and the child's descriptors go along."""

    def __init__(self, requests: socket.socket, page: mmap.mmap) -> None:
        self._requests = requests
        self._page = page
        self._guards: set[int] = set()
        self._said = b""
        self._handed: list[int] = []

    def serve(self) -> None:
        """Until there is no supervisor any more and the last guard is done."""
        wake = wake_on_child()
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        poll.register(self._requests, select.POLLIN)
        is_open = True
        while is_open or self._guards:
            for descriptor, _ in poll.poll():
                if descriptor == wake:
                    os.read(wake, 1_024)
                    self._mourn()
                elif not self._hear():
                    is_open = False
                    poll.unregister(self._requests)

    def _hear(self) -> bool:
        said, handed, *_ = socket.recv_fds(self._requests, 65_536, 64)
        self._said += said
        self._handed += handed
        while len(self._said) >= LENGTH.size:
            end = LENGTH.size + LENGTH.unpack_from(self._said)[0]
            if len(self._said) < end:
                break
            order = marshal.loads(self._said[LENGTH.size : end])  # noqa: S302 - from our own supervisor
            self._said = self._said[end:]
            count = 1 + len(order["places"])
            mine, self._handed = self._handed[:count], self._handed[count:]
            self._appoint(order, mine)
        return bool(said)

    def _appoint(self, order: dict[str, Any], mine: list[int]) -> None:
        pid = os.fork()
        if not pid:
            self._guard(order, mine)
        self._guards.add(pid)
        for each in mine:
            os.close(each)

    def _guard(self, order: dict[str, Any], mine: list[int]) -> NoReturn:
        try:
            for each in (self._requests.fileno(), *self._handed):
                os.close(each)  # the supervisor must be able to tell that a socket has nobody behind it
            control, *descriptors = mine
            Guard(socket.socket(fileno=control), self._page, order["lease"]).hold(order, descriptors)
        finally:
            os._exit(0)

    def _mourn(self) -> None:
        """Whom a guard left behind that was killed itself is ours now, and goes the way it would have gone."""
        if not self._bury():
            return
        while left := descendants(self._guards):
            for pid in left:
                send(pid, signal.SIGKILL)
            self._bury()
            time.sleep(0.001)

    def _bury(self) -> bool:
        """Whether one of the guards that ended was killed."""
        killed = False
        with suppress(ChildProcessError):
            for pid, status in buried():
                killed |= pid in self._guards and os.WIFSIGNALED(status)
                self._guards.discard(pid)
        return killed
