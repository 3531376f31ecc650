"""In which order ready runs are taken."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from foliot.domain.errors import InvalidField

UNIT: Final = 65_536  # rank units that a run of cost 1 takes at weight 1
HEAVIEST: Final = 1_000
AGAIN: Final = 8
"""Added to the code of a priority, it names the flow of what comes again, retries and snoozes, which have their own."""


class Priority(IntEnum):
    """Stored codes: not the numbers of the wire, where 0, 1, 2 mean high, normal, low."""

    CRITICAL = 0
    HIGH = 1
    NORMAL = 2
    LOW = 3
    BULK = 4

    @property
    def weight(self) -> int:
        """Share against the other priorities of the same tenant: 16, 8, 4, 2, 1."""
        return 16 >> self.value


_ON_THE_WIRE: Final = MappingProxyType(
    {priority.name.lower(): priority for priority in Priority}
    | {"0": Priority.HIGH, "1": Priority.NORMAL, "2": Priority.LOW}
)


def parse_priority(value: str | int) -> Priority:
    priority = _ON_THE_WIRE.get(str(value).lower())
    if priority is None:
        raise InvalidField(
            "priority",
            f"unknown priority {str(value)[:40]!r}",
            "use critical, high, normal, low or bulk; 0, 1, 2 mean high, normal, low",
        )
    return priority


def check_weight(weight: int, field: str = "weight") -> int:
    """A weight of a tenant or of a queue, as its owner wrote it."""
    if not 1 <= weight <= HEAVIEST:
        raise InvalidField(field, f"a weight of {weight} cannot be", f"use a whole number from 1 to {HEAVIEST}")
    return weight


def weigh(queues: Mapping[str, int] | Iterable[str]) -> dict[str, int]:
    """Queues with their weights; those that come without weigh 1."""
    if not isinstance(queues, Mapping):
        queues = dict.fromkeys(queues, 1)
    return {queue: check_weight(weight, f"queues[{queue}]") for queue, weight in queues.items()}


def step(tenant_weight: int, priority: Priority) -> int:
    """Rank units between two runs of one flow; rounding stays below 1 % while the weights multiply to <= 655."""
    if tenant_weight < 1:
        raise ValueError(f"a tenant's weight is at least 1, not {tenant_weight}")
    return max(1, UNIT // (tenant_weight * priority.weight))


def reserve(virtual: int, last: int, count: int, step: int) -> tuple[int, int]:
    """Answer the first rank of `count` new runs of a flow, `step` apart, and the flow's new last rank.

    `virtual` is the highest rank claimed so far in the lane: starting from it, an idle flow has saved no credit.
    """
    if count < 1:
        raise ValueError(f"reserve at least one rank, not {count}")
    base = max(virtual, last)
    return base + step, base + step * count
