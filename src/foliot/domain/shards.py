"""Which scheduler looks after which shard: rendezvous hashing, so that all who see the same members say the same."""

from collections.abc import Callable, Collection
from datetime import timedelta
from hashlib import blake2b
from typing import Final, NamedTuple

SHARDS: Final = 256
"""Schedules are dealt out by their id, runs that wait for their time by theirs: see `schedule.shard` in the schema."""
ALL: Final = frozenset(range(SHARDS))
OVERDUE: Final = timedelta(seconds=6)
"""What is late by more than this is done by whoever sees it: its owner should have, and did not."""
SWEEP: Final = 2.0
"""Seconds between two looks for what is overdue."""


def assign(members: Collection[int], shards: Collection[int] = ALL) -> dict[int, frozenset[int]]:
    """Give every shard to the member with the highest weight for it.

    Whoever joins takes shards from each of the others and moves nothing else; whoever leaves gives up its own only.
    """
    owners = {shard: max(members, key=lambda member: (_weight(member, shard), member)) for shard in shards if members}
    return {member: frozenset(shard for shard in shards if owners[shard] == member) for member in members}


def _weight(member: int, shard: int) -> bytes:
    # Not hash(): every process must come to the same answer, whatever its version of Python.
    return blake2b(f"{member}/{shard}".encode(), digest_size=8).digest()


class Look(NamedTuple):
    """What one look for due work takes in."""

    shards: frozenset[int] | None = None
    """All if none are named."""
    overdue: timedelta | None = None
    """Only what came up that long ago, or longer."""

    @property
    def numbers(self) -> list[int] | None:
        return None if self.shards is None else sorted(self.shards)


EVERYTHING: Final = Look()


class Rounds:
    """What to look at each time: our own shards, and now and then what is overdue in those of others.

    The second is a safety net. Nobody's stall, and no error in who owns what, can silence a shard for long.
    """

    def __init__(self, shards: Callable[[], frozenset[int] | None], clock: Callable[[], float]) -> None:
        """`shards`: none if all of them are ours."""
        self._shards = shards
        self._clock = clock
        self._swept = clock()

    def mine(self) -> Look | None:
        """None if nothing is ours."""
        shards = self._shards()
        return None if shards is not None and not shards else Look(shards)

    def others(self) -> Look | None:
        """What to look at besides; none most of the time."""
        shards = self._shards()
        if shards is None or shards == ALL or self._clock() - self._swept < SWEEP:
            return None
        self._swept = self._clock()
        return Look(ALL - shards, OVERDUE)

    def sweep_again(self) -> None:
        """There may be more where this was."""
        self._swept = float("-inf")
