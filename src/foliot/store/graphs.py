"""Runs that wait for each other: graphs that are fired or started as a whole, and how they stand."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from foliot.domain.graph import Edge, When
from foliot.domain.ids import BLOCK_SIZE, Block, mint
from foliot.domain.states import State
from foliot.store.admission import Looked, let_promote
from foliot.store.database import Connection, Database, Line
from foliot.store.schedules import OpenFiring
from foliot.store.specs import SpecRef
from foliot.store.statements import SQL


class FiredGraphs(NamedTuple):
    fired: int
    """Runs, of all graphs."""
    skipped: int


NO_GRAPHS: Final = FiredGraphs(0, 0)


async def fire_graphs(connection: Connection, firings: Sequence[OpenFiring]) -> FiredGraphs:
    """Fire the graphs whose first root stands in the next chunks of these firings, before these are moved on.

    The schedules are locked. Of each graph all runs and edges are written, or it is skipped whole.
    """
    found = await connection.fetch(
        SQL["graphs_to_fire"],
        [firing.schedule for firing in firings],
        [firing.at for firing in firings],
        [firing.done_through for firing in firings],
        [firing.upto for firing in firings],
    )
    if not found:
        return NO_GRAPHS
    sizes = [row["nodes"] for row in found]
    blocks = await connection.fetch(SQL["draw_blocks"], _blocks_for(sizes))
    (row,) = await connection.fetch(
        SQL["fire_graphs"],
        [row["schedule"] for row in found],
        [row["at"] for row in found],
        [row["head"] for row in found],
        _firsts(sizes, [Block(*block) for block in blocks]),
    )
    return FiredGraphs(*row)


def _blocks_for(sizes: Sequence[int]) -> int:
    blocks, room = 1, BLOCK_SIZE
    for size in sizes:
        if size > room:
            blocks, room = blocks + 1, BLOCK_SIZE
        room -= size
    return blocks


def _firsts(sizes: Sequence[int], blocks: Sequence[Block]) -> list[int]:
    """The first id of each graph: its ids lie in one block, without a gap, so that it is found by any of them."""
    following = iter(blocks)
    ids = mint(next(following), BLOCK_SIZE)
    firsts, used = [], 0
    for size in sizes:
        if used + size > BLOCK_SIZE:
            ids, used = mint(next(following), BLOCK_SIZE), 0
        firsts.append(ids[used])
        used += size
    return firsts


class Start(NamedTuple):
    """What somebody starts by hand: a root, what it is to run this time, and when."""

    root: int
    spec: SpecRef
    payload: bytes
    limit_key: int | None
    due: datetime


async def start_graph(connection: Connection, start: Start) -> int:
    """Start the graph that a root is part of, as its jobs stand; the run of the root."""
    (block,) = await connection.fetch(SQL["draw_blocks"], 1)
    first = mint(Block(*block), 1)[0]
    place = await connection.fetchval(
        SQL["start_graph"], start.root, start.spec.id, start.payload, start.limit_key, start.due, first
    )
    return first + int(place)


async def hold_graph(connection: Connection, root: int) -> bool:
    """Whether a graph may be started: none of its roots is paused, no job of it is cancelled. It stays so meanwhile."""
    return await connection.fetchval(SQL["hold_graph"], root)  # type: ignore[no-any-return]


class NodeRow(NamedTuple):
    """How one run of a graph stands."""

    run: int
    job: int
    name: str
    key: str | None
    state: State
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None


class GraphRow(NamedTuple):
    id: int | None
    """Of one that fires or is started as a whole; one-time jobs have none."""
    scheduled_at: datetime | None
    ended: bool
    nodes: dict[int, NodeRow]
    edges: list[Edge]


async def find_graph(connection: Connection, tenant: int, run: int, most: int) -> GraphRow | None:
    """The graph that a run is part of; none if it is in none."""
    row = await connection.fetchrow(SQL["find_graph"], tenant, run)
    if row is None:
        return await _one_time_graph(connection, tenant, run, most)
    first = row["id"]
    runs = {first + place: job for place, job in enumerate(row["jobs"])}
    edges = [
        Edge(first + parent, first + child, When(condition))
        for parent, child, condition in zip(row["parents"], row["children"], row["conditions"], strict=True)
    ]
    nodes = await _nodes(connection, tenant, runs)
    return GraphRow(first, row["scheduled_at"], row["ended_at"] is not None, nodes, edges)


async def _one_time_graph(connection: Connection, tenant: int, run: int, most: int) -> GraphRow | None:
    rows = await connection.fetch(SQL["one_time_graph"], tenant, run, most)
    run_of = {row["id"]: row["run"] for row in rows}
    if len(run_of) < 2:
        return None
    found = await connection.fetch(SQL["edges"], list(run_of))
    edges = [
        Edge(run_of[row["parent"]], run_of[row["child"]], When(row["condition"]))
        for row in found
        if row["parent"] in run_of
    ]
    nodes = await _nodes(connection, tenant, {number: job for job, number in run_of.items()})
    return GraphRow(None, None, False, nodes, edges)


async def _nodes(connection: Connection, tenant: int, runs: Mapping[int, int]) -> dict[int, NodeRow]:
    rows = await connection.fetch(SQL["node_states"], tenant, list(runs), list(runs.values()))
    return {row["run"]: NodeRow(**{**row, "state": State(row["state"] or State.CANCELLED)}) for row in rows}


class Hindrance(NamedTuple):
    """A run that another waits for, directly or because it holds up one in between."""

    run: int
    dead: bool
    name: str | None


async def why_blocked(database: Database, run: int, most: int = 20) -> list[Hindrance]:
    """What a run waits for of its graph, those that have failed for good first; nothing if it does not."""
    return [Hindrance(*row) for row in await database.fetch("why_blocked", run, most)]


async def let_left_behind_go(line: Line, after: int, most: int) -> Looked:
    """Let those of the next runs go that wait for no parent and that nobody has let go."""
    (page,) = await line.fetch("nodes_left_behind", after, most)
    found = page["found"] or ()
    if found:
        async with line.borrow(atomic=True) as connection:
            await connection.fetch(SQL["lock_owners"], found)
            await connection.fetchval(SQL["lock_ties"], found)
            rows = await connection.fetch(SQL["release_left_behind"], found)
            await connection.execute(SQL["count_left_behind"], [row["graph"] for row in rows])
            await let_promote(connection, [row["run"] for row in rows])
    return Looked.at(page, most, len(found))
