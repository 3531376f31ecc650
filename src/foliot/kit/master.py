"""The master key, which wraps the data keys of tenants: from a file or the environment, or kept by somebody else."""

import base64
import binascii
import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from foliot.kit.sealing import KEY_BYTES, CannotOpen, Head, open_sealed, seal

_HEX: Final = re.compile(r"[0-9a-fA-F]{64}")
_WRAPPED: Final = Head(version=0, mark=0)
HOW_TO_MAKE_ONE: Final = "make one with: openssl rand -hex 32"


class BadMasterKey(ValueError):  # noqa: N818 - reads aloud
    """It cannot be used; the message says why, and never what it is."""


class Wrapped(NamedTuple):
    """A key that only whoever has the master key of this name can unwrap."""

    master: str
    blob: bytes


class Master(Protocol):
    """Wraps and unwraps keys. A key management service implements it by a call; nothing else is asked of one."""

    @property
    def current(self) -> str:
        """The name of the key that wraps from now on."""

    @property
    def names(self) -> frozenset[str]:
        """The keys that can unwrap."""

    async def wrap(self, plain: bytes, context: bytes) -> Wrapped:
        """With the current key, bound to `context`."""

    async def unwrap(self, wrapped: Wrapped, context: bytes) -> bytes:
        """CannotOpen if it is of another key, of another context, or not as it was."""


class LocalMaster:
    """Keys of this process. The first wraps; the others are there until nothing is wrapped with them any more."""

    def __init__(self, keys: Iterable[bytes]) -> None:
        found = {name_of(key): key for key in keys}
        if not found:
            raise BadMasterKey("there is no master key")
        self._keys: Mapping[str, bytes] = MappingProxyType(found)
        self.current = next(iter(found))

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._keys)

    async def wrap(self, plain: bytes, context: bytes) -> Wrapped:
        return Wrapped(self.current, seal(self._keys[self.current], _WRAPPED, context, plain))

    async def unwrap(self, wrapped: Wrapped, context: bytes) -> bytes:
        key = self._keys.get(wrapped.master)
        if key is None:
            raise CannotOpen(f"the master key {wrapped.master} is not here")
        return open_sealed(key, context, wrapped.blob)


def name_of(key: bytes) -> str:
    """What a master key is called, which does not give it away."""
    return f"mk_{hashlib.sha256(b'foliot master key' + bytes(1) + key).hexdigest()[:12]}"


def parse_master(text: str) -> LocalMaster:
    """One key a line, in hex or base64, the one that wraps first; BadMasterKey for anything but 256 bits."""
    return LocalMaster(_key(word) for word in text.split())


def new_master_text() -> str:
    return os.urandom(KEY_BYTES).hex()


def _key(word: str) -> bytes:
    try:
        plain = word.replace("-", "+").replace("_", "/")
        key = bytes.fromhex(word) if _HEX.fullmatch(word) else base64.b64decode(plain, validate=True)
    except (binascii.Error, ValueError):
        raise BadMasterKey(f"a master key is 64 hexadecimal digits, or 32 bytes in base64; {HOW_TO_MAKE_ONE}") from None
    if len(key) != KEY_BYTES:
        raise BadMasterKey(f"a master key has 32 bytes, this one {len(key)}; {HOW_TO_MAKE_ONE}")
    if len(set(key)) < 8:
        raise BadMasterKey(f"this master key can be guessed; {HOW_TO_MAKE_ONE}")
    return key
