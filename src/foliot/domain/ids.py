"""How a 63-bit id carries its time, and how people read it."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from foliot.domain.errors import InvalidField

EPOCH: Final = datetime(2025, 1, 1, tzinfo=UTC)
BLOCK_SIZE: Final = 4096
HIGHEST: Final = 2**63 - 1

_BLOCKS: Final = 1024
_NUMBER_BITS: Final = 22  # 10 of the block, 12 of the offset; 41 bits of milliseconds last until 2094
_MILLISECOND: Final = timedelta(milliseconds=1)

# Crockford's letters rise in ASCII, so text sorts like the number; the first of 13 carries only 3 bits.
_LETTERS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS: Final = tuple(high + low for high in _LETTERS for low in _LETTERS)
_LENGTH: Final = 13
_BODY: Final = re.compile(r"[0-7][0-9a-hjkmnp-tv-z]{12}")
_BODIES: Final = re.compile(rf"(?:{_BODY.pattern})*+")
_TO_BASE_32: Final = str.maketrans(_LETTERS, "0123456789abcdefghijklmnopqrstuv")


class Block(msgspec.Struct, frozen=True):
    """One value of the database's block sequence, with the database's clock when it was drawn."""

    number: int
    at: datetime


def mint(block: Block, count: int) -> range:
    """Make the first `count` ids of `block`, rising.

    A block is spent by one mint: a second would repeat its ids. Ids are unique as long as fewer than 1,024 blocks
    are drawn within one millisecond.
    """
    if not 0 <= count <= BLOCK_SIZE:
        raise ValueError(f"a block holds {BLOCK_SIZE} ids, {count} were asked for")
    milliseconds = (block.at - EPOCH) // _MILLISECOND
    if not 0 <= milliseconds < 2**41:
        raise ValueError(f"ids begin at {EPOCH:%Y-%m-%d} and last 69 years; the database's clock says {block.at}")
    first = milliseconds << _NUMBER_BITS | block.number % _BLOCKS * BLOCK_SIZE
    return range(first, first + count)


def instant_of(number: int) -> datetime:
    """When the id was minted, to the millisecond."""
    return EPOCH + (number >> _NUMBER_BITS) * _MILLISECOND


def first_id_at(instant: datetime) -> int:
    """Find the lowest id that `instant` can have; outside the years that ids span, the nearer end of the ids."""
    return min(max(0, (instant - EPOCH) // _MILLISECOND << _NUMBER_BITS), HIGHEST)


def encode(prefix: str, number: int) -> str:
    """`<prefix>_` and 13 letters; sorts like the number."""
    if not 0 <= number <= HIGHEST:
        raise ValueError(f"an id has 63 bits, {number} has not")
    high = f"{_LETTERS[number >> 60]}{_PAIRS[number >> 50 & 1023]}{_PAIRS[number >> 40 & 1023]}"
    middle = f"{_PAIRS[number >> 30 & 1023]}{_PAIRS[number >> 20 & 1023]}"
    return f"{prefix}_{high}{middle}{_PAIRS[number >> 10 & 1023]}{_PAIRS[number & 1023]}"


def decode(prefix: str, text: str) -> int:
    """Read the one number that `encode` writes as `text`; anything else is InvalidField."""
    head, body = text[: len(prefix) + 1], text[len(prefix) + 1 :]
    if head != f"{prefix}_" or _BODY.fullmatch(body) is None:
        raise InvalidField("id", f"not an id of this kind: {text[:40]!r}", f"ids look like {encode(prefix, 0)}")
    return int(body.translate(_TO_BASE_32), 32)


def decode_all(prefix: str, texts: Sequence[str]) -> list[int]:
    """What `decode` reads from each of these, in a third of the time."""
    head = f"{prefix}_"
    first, length = len(head), len(head) + _LENGTH
    bodies = "".join([text[first:] for text in texts if len(text) == length and text.startswith(head)])
    if len(bodies) < _LENGTH * len(texts) or _BODIES.fullmatch(bodies) is None:
        return [decode(prefix, text) for text in texts]  # one of them is not an id: which?
    digits = bodies.translate(_TO_BASE_32)
    return [int(digits[place : place + _LENGTH], 32) for place in range(0, len(digits), _LENGTH)]
