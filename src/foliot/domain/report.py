"""What a handler tells of its work while it goes on: how far it is, and what the next attempt is to know."""

import math
from typing import Any, Final

import msgspec

from foliot.domain.errors import InvalidField

LARGEST_CHECKPOINT: Final = 256 * 1024
"""Bytes of JSON."""
LONGEST_MESSAGE: Final = 500
"""Characters of a message that are kept."""


class Progress(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """`fraction` of the work from 0 to 1; or `done` out of `total`, of which it is made; or a message alone."""

    fraction: float | None = None
    done: float | None = None
    total: float | None = None
    message: str | None = None


def progress_of(
    fraction: float | None = None, message: str | None = None, done: float | None = None, total: float | None = None
) -> Progress:
    """What a handler said, made fit to be kept. A little beyond the end is the end: nobody fails for a rounding."""
    fraction, done, total = _number("fraction", fraction), _number("done", done), _number("total", total)
    if fraction is not None and (done is not None or total is not None):
        raise InvalidField("fraction", "stands beside done and total", "say the one or the other")
    if done is not None and total:
        fraction = done / total
    return Progress(
        None if fraction is None else min(max(fraction, 0.0), 1.0),
        done,
        total,
        None if message is None else storable(str(message))[:LONGEST_MESSAGE],
    )


def _number(field: str, value: float | None) -> float | None:
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidField(field, "is not a number", "a fraction from 0 to 1, or done= and total=")
    return number


def pack_checkpoint(state: Any) -> bytes:
    """The state as JSON; an error that says what is wrong with it, or that it is too large."""
    try:
        packed = msgspec.json.encode(state)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidField("state", f"cannot be written as JSON: {error}", "numbers, texts, lists, mappings") from None
    if len(packed) > LARGEST_CHECKPOINT:
        hint = "keep the data where it belongs, and where to find it here"
        raise InvalidField("state", f"is longer than {LARGEST_CHECKPOINT:,} bytes", hint)
    return packed


def storable(text: str) -> str:
    """The text as the database can keep it: PostgreSQL has no NUL in text, UTF-8 no half surrogate pairs."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
