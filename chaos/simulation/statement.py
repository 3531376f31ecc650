"""A statement from its sending to its answer, in no time at all: the event loop stands still meanwhile.

Waiting for the answer in a loop costs several times what the answer does. So the driver's coroutine is taken by the
hand: whenever it wants to wait, we do, for its socket and nothing else.
"""

import os
import select
import signal
from contextlib import suppress
from typing import Any, Final

import asyncpg

STUCK: Final = 0.004
"""Real seconds without an answer after which somebody should look whether the statement waits for a lock."""


def keep_together(other: int) -> None:
    """Let another process run where this one does: of the two only one ever has something to do.

    To wake somebody on another processor is two thirds of the price of a small statement.
    """
    if hasattr(os, "sched_setaffinity"):
        with suppress(OSError):  # of another account: then it is slower
            os.sched_setaffinity(other, os.sched_getaffinity(0))


class Physical:
    """One real connection, lent to one simulated connection after the other."""

    def __init__(self, connection: Any, *, hot: bool) -> None:
        self.connection = connection
        self.hot = hot
        self.pid: int = connection.get_server_pid()
        self._transport = connection._transport  # noqa: SLF001 - the driver shows it to nobody
        self._wire = select.poll()
        self._socket = self._transport.get_extra_info("socket").fileno()
        self._is_here = isinstance(connection._addr, str)  # noqa: SLF001 - by a path, so it is on this machine
        if self._is_here:
            keep_together(self.pid)

    def halt(self) -> None:
        """Have the server's process stand still, whatever it is given, until `go_on`."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if self._is_here:
            with suppress(PermissionError):  # of another account: then a seed may go another way now and then
                os.kill(self.pid, number)

    def is_in_transaction(self) -> bool:
        return self.connection.is_in_transaction()  # type: ignore[no-any-return]

    def fetch(self, query: str, *arguments: Any) -> list[Any]:
        """The answer to what waits for nobody."""
        statement = Statement(self, query, arguments)
        while not statement.is_answered():
            pass
        return statement.result()

    def hear(self, seconds: float) -> bool:
        """Take in what the server says; false if it is silent for that long, in real time."""
        sending = bool(self._transport.get_write_buffer_size())
        self._wire.register(self._socket, select.POLLIN | (select.POLLOUT if sending else 0))
        heard = self._wire.poll(seconds * 1_000)
        for _, event in heard:
            if event & select.POLLOUT:
                self._transport._write_ready()  # noqa: SLF001
            if event & ~select.POLLOUT:
                self._transport._read_ready()  # noqa: SLF001
        if self._transport.is_closing():
            raise ConnectionError("the server has gone: there is nothing to simulate on")
        return bool(heard)


class Statement:
    def __init__(self, physical: Physical, query: str, arguments: tuple[Any, ...]) -> None:
        self.physical = physical
        self.is_done = False
        self._steps = physical.connection.fetch(query, *arguments)
        self._awaited: Any = None
        self._rows: list[Any] = []
        self.error: asyncpg.PostgresError | None = None
        self._go_on()

    def _go_on(self) -> None:
        try:
            while self._awaited is None or self._awaited.done():
                self._awaited = self._steps.send(None)
        except StopIteration as end:
            self.is_done, self._rows = True, end.value
        except asyncpg.PostgresError as error:
            self.is_done, self.error = True, error

    def is_answered(self) -> bool:
        """Wait for the answer; false if there is none for so long that it may wait for somebody's lock."""
        while not self.is_done:
            if not self.physical.hear(STUCK):
                return False
            self._go_on()
        return True

    def result(self) -> list[Any]:
        if self.error is not None:
            raise self.error
        return self._rows
