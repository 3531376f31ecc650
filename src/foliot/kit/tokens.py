"""Keys as their holders write them: `fol_<id>_<secret>`, with 256 random bits of which only a digest is kept."""

import hashlib
import re
import secrets
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(r"fol_([a-z0-9]{12})_([A-Za-z0-9_-]{43})")
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789"


class Token(NamedTuple):
    id: str
    text: str
    digest: bytes


def new_token() -> Token:
    name = "".join(secrets.choice(_LETTERS) for _ in range(12))
    return _token(name, f"fol_{name}_{secrets.token_urlsafe(32)}")


def read_token(text: str) -> Token | None:
    """None if it cannot be one."""
    match = _TOKEN.fullmatch(text)
    return None if match is None else _token(match[1], text)


def _token(name: str, text: str) -> Token:
    # 256 random bits cannot be searched, so a plain digest will do; it needs no salt and no slowness.
    return Token(name, text, hashlib.sha256(text.encode()).digest())
