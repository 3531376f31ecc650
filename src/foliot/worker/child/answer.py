"""What supervisor and child say to each other, in frames: an assignment one way, reports and an answer the other.

| from the supervisor | | from the child | |
|---|---|---|---|
| `assign` | what to do | `progress` | how far it is |
| `drain` | the worker leaves, and when | `beat` | it needs more time |
| `stop` | why it is to end; a SIGTERM follows | `save`, `last` | a checkpoint to keep, or wanted, by number |
| `saved`, `last`, `lost` | what became of that number | `answer` | how the attempt ended: the last word |
"""

import struct
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from foliot.domain.outcome import Answer, Failure, Returned, Snoozed
from foliot.worker.executor import Assignment

CHANNEL: Final = 3
"""The descriptor at which a child finds its supervisor."""

Numbered = tuple[int, bytes | None]
"""A question, or the answer to it: its number, and a checkpoint."""
Notice = datetime | None

_KINDS: Final = {kind.__name__: kind for kind in (Failure, Snoozed, Returned, type(None))}
_LENGTH: Final = struct.Struct("!I")


def frame(kind: str, body: Any) -> bytes:
    data = msgspec.msgpack.encode((kind, body))
    return _LENGTH.pack(len(data)) + data


class Frames:
    """Cuts what arrives into frames."""

    def __init__(self) -> None:
        self._heard = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[str, bytes]]:
        """Every frame that is complete now: its kind and its body, still packed."""
        self._heard += data
        while len(self._heard) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._heard)[0]
            if len(self._heard) < end:
                return
            kind, body = msgspec.msgpack.decode(self._heard[_LENGTH.size : end], type=tuple[str, msgspec.Raw])
            packed = bytes(body)
            del self._heard[:end]
            yield kind, packed


def unpack_assignment(data: bytes) -> Assignment:
    return msgspec.msgpack.decode(data, type=Assignment)


def answer_frame(answer: Answer) -> bytes:
    return frame("answer", (type(answer).__name__, answer))


def unpack_answer(data: bytes) -> Answer:
    kind, answer = msgspec.msgpack.decode(data, type=tuple[str, msgspec.Raw])
    return msgspec.msgpack.decode(answer, type=_KINDS[kind])
