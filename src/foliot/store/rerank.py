"""Tenants' weights, and the backlogs that are ranked anew when one changes."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import NamedTuple

from foliot.domain.rerank import Rerank
from foliot.store.database import Connection, Database, Line
from foliot.store.flows import Flow
from foliot.store.statements import SQL


class Weight(NamedTuple):
    weight: int
    is_moving: bool
    """Whether some of the tenant's backlog still stands where the weight before put it."""


async def read_weight(database: Database, name: str) -> Weight | None:
    row = await database.fetchrow("read_weight", name)
    return None if row is None else Weight(*row)


class Changed(NamedTuple):
    tenant: int
    before: int


async def change_weight(connection: Connection, name: str, weight: int) -> Changed | None:
    row = await connection.fetchrow(SQL["change_weight"], name, weight)
    return None if row is None else Changed(*row)


class Ends(NamedTuple):
    """The last rank given out in a flow, and the highest claimed in its lane."""

    last: int
    virtual: int


async def hold_flows(connection: Connection, tenant: int) -> dict[Flow, Ends]:
    """The tenant's flows, locked against reservations: no rank is given out before the transaction ends."""
    rows = await connection.fetch(SQL["hold_flows"], tenant)
    return {Flow(*row[:3]): Ends(*row[3:]) for row in rows}


async def begin_reranks(connection: Connection, works: dict[Flow, Rerank]) -> set[Flow]:
    """Write down what is to be moved, of flows that are held; those of which nothing was on the move already."""
    rows = await connection.fetch(
        SQL["begin_reranks"],
        [flow.lane for flow in works],
        [flow.tenant for flow in works],
        [flow.priority for flow in works],
        [work.before for work in works.values()],
        [work.after for work in works.values()],
        [work.boundary for work in works.values()],
        [work.place for work in works.values()],
        [work.image for work in works.values()],
    )
    return {Flow(*row) for row in rows}


async def end_flow(connection: Connection, flow: Flow, last: int) -> None:
    """Let the flow's next rank follow `last`. The flow is held."""
    await connection.execute(SQL["end_flow"], *flow, last)


async def unfinished(line: Line, after: Flow, limit: int) -> list[Flow]:
    """Flows behind `after`, in key order, of which something is on the move."""
    return [Flow(*row) for row in await line.fetch("unfinished_reranks", *after, limit)]


class Held(NamedTuple):
    """A flow on the move that is ours until the transaction ends."""

    work: Rerank
    landed: int | None
    """Up to here no rank that was given out can still turn up."""
    ends: Ends


async def hold(connection: Connection, flow: Flow, landing: timedelta) -> Held | None:
    """None if somebody else has it, or nothing of it is on the move any more.

    A rank is used within `landing` of being given out, or never.
    """
    row = await connection.fetchrow(SQL["hold_rerank"], *flow, landing)
    if row is None:
        return None
    landed, ends = row["landed"], Ends(row["last"], row["v"])
    if row["has_landed"]:
        landed = await connection.fetchval(SQL["land_rerank"], *flow, ends.last)
    return Held(Rerank(*row[:5]), landed, ends)


class Page(NamedTuple):
    """A stretch of a lane up or down to `through`, and what in it belongs to the flow: ranks, runs and their jobs."""

    scanned: int
    through: int | None
    ranks: list[int]
    runs: list[int]
    jobs: set[int]


async def backlog(connection: Connection, flow: Flow, above: int, upto: int, most: int, *, falling: bool) -> Page:
    """The next `most` rows of the flow's lane with above < rank <= upto; more if their ranks are equal."""
    name = "backlog_below" if falling else "backlog_above"
    rows = await connection.fetch(SQL[name], *flow, above, upto, most)
    mine = [row for row in rows if row["run"] is not None]
    jobs = {row["job"] for row in mine if row["job"] is not None}
    return Page(
        rows[0]["scanned"], rows[0]["through"], [row["rank"] for row in mine], [row["run"] for row in mine], jobs
    )


async def move(connection: Connection, flow: Flow, page: Page, ranks: Sequence[int]) -> int:
    """Give the runs of a page other ranks; how many were still waiting and moved."""
    return await shift(connection, flow.lane, page.runs, page.ranks, ranks, page.jobs)


async def shift(
    connection: Connection,
    lane: int,
    runs: Sequence[int],
    before: Sequence[int],
    after: Sequence[int],
    jobs: Collection[int],
) -> int:
    """Give waiting runs of a lane, which belong to these jobs, other ranks; how many were still waiting and moved."""
    moves = [each for each in zip(runs, before, after, strict=True) if each[1] != each[2]]
    if not moves:
        return 0
    await connection.fetch(SQL["share_jobs"], sorted(jobs))
    return await connection.fetchval(  # type: ignore[no-any-return]
        SQL["move_backlog"], lane, *(list(column) for column in zip(*moves, strict=True))
    )


async def note(connection: Connection, flow: Flow, work: Rerank, *, afresh: bool = False) -> None:
    """Write down how far it got; `afresh` if it begins again with another weight."""
    await connection.execute(
        SQL["note_rerank"], *flow, work.before, work.after, work.boundary, work.place, work.image, afresh
    )


async def hold_weight(connection: Connection, tenant: int) -> int:
    """The tenant's weight, which stays what it is until the transaction ends."""
    return await connection.fetchval(SQL["hold_weight"], tenant)  # type: ignore[no-any-return]


async def hold_flow(connection: Connection, flow: Flow) -> Ends:
    """As `hold_flows`, one of them."""
    return Ends(*await connection.fetchrow(SQL["hold_flow"], *flow))


async def is_there(connection: Connection, lane: int, rank: int) -> bool:
    """Whether a run of this rank waits in the lane."""
    return await connection.fetchval(SQL["is_there"], lane, rank)  # type: ignore[no-any-return]


async def forget(connection: Connection, flow: Flow) -> None:
    await connection.execute(SQL["forget_rerank"], *flow)
