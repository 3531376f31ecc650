"""Sealing bytes so that they open only where they were sealed: AES-256-GCM under a key of the place's own.

A sealed value is `00 01`, the number of the data key (4 bytes), a mark (1 byte), a nonce (12), the text and its tag.
All but the text, and the place that it is bound to, is authenticated; and the key that encrypts is made from the data
key and the place, so that nonces, which are random, never come near the number at which two might be the same.
"""

import base64
import binascii
import hmac
import os
import re
import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAGIC: Final = b"\x00\x01"
"""No JSON begins so."""
KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
_HEAD: Final = struct.Struct(">2sIB")
OVERHEAD: Final = _HEAD.size + NONCE_BYTES + 16
"""By how many bytes a sealed value is longer."""
WORD: Final = "sealed:"
_IN_TEXT: Final = re.compile(rf"{WORD}([A-Za-z0-9_-]{{47,}})")


class CannotOpen(Exception):  # noqa: N818 - reads aloud
    """It was sealed for another place, with another key, or has been changed since."""


class Head(NamedTuple):
    """What a sealed value says of itself."""

    version: int
    mark: int


def new_key() -> bytes:
    return os.urandom(KEY_BYTES)


def is_sealed(value: bytes) -> bool:
    return value[:2] == MAGIC


def head_of(sealed: bytes) -> Head:
    if not is_sealed(sealed) or len(sealed) < OVERHEAD:
        raise CannotOpen("this is not sealed")
    _, version, mark = _HEAD.unpack_from(sealed)
    return Head(version, mark)


def prefix(version: int) -> bytes:
    """How everything begins that was sealed with the data key of this number."""
    return MAGIC + version.to_bytes(4, "big")


def seal(key: bytes, head: Head, place: bytes, plain: bytes, nonce: bytes | None = None) -> bytes:
    """`nonce` is for tests alone."""
    began = _HEAD.pack(MAGIC, head.version, head.mark)
    chosen = os.urandom(NONCE_BYTES) if nonce is None else nonce
    bound = began + place
    return began + chosen + AESGCM(hmac.digest(key, bound, "sha256")).encrypt(chosen, plain, bound)


def open_sealed(key: bytes, place: bytes, sealed: bytes) -> bytes:
    """CannotOpen unless it was sealed with this key for this place, and is as it was."""
    head_of(sealed)
    began, rest = sealed[: _HEAD.size], sealed[_HEAD.size :]
    bound = began + place
    try:
        opener = AESGCM(hmac.digest(key, bound, "sha256"))
        return opener.decrypt(rest[:NONCE_BYTES], rest[NONCE_BYTES:], bound)
    except InvalidTag:
        raise CannotOpen("it was sealed for another place, or has been changed since") from None


def to_text(sealed: bytes) -> str:
    """For columns that hold text."""
    return WORD + base64.urlsafe_b64encode(sealed).rstrip(b"=").decode()


def text_prefix(version: int) -> str:
    """How sealed text begins that was sealed with the data key of this number; six bytes are eight letters."""
    return WORD + base64.urlsafe_b64encode(prefix(version)).decode()


def in_text(text: str, opened: Callable[[bytes], str]) -> str:
    """The text with every sealed part of it replaced: others may have put words around it."""

    def replaced(match: re.Match[str]) -> str:
        try:
            sealed = base64.urlsafe_b64decode(match[1] + "=" * (-len(match[1]) % 4))
        except binascii.Error:
            return match[0]
        return opened(sealed) if is_sealed(sealed) else match[0]

    return _IN_TEXT.sub(replaced, text) if WORD in text else text


def sealed_parts(text: str) -> list[bytes]:
    """What in a text is sealed."""
    found: list[bytes] = []

    def noted(sealed: bytes) -> str:
        found.append(sealed)
        return ""

    in_text(text, noted)
    return found
