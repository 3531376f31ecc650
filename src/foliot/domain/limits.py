"""Concurrency limits: how many runs of a job, or of one key of its payload, go at once."""

import hashlib
import re
from typing import Any, Final

import msgspec

from foliot.domain.errors import InvalidField

HIGHEST: Final = 1_000_000
_PATH: Final = re.compile(r"payload((?:\.[^.\s\x00-\x1f\x7f-\x9f]{1,100}){1,10})")


def check_limit(limit: int, field: str, instead: str) -> int:
    if not 1 <= limit <= HIGHEST:
        hint = f"use a whole number from 1 to {HIGHEST:,}; {instead}"
        raise InvalidField(field, f"a limit of {limit} cannot be", hint)
    return limit


class Concurrency(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """At most `limit` at once; with a `key` (`payload.account`) at most so many of each value it leads to."""

    limit: int
    key: str | None = None

    def __post_init__(self) -> None:
        check_limit(self.limit, "concurrency.limit", "to stop everything, pause the job")
        if self.key is not None and not _PATH.fullmatch(self.key):
            hint = "name a field of the payload, such as payload.account or payload.order.customer"
            raise InvalidField("concurrency.key", f"{self.key[:80]!r} is no path into the payload", hint)

    def key_of(self, payload: bytes) -> int | None:
        """A number for what the key leads to in this payload, the same for the same value; none without a key."""
        if self.key is None:
            return None
        value: Any = msgspec.json.decode(payload)
        for name in self.key.split(".")[1:]:
            if not isinstance(value, dict) or name not in value:
                hint = f"runs are told apart by {self.key}: give each payload that field"
                raise InvalidField("payload", f"has no {self.key.removeprefix('payload.')}", hint)
            value = value[name]
        said = msgspec.json.encode(value, order="deterministic")
        return int.from_bytes(hashlib.sha256(said).digest()[:8], signed=True)
