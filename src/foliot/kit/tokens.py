"""Keys as their holders write them: `fol_<id>_<secret>`, with 256 random bits of which only a digest is kept.

The last six characters are a checksum of the others, so that whoever searches texts for keys that leaked can tell one
from what only looks like it. Keys that were made before there was one have none.
"""

import hashlib
import re
import secrets
import zlib
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(r"fol_([a-z0-9]{12})_[A-Za-z0-9_-]{43}([0-9A-Za-z]{6})?")
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789"
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_CHECK: Final = 6
"""Digits to the base 62: enough for 32 bits."""


class Token(NamedTuple):
    id: str
    text: str
    digest: bytes


def new_token() -> Token:
    name = "".join(secrets.choice(_LETTERS) for _ in range(12))
    return _token(name, with_check(f"fol_{name}_{secrets.token_urlsafe(32)}"))


def read_token(text: str) -> Token | None:
    """None if it cannot be one."""
    match = _TOKEN.fullmatch(text)
    return None if match is None else _token(match[1], text)


def with_check(text: str) -> str:
    number, digits = zlib.crc32(text.encode()), []
    for _ in range(_CHECK):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return text + "".join(reversed(digits))


def is_whole(text: str) -> bool:
    """Whether it is a key as it was once given out, as far as that can be told without asking anybody."""
    match = _TOKEN.fullmatch(text)
    return match is not None and (match[2] is None or with_check(text[:-_CHECK]) == text)


def _token(name: str, text: str) -> Token:
    # 256 random bits cannot be searched, so a plain digest will do; it needs no salt and no slowness.
    return Token(name, text, hashlib.sha256(text.encode()).digest())
