"""Runs that wait for their time, and how they become ready."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple

import asyncpg

from foliot.domain.shards import EVERYTHING, Look
from foliot.store.admission import enter
from foliot.store.database import Line
from foliot.store.flows import Flow, reserve
from foliot.store.recovery import Contended
from foliot.store.statements import SQL

Table = Literal["runs", "timers"]
BATCH: Final = 2_000
_TRIES: Final = 3


class DueRun(NamedTuple):
    id: int
    lane: int
    tenant: int
    priority: int
    weight: int
    again: bool
    """Whether it has been claimed before."""
    due_at: datetime
    limited: bool
    """Whether it needs a seat before it may run."""

    @property
    def flow(self) -> Flow:
        flow = Flow(self.lane, self.tenant, self.priority)
        return flow.again if self.again else flow


async def fetch_due(
    line: Line,
    table: Table,
    limit: int,
    now: datetime | None = None,
    look: Look = EVERYTHING,
    since: datetime | None = None,
) -> list[DueRun]:
    """What is due, first come first; only what fell due `since` then."""
    return [DueRun(*row) for row in await line.fetch(f"due_{table}", now, limit, look.numbers, look.overdue, since)]


async def promote(
    line: Line, table: Table, due: Sequence[DueRun], ranks: Sequence[int], now: datetime | None = None
) -> int:
    """Make these runs ready; how many still waited, and not for another time by now."""
    at = [now] if table == "runs" else []
    ids, lanes = [run.id for run in due], [run.lane for run in due]
    return await _beside_rivals(lambda: line.fetchval(f"promote_{table}", ids, lanes, ranks, *at))


async def promote_limited(line: Line, table: Table, due: Sequence[DueRun], now: datetime | None = None) -> int:
    """Let these runs, whose time has come, wait for their turn instead, or be ready if it is theirs."""
    at = [now] if table == "runs" else []
    ids, lanes = [run.id for run in due], [run.lane for run in due]

    async def move() -> int:
        async with line.borrow(atomic=True) as connection:
            moved, entering = await connection.fetchrow(SQL[f"promote_{table}"], ids, lanes, [None] * len(due), *at)
            await enter(connection, entering)
        return moved  # type: ignore[no-any-return]

    return await _beside_rivals(move)


async def _beside_rivals(move: Callable[[], Awaitable[int]]) -> int:
    """Whoever asks for a job's only place while a rival, still unseen, takes it, is turned away, and sees it then."""
    for _ in range(_TRIES):
        try:
            return await move()
        except asyncpg.UniqueViolationError as error:
            taken = error
    raise Contended("others take the only places of jobs in the same moment") from taken


async def seconds_to_next_due(line: Line, look: Look, since: Mapping[Table, datetime | None]) -> float | None:
    """`since`: from where on each table is looked at."""
    return await line.fetchval("next_due", look.numbers, since["timers"], since["runs"])  # type: ignore[no-any-return]


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
    moved = 0
    if free := [run for run in due if not run.limited]:
        moved += await promote(line, table, free, await _ranks(ranks, free), now)
    if limited := [run for run in due if run.limited]:
        moved += await promote_limited(line, table, limited, now)
    return Promoted(moved, max(run.due_at for run in due))


async def _ranks(line: Line, due: Sequence[DueRun]) -> list[int]:
    flows = [run.flow for run in due]
    reserved = await reserve(line, Counter(flows), {run.tenant: run.weight for run in due}, 0)
    return [reserved.take(flow) for flow in flows]
