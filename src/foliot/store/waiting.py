"""Runs that wait for their time, and how they become ready."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple

from foliot.domain.fairness import Priority, retry_rank, step
from foliot.domain.shards import EVERYTHING, Look
from foliot.store.database import Line
from foliot.store.dispatch import Flow, reserve

Table = Literal["runs", "timers"]
BATCH: Final = 2_000


class DueRun(NamedTuple):
    id: int
    lane: int
    tenant: int
    priority: int
    weight: int
    again: bool
    """A retry: ranked just above what has been claimed, without moving its flow."""
    v: int
    due_at: datetime

    @property
    def flow(self) -> Flow:
        return Flow(self.lane, self.tenant, self.priority)


async def fetch_due(
    line: Line,
    table: Table,
    limit: int,
    now: datetime | None = None,
    look: Look = EVERYTHING,
    since: datetime | None = None,
) -> list[DueRun]:
    """What is due, first come first; of timers only those that fell due `since` then."""
    floor = [since] if table == "timers" else []
    return [DueRun(*row) for row in await line.fetch(f"due_{table}", now, limit, look.numbers, look.overdue, *floor)]


async def promote(line: Line, table: Table, due: Sequence[DueRun], ranks: Sequence[int]) -> int:
    """Make these runs ready; how many still waited."""
    return await line.fetchval(  # type: ignore[no-any-return]
        f"promote_{table}", [run.id for run in due], [run.lane for run in due], ranks
    )


async def seconds_to_next_due(line: Line, look: Look = EVERYTHING, since: datetime | None = None) -> float | None:
    return await line.fetchval("next_due", look.numbers, since)  # type: ignore[no-any-return]


class Promoted(NamedTuple):
    runs: int
    reached: datetime | None
    """When the last of those fell due that were found; none if nothing was."""


async def promote_due(
    line: Line,
    ranks: Line,
    table: Table,
    now: datetime | None = None,
    look: Look = EVERYTHING,
    since: datetime | None = None,
) -> Promoted:
    """Rank one batch of what is due and make it ready. `ranks` carries the reservations.

    Anybody may do it: each run is moved by whoever gets its row first.
    """
    due = await fetch_due(line, table, BATCH, now, look, since)
    if not due:
        return Promoted(0, None)
    flows = [run.flow for run in due]
    counts: Counter[Flow] = Counter(flow for run, flow in zip(due, flows, strict=True) if not run.again)
    reserved = await reserve(ranks, counts, {run.tenant: run.weight for run in due}, 0)
    chosen = [
        retry_rank(run.v, step(run.weight, Priority(run.priority))) if run.again else reserved.take(flow)
        for run, flow in zip(due, flows, strict=True)
    ]
    return Promoted(await promote(line, table, due, chosen), max(run.due_at for run in due))
