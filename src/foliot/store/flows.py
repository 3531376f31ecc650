"""Ranks that are set aside for runs about to be written, flow by flow."""

from collections.abc import Iterator
from datetime import datetime
from itertools import count
from typing import NamedTuple

from foliot.domain.fairness import AGAIN, Priority, step
from foliot.domain.ids import Block, mint
from foliot.store.database import Database, Line


class Flow(NamedTuple):
    """What order is kept within: runs of one tenant and priority in one lane, first in, first out."""

    lane: int
    tenant: int
    priority: int

    @property
    def again(self) -> "Flow":
        """The one beside it: what comes again waits for its tenant's turn, and not behind its tenant's backlog."""
        return self._replace(priority=self.priority + AGAIN)

    def step(self, weight: int) -> int:
        """Rank units between two of its runs, if its tenant has this weight."""
        return step(weight, Priority(self.priority % AGAIN))


class Ranks:
    """Ranks and ids that have been set aside for runs about to be inserted."""

    def __init__(self, positions: dict[Flow, int], steps: dict[Flow, int], ids: list[int], at: datetime) -> None:
        self._positions = positions
        self._following = {flow: count(last + steps[flow], steps[flow]) for flow, last in positions.items()}
        self.ids = ids
        self.at = at

    def take(self, flow: Flow) -> int:
        return next(self._following[flow])

    def of(self, flow: Flow) -> Iterator[int]:
        """What `take` gives, one after the other."""
        return self._following[flow]

    @property
    def flows(self) -> list[Flow]:
        return list(self._positions)

    def base(self, flow: Flow) -> int:
        """The rank before the first one set aside."""
        return self._positions[flow]


async def reserve(line: Line | Database, counts: dict[Flow, int], weights: dict[int, int], ids: int) -> Ranks:
    """Set aside `counts` ranks per flow and `ids` ids. Tenants without an entry in `weights` weigh 1."""
    flows = sorted(counts)
    steps = {flow: flow.step(weights.get(flow.tenant, 1)) for flow in flows}
    rows = await line.fetch(
        "reserve",
        [flow.lane for flow in flows],
        [flow.tenant for flow in flows],
        [flow.priority for flow in flows],
        [counts[flow] * steps[flow] for flow in flows],
        -(-ids // 4096),
    )
    at = rows[0]["at"]
    minted: list[int] = []
    for number in rows[0]["blocks"] or ():
        minted.extend(mint(Block(number, at), min(4096, ids - len(minted))))
    positions = {}
    for row in rows:
        if row["lane"] is not None:
            flow = Flow(row["lane"], row["tenant"], row["priority"])
            positions[flow] = row["last"] - counts[flow] * steps[flow]
    return Ranks(positions, steps, minted, at)
