"""Where the next page of a list begins: a text that only Foliot can have written, and only for that list."""

import base64
import binascii
import hmac
from typing import Final

from foliot.domain.errors import ForeignCursor
from foliot.domain.seal import Mac

_PROOF: Final = 16
"""Bytes of the signature: nobody guesses one in 2**128 tries."""


class Cursors:
    """Writes cursors, and reads those that it has written for the same list.

    A list is the tenant that asks, the operation, and everything that was asked for except the size of the page.
    """

    def __init__(self, mac: Mac) -> None:
        self._mac = mac

    def write(self, place: bytes, position: str) -> str:
        after = position.encode()
        return base64.urlsafe_b64encode(self._proof(place, after) + after).decode().rstrip("=")

    def read(self, place: bytes, text: str) -> str:
        """The position, or ForeignCursor."""
        try:
            raw = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
            position = raw[_PROOF:].decode()
        except (UnicodeError, binascii.Error, ValueError):
            raise ForeignCursor from None
        # Compared as text, because the letters at the end of a base64 text can stand for the same bytes.
        if not hmac.compare_digest(self.write(place, position).encode(), text.encode("ascii")):
            raise ForeignCursor
        return position

    def _proof(self, place: bytes, after: bytes) -> bytes:
        return self._mac(len(place).to_bytes(4, "big") + place + after)[:_PROOF]
