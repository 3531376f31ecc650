"""The desk of a handler in a process of its own: whatever it is told or asked goes to the supervisor."""

import socket
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime
from itertools import count
from threading import Lock, Thread
from typing import Any

import msgspec

from foliot.domain.errors import FenceLost
from foliot.domain.outcome import Answer
from foliot.domain.report import Progress
from foliot.kit.clock import wall
from foliot.sdk.desk import Desk, promised
from foliot.worker.child.answer import Frames, Notice, Numbered, answer_frame, frame
from foliot.worker.executor import Assignment


class ChildDesk(Desk):
    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._frames = self._read()
        self._turn = Lock()
        self._numbers = count(1)
        self._asked: dict[int, Future[Any]] = {}
        self._reason: str | None = None
        self._is_draining = False
        self._leaves_by: datetime | None = None

    def assignment(self) -> bytes | None:
        """Wait for something to do; none if the supervisor hangs up."""
        _, body = next(self._frames, ("", None))
        return body

    def listen(self) -> None:
        """Hear what else the supervisor has to say, for as long as it speaks."""
        Thread(target=self._listen, daemon=True, name="supervisor").start()

    def stop(self) -> None:
        """The signal has come."""
        self._reason = self._reason or "its worker told it to end"

    def answer(self, answer: Answer) -> None:
        """The last word."""
        self._say(answer_frame(answer))
        self._channel.shutdown(socket.SHUT_WR)

    @property
    def is_draining(self) -> bool:
        return self._is_draining

    @property
    def leaves_by(self) -> datetime | None:
        return self._leaves_by

    def why_stopped(self, attempt: Assignment) -> str | None:  # noqa: ARG002
        return self._reason

    def extend(self, attempt: Assignment) -> datetime | None:
        self._say(frame("beat", None))
        return wall() + attempt.spec.timeout

    def note(self, attempt: Assignment, progress: Progress) -> None:  # noqa: ARG002
        self._say(frame("progress", progress))

    def save(self, attempt: Assignment, state: bytes) -> "Future[None]":  # noqa: ARG002
        return self._ask("save", state)

    def last(self, attempt: Assignment) -> "Future[bytes | None]":  # noqa: ARG002
        return self._ask("last", None)

    def _ask(self, kind: str, state: bytes | None) -> "Future[Any]":
        number, done = next(self._numbers), promised()
        self._asked[number] = done
        self._say(frame(kind, (number, state)))
        return done

    def _say(self, words: bytes) -> None:
        with self._turn, suppress(OSError):  # a supervisor that is gone has us killed
            self._channel.sendall(words)

    def _read(self) -> Iterator[tuple[str, bytes]]:
        frames = Frames()
        with suppress(OSError):
            while data := self._channel.recv(65_536):
                yield from frames.feed(data)

    def _listen(self) -> None:
        for kind, body in self._frames:
            self._hear(kind, body)
        for done in self._asked.values():
            done.set_exception(FenceLost("the worker is gone", "let the attempt end"))

    def _hear(self, kind: str, body: bytes) -> None:
        match kind:
            case "drain":
                self._leaves_by = msgspec.msgpack.decode(body, type=Notice)
                self._is_draining = True
            case "stop":
                self._reason = msgspec.msgpack.decode(body, type=str)
            case "lost":
                number, _ = msgspec.msgpack.decode(body, type=Numbered)
                why = FenceLost("the attempt counts no more", "another one may have the run: let this one end")
                self._asked.pop(number).set_exception(why)
            case "saved" | "last":
                number, state = msgspec.msgpack.decode(body, type=Numbered)
                self._asked.pop(number).set_result(state)
            case _:
                raise ValueError(f"a supervisor says {kind!r}, which means nothing here")
