"""One child as its supervisor sees it: when it runs, how it is stopped, how it ended."""

import asyncio
import os
import signal
from datetime import timedelta
from typing import cast

from foliot.domain.errors import FoliotError
from foliot.worker.child.fate import Fate
from foliot.worker.child.kin import send


class CannotStart(FoliotError):  # noqa: N818 - reads aloud
    """A child could not be started: `errno` says why, if the system did, and `part` what of its rules is to blame."""

    def __init__(self, message: str, errno: int = 0, part: str = "") -> None:
        super().__init__(message)
        self.errno = errno
        self.part = part


class Forsaken(CannotStart):
    """Whoever was to start it was killed. Nobody can say whether it had begun."""


class Child(asyncio.Protocol):
    """Speaks with the guard of the child; `siblings` holds it for as long as it lives."""

    def __init__(self, siblings: "set[Child]") -> None:
        self._siblings = siblings
        self._transport: asyncio.Transport | None = None
        self._said = b""
        self._lapsed = False
        self._fate: Fate | None = None
        loop = asyncio.get_running_loop()
        self.pid = 0
        self.started: asyncio.Future[None] = loop.create_future()
        self.over: asyncio.Future[Fate] = loop.create_future()
        """Wait for it, but through `ended`, or the first who gives up cancels it for all."""

    @property
    def is_over(self) -> bool:
        return self.over.done()

    async def ended(self) -> Fate:
        """Return when it, and everybody it left behind, are gone."""
        return await asyncio.shield(self.over)

    def stop(self, grace: timedelta) -> None:
        """SIGTERM for it and all its descendants now, SIGKILL after the grace."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(f"stop {grace.total_seconds():.3f}\n".encode())

    def abandon(self) -> None:
        """Hang up: the guard kills it at once, and nobody here waits for that."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._siblings.add(self)

    def data_received(self, data: bytes) -> None:
        *lines, self._said = (self._said + data).split(b"\n")
        for line in lines:
            word, number, *part = [*line.decode().split(" ", 2), ""]
            match word:
                case "started":
                    self.pid = int(number)
                    _resolve(self.started)
                case "failed":
                    self._fail(_refused(int(number), part[0]))
                case "lapsed":
                    self._lapsed = True
                case "ended":
                    self._fate = Fate(int(number), self._lapsed)
                case _:
                    raise ValueError(f"a guard says {line!r}, which means nothing here")

    def connection_lost(self, _: Exception | None) -> None:
        self._siblings.discard(self)
        if self._fate is None and self.pid:
            send(-self.pid, signal.SIGKILL)  # the guard was killed, or hung up on: what is left of the group must go
        self._fail(Forsaken("its guard ended before it began"))
        if not self.over.done():
            self.over.set_result(self._fate or Fate(None, self._lapsed))

    def _fail(self, error: CannotStart) -> None:
        if not self.started.done():
            self.started.set_exception(error)
            self.started.exception()  # whoever waits hears it; if nobody does, that is no news


def _refused(errno: int, part: str) -> CannotStart:
    what = f"{part}: " if part else ""
    return CannotStart(f"it could not be started: {what}{os.strerror(errno)}", errno, part)


def _resolve(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
