"""What is kept of what a handler returns: small results, as JSON."""

from typing import Any, Final

import msgspec

LARGEST_RESULT: Final = 4_096
"""Bytes of JSON. More belongs where the handler keeps its data; what is larger is not kept."""


def small_json(value: Any) -> bytes | None:
    """The value as JSON; none if there is none, if it is too large, or nothing that JSON knows."""
    try:
        if value is None or _left(value, LARGEST_RESULT) < 0:
            return None
        encoded = msgspec.json.encode(value)
    except Exception:  # noqa: BLE001 - a handler may return whatever it likes: that it cannot be kept is no failure
        return None
    return encoded if len(encoded) <= LARGEST_RESULT else None


def is_small_json(text: bytes) -> bool:
    """Whether it can be kept as it is."""
    if not 0 < len(text) <= LARGEST_RESULT:
        return False
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _left(value: Any, room: int) -> int:
    """What is left of the room, or less than nothing: a million rows are not to be encoded to be thrown away."""
    match value:
        case str() | bytes() | bytearray():
            return room - len(value)
        case dict():
            parts: Any = (part for pair in value.items() for part in pair)
        case list() | tuple() | set() | frozenset():
            parts = value
        case _:
            return room - 1
    for part in parts:
        room = _left(part, room - 1)
        if room < 0:
            break
    return room
