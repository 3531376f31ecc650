"""What supervisor and child say to each other: an assignment one way, how the attempt ended the other."""

from typing import Final

import msgspec

from foliot.domain.outcome import Failure, Snoozed
from foliot.worker.executor import Assignment

CHANNEL: Final = 3
"""The descriptor at which a child finds its supervisor. Each side says one thing, and then no more."""

Answer = Failure | Snoozed | None

_KINDS: Final = {kind.__name__: kind for kind in (Failure, Snoozed, type(None))}


def pack_assignment(assignment: Assignment) -> bytes:
    return msgspec.msgpack.encode(assignment)


def unpack_assignment(data: bytes) -> Assignment:
    return msgspec.msgpack.decode(data, type=Assignment)


def pack_answer(answer: Answer) -> bytes:
    return msgspec.msgpack.encode((type(answer).__name__, answer))


def unpack_answer(data: bytes) -> Answer:
    """A msgspec.MsgspecError if it was cut short."""
    kind, answer = msgspec.msgpack.decode(data, type=tuple[str, msgspec.Raw])
    return msgspec.msgpack.decode(answer, type=_KINDS[kind])
