"""How Foliot knows its own hand again: tokens that let others end an attempt, and signatures under its calls.

A token is made with a key of the worker that calls, so that one whose key is stolen vouches for no other's attempts.
"""

import base64
import binascii
import hashlib
import hmac
import re
import struct
from typing import Final, NamedTuple

_PREFIX: Final = "fct_"
_NUMBERS: Final = struct.Struct(">QIQ")
_TOKEN: Final = re.compile(rf"{_PREFIX}[0-9a-f]{{{2 * _NUMBERS.size + 64}}}")


class Attempt(NamedTuple):
    """Which attempt a token speaks of, and who called for it."""

    run: int
    tenant: int
    fence: int
    worker: int


class Mac:
    """HMAC-SHA-256 with a key that is made ready once: for short messages that is most of the work."""

    def __init__(self, key: bytes) -> None:
        padded = key.ljust(64, b"\0") if len(key) <= 64 else hashlib.sha256(key).digest().ljust(64, b"\0")
        self._inner = hashlib.sha256(bytes(each ^ 0x36 for each in padded))
        self._outer = hashlib.sha256(bytes(each ^ 0x5C for each in padded))

    def __call__(self, message: bytes) -> bytes:
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return outer.digest()


class Voucher:
    """What a worker vouches with for attempts of its own."""

    def __init__(self, worker: int, key: bytes) -> None:
        self.worker = worker
        self.key = key

    def token(self, run: int, tenant: int, fence: int) -> str:
        """Lets its bearer say how this attempt ended, and nothing else."""
        proof = hashlib.blake2b(_NUMBERS.pack(run, tenant, fence), digest_size=32, key=self.key).digest()
        return f"{_PREFIX}{_NUMBERS.pack(self.worker, tenant, fence).hex()}{proof.hex()}"

    def has_made(self, token: str, attempt: Attempt) -> bool:
        return hmac.compare_digest(self.token(attempt.run, attempt.tenant, attempt.fence), token)


def read_token(run: int, token: str) -> Attempt | None:
    """Of which attempt of this run a token claims to be; whether it is, the worker's voucher tells."""
    if not _TOKEN.fullmatch(token):
        return None
    worker, tenant, fence = _NUMBERS.unpack_from(bytes.fromhex(token.removeprefix(_PREFIX)))
    return Attempt(run, tenant, fence, worker) if max(worker, fence) < 2**63 and tenant < 2**31 else None


def secret_text(key: bytes) -> str:
    """As those who check signatures are given it (Standard Webhooks)."""
    return f"whsec_{base64.b64encode(key).decode()}"


def signature(mac: Mac, name: str, timestamp: str, body: bytes) -> str:
    """The value of `webhook-signature` for the message of that name (Standard Webhooks)."""
    proof = mac(f"{name}.{timestamp}.".encode() + body)
    return f"v1,{binascii.b2a_base64(proof, newline=False).decode()}"
