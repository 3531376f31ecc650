"""Carries requests and waits for the answers."""

import os
import time
import weakref
from collections import deque
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection, RemoteDisconnected
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from foliot.kit.clock import steady
from foliot.kit.settings import Access
from foliot.sdk.errors import unreachable
from foliot.sdk.protocol import Answer, Request, seconds_of

pause: Final = time.sleep
_MOST_IDLE: Final = 8
_IDLE: Final = 20.0
"""Seconds for which a connection is kept; an API keeps its end for 75, proxies often for 60 or 30."""

_HUNG_UP: Final = (RemoteDisconnected, ConnectionResetError, BrokenPipeError)


class _Idle(NamedTuple):
    connection: HTTPConnection
    since: float


class Transport:
    """Keeps connections open between calls. Any thread may use it, and a forked process opens connections of its own.

    It needs no closing: what is kept is closed when nobody holds the transport any more.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        parts = urlsplit(access.url)
        self._make = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._host, self._port, self._base = parts.hostname or "", parts.port, parts.path.rstrip("/")
        # Threads share it without a lock, which a fork could leave locked for ever: a deque's ends are safe.
        self._idle: deque[_Idle] = deque()
        self._process = os.getpid()
        self._finalizer = weakref.finalize(self, _close_all, self._idle)

    def send(self, request: Request, seconds: float) -> Answer:
        """One try, within so many seconds; Unreachable if no answer came."""
        headers = request.headers(self._access)
        kept = None if request.once else self._kept(seconds)
        if kept is not None:
            try:
                return self._exchange(kept, request, headers)
            except _HUNG_UP:
                pass  # while nobody used it: that says nothing about now
            except (OSError, HTTPException) as error:
                raise unreachable(self._access.url, error, was_sent=True) from None
        connection = self._make(self._host, self._port, timeout=seconds)
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            raise unreachable(self._access.url, error, was_sent=False) from None
        try:
            return self._exchange(connection, request, headers)
        except (OSError, HTTPException) as error:
            raise unreachable(self._access.url, error, was_sent=True) from None

    def close(self) -> None:
        _close_all(self._idle)

    def _exchange(self, connection: HTTPConnection, request: Request, headers: dict[str, str]) -> Answer:
        try:
            connection.request(request.method, self._base + request.path, request.body, headers)
            response = connection.getresponse()
            answer = Answer(response.status, response.read(), seconds_of(response.headers.get("Retry-After")))
        except BaseException:  # also an interrupt: half an answer may still be under way
            connection.close()
            raise
        if response.will_close or len(self._idle) >= _MOST_IDLE:
            connection.close()
        else:
            self._idle.append(_Idle(connection, steady()))
        return answer

    def _kept(self, seconds: float) -> HTTPConnection | None:
        """A connection that is still open, the one used last first."""
        if self._process != os.getpid():  # those of the parent are its own: two would talk at once
            self._process = os.getpid()
            _close_all(self._idle)
        with suppress(IndexError):
            while True:
                connection, since = self._idle.pop()
                if steady() - since < _IDLE and connection.sock is not None:
                    connection.sock.settimeout(seconds)
                    return connection
                connection.close()
        return None


def _close_all(idle: "deque[_Idle]") -> None:
    with suppress(IndexError):
        while True:
            idle.pop().connection.close()
