"""An answer that is kept so that only who got it can read it again: the key to it comes with the request."""

import hashlib
import hmac
import secrets
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE: Final = 12
_PURPOSE: Final = b"foliot: a first answer\n"


class Envelope(NamedTuple):
    """Closed with what the caller shows, of which a digest is all that we keep: who reads the database opens none."""

    token: str
    name: str
    """The idempotency key: each has an envelope of its own."""

    def seal(self, content: bytes) -> bytes:
        nonce = secrets.token_bytes(_NONCE)
        return nonce + AESGCM(self._key).encrypt(nonce, content, None)

    def open(self, sealed: bytes) -> bytes | None:
        """None if it was closed with something else."""
        try:
            return AESGCM(self._key).decrypt(sealed[:_NONCE], sealed[_NONCE:], None)
        except (InvalidTag, ValueError):
            return None

    @property
    def _key(self) -> bytes:
        return hmac.digest(self.token.encode(), _PURPOSE + self.name.encode(), hashlib.sha256)
