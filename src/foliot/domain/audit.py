"""The audit trail: entries, the chain that holds a tenant's together, and the signed checkpoints of it."""

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

import msgspec

NOBODY: Final = 0
"""The tenant of what nobody known has tried."""
BEGINNING: Final = bytes(32)
"""What the first entry of a chain is linked to."""
CHECKPOINTS: Final = "audit/checkpoints/"
"""Where checkpoints are kept in a store of objects."""
_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
Outcome = Literal["done", "denied"]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One change, or one attempt that was denied."""

    id: int
    tenant: int
    at: datetime
    actor: str
    key: str | None = None
    ip: str | None = None
    request: str | None = None
    action: str
    subject: str | None = None
    outcome: Outcome
    before: str | None = None
    """JSON, as it was written."""
    after: str | None = None

    def canonical(self) -> bytes:
        """The bytes that its link is made of: every field, the instant in microseconds."""
        fields = msgspec.structs.asdict(self)
        fields["at"] = (self.at - _EPOCH) // timedelta(microseconds=1)
        return msgspec.json.encode(fields, order="sorted")


class Link(msgspec.Struct, frozen=True):
    """A place in a chain: how far it goes, and the hash that stands for all up to there."""

    position: int = 0
    hash: bytes = BEGINNING

    def then(self, entry: Entry) -> "Link":
        return Link(self.position + 1, hashlib.sha256(self.hash + entry.canonical()).digest())


def links(head: Link, entries: Iterable[Entry]) -> Iterator[Link]:
    """The chain, carried on from its head."""
    for entry in entries:
        head = head.then(entry)
        yield head


class Checkpoint(msgspec.Struct, frozen=True):
    """The heads of the chains that went on since the one before, signed. `previous` is the signature of that one."""

    number: int
    at: str
    previous: str
    heads: dict[str, tuple[int, str]]
    """By tenant: position and hash, in hex."""
    key: str = ""
    """Which key signed it."""
    signature: str = ""

    def signed(self, key: bytes) -> "Checkpoint":
        named = msgspec.structs.replace(self, key=key_id(key), signature="")
        return msgspec.structs.replace(named, signature=_signature(key, named))

    def is_signed_by(self, keys: Sequence[bytes]) -> bool:
        unsigned = msgspec.structs.replace(self, signature="")
        return any(
            key_id(key) == self.key and hmac.compare_digest(_signature(key, unsigned), self.signature) for key in keys
        )

    @property
    def name(self) -> str:
        return f"{CHECKPOINTS}{self.number:012d}.json"

    def body(self) -> bytes:
        return msgspec.json.encode(self, order="sorted")

    @classmethod
    def parse(cls, body: bytes) -> "Checkpoint":
        return msgspec.json.decode(body, type=cls)


def key_id(key: bytes) -> str:
    """A name for a signing key that does not give it away."""
    return hashlib.sha256(b"foliot audit key\0" + key).hexdigest()[:12]


def _signature(key: bytes, checkpoint: Checkpoint) -> str:
    return hmac.new(key, checkpoint.body(), hashlib.sha256).hexdigest()


def faults_of_row(head: Link, entry: Entry, told: Link) -> str | None:
    """What is wrong with the next row of a chain, which says of itself that it is `told`; none if nothing is."""
    expected = head.then(entry)
    if told.position != expected.position:
        return f"position {expected.position:,} is missing: the next entry is at {told.position:,}"
    if told.hash != expected.hash:
        return f"the entry at position {told.position:,} is not what was sealed"
    return None


def faults_of_checkpoints(
    checkpoints: Sequence[Checkpoint], keys: Sequence[bytes], hash_at: Mapping[tuple[int, int], bytes]
) -> Iterator[str]:
    """What is wrong with checkpoints in the order of their numbers, held against the chains as they are now.

    `hash_at` has the hashes of the rows that stand now at the places that the checkpoints name.
    """
    previous, number = "", 0
    for each in checkpoints:
        number += 1
        if each.number != number:
            yield f"checkpoint {number:,} is missing"
            number = each.number
        elif each.previous != previous:
            yield f"checkpoint {each.number:,} does not follow the one before it"
        if not each.is_signed_by(keys):
            yield f"checkpoint {each.number:,} is not signed with a key of ours"
        for tenant, (position, hash_) in each.heads.items():
            if (found := hash_at.get((int(tenant), position))) is None or found.hex() != hash_:
                what = "was taken away" if found is None else "was rewritten"
                yield f"the chain of tenant {tenant} {what}, at or before position {position:,} (checkpoint {number:,})"
        previous = each.signature
