"""Operations: what was asked for, what of it has been handed out, and what became of that."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from foliot.domain.backfill import Backfill, Choice, Order, Range
from foliot.domain.fairness import Priority, step
from foliot.domain.ids import first_id_at
from foliot.domain.job import Gate, Kind
from foliot.domain.operation import OperationKind, OperationState, Progress
from foliot.domain.states import State
from foliot.store.admission import enter, untying
from foliot.store.database import Connection, Database, Line, Row
from foliot.store.flows import Flow, Ranks
from foliot.store.jobs import draw_ids
from foliot.store.statements import SQL

_CLOCKS = timedelta(days=1)
"""How far a clock may have been set back."""


class OperationRow(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    kind: OperationKind
    job: int | None
    name: str
    state: OperationState
    arguments: dict[str, Any]
    progress: Progress
    reason: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    gate: Gate | None
    """Of its job."""
    now: datetime


def _operation(row: Row) -> OperationRow:
    plain = ("id", "job", "name", "reason", "created_at", "started_at", "finished_at", "now")
    return OperationRow(
        **{name: row[name] for name in plain},
        kind=OperationKind(row["kind"]),
        state=OperationState(row["state"]),
        arguments=msgspec.json.decode(row["arguments"]),
        progress=Progress(**{name: row[name] for name in Progress.__struct_fields__}),
        gate=None if row["gate"] is None else Gate(row["gate"]),
    )


async def find_operation(connection: Connection, tenant: int, operation: int) -> OperationRow | None:
    row = await connection.fetchrow(SQL["find_operation"], tenant, operation)
    return None if row is None else _operation(row)


async def list_operations(
    database: Database, tenant: int, *, below: int, state: OperationState | None, job: int | None, limit: int
) -> list[OperationRow]:
    """Newest first, ids below `below`."""
    return [_operation(row) for row in await database.fetch_anew("list_operations", tenant, below, state, job, limit)]


class Fillable(NamedTuple):
    """What of a job must be known, under its lock, to back-fill it."""

    kind: Kind
    gate: Gate
    version: int
    now: datetime


async def lock_job_to_fill(connection: Connection, tenant: int, job: int) -> Fillable | None:
    row = await connection.fetchrow(SQL["lock_job_to_fill"], tenant, job)
    return None if row is None else Fillable(Kind(row[0]), Gate(row[1]), *row[2:])


async def overlapping_operation(connection: Connection, job: int, range_: Range) -> int | None:
    """An unfinished back-fill of the job that may run some of the same instants."""
    return await connection.fetchval(  # type: ignore[no-any-return]
        SQL["overlapping_operation"], job, range_.since, range_.until
    )


class Past(NamedTuple):
    """What is known about the instants of a range, as `backfill.choose` wants it."""

    to_come: list[tuple[datetime, datetime]]
    under_way: set[datetime]
    ended: dict[datetime, State]


async def read_past(connection: Connection, job: int, range_: Range, *, with_history: bool) -> Past:
    """In the order in which an instant moves on, so that one which moves meanwhile is seen twice rather than never."""
    since, until = range_.since, range_.until
    unfired = await connection.fetch(SQL["instants_to_come"], job, until)
    to_come = [(row["after"], row["until"]) for row in unfired if row["at"] is None]
    under_way = {row["at"] for row in unfired if row["at"] is not None}
    under_way |= {row[0] for row in await connection.fetch(SQL["instants_under_way"], job, since, until)}
    ended: dict[datetime, State] = {}
    if with_history:
        rows = await connection.fetch(SQL["instants_ended"], job, since, until, first_id_at(since - _CLOCKS))
        ended = {row[0]: State(row[1]) for row in rows}
    return Past(to_come, under_way, ended)


async def insert_backfill(connection: Connection, tenant: int, job: int, asked: Backfill, choice: Choice) -> int:
    """Write down what is to be run; the new operation's id."""
    (id_,) = await draw_ids(connection, 1)
    await connection.execute(
        SQL["insert_operation"],
        id_,
        tenant,
        job,
        asked.name,
        msgspec.json.encode(asked.arguments).decode(),
        asked.range.since,
        asked.range.until,
        asked.order is Order.NEWEST,
        asked.concurrency,
        choice.total,
        choice.skipped,
    )
    await connection.execute(SQL["insert_items"], id_, choice.chosen)
    return id_


class Locked(NamedTuple):
    id: int
    kind: OperationKind
    job: int | None
    state: OperationState
    is_over: bool


async def lock_operation(connection: Connection, tenant: int, operation: int) -> Locked | None:
    row = await connection.fetchrow(SQL["lock_operation"], tenant, operation)
    return None if row is None else Locked(row[0], OperationKind(row[1]), row[2], OperationState(row[3]), row[4])


async def lock_unfinished(connection: Connection, above: int, limit: int) -> list[int]:
    """Unfinished operations, ids above `above`, that nobody else serves just now."""
    return [row["id"] for row in await connection.fetch(SQL["lock_unfinished"], above, limit)]


async def lock_to_feed(connection: Connection, operations: Sequence[int]) -> set[int]:
    """Those of these operations that still hand out runs, whose job is open, and that nobody else has hold of.

    What follows is a later statement, which sees the jobs as they are under their locks.
    """
    jobs = {row["id"]: row["job"] for row in await connection.fetch(SQL["lock_to_feed"], operations)}
    held = {row["id"] for row in await connection.fetch(SQL["hold_open_and_free"], list(jobs.values()))}
    return {operation for operation, job in jobs.items() if job in held}


async def note_ended(connection: Connection, operations: Sequence[int]) -> int:
    """Count the runs of these operations, which are locked, that have ended since; how many there were."""
    return await connection.fetchval(SQL["note_ended"], operations)  # type: ignore[no-any-return]


async def finish(connection: Connection, operations: Sequence[int]) -> int:
    """End those of which nothing is left; how many there were."""
    return len(await connection.fetch(SQL["finish_operations"], operations))


async def stop_orphans(connection: Connection, operations: Sequence[int]) -> None:
    """Cancel those whose job is over."""
    await connection.execute(SQL["stop_orphans"], operations)


async def cancel_operation(connection: Connection, operation: int) -> None:
    await connection.execute(SQL["cancel_operation"], operation)


async def with_waiting_runs(connection: Connection, operations: Sequence[int]) -> dict[int, int]:
    """Those of these operations that are cancelled while runs of theirs wait, each with its job."""
    return {row["id"]: row["job"] for row in await connection.fetch(SQL["with_waiting_runs"], operations)}


async def cancel_waiting_runs(connection: Connection, operations: Mapping[int, int], *, wait: bool) -> None:
    """End the runs of these operations, given with their jobs, that no worker holds.

    Unless told to `wait`, operations whose job somebody else uses just now are left alone.
    """
    rows = await connection.fetch(SQL["hold_jobs" if wait else "hold_free_jobs"], list(operations.values()))
    held = {row["id"] for row in rows}
    mine = [id_ for id_, job in operations.items() if job in held]
    async with untying(connection, await connection.fetchval(SQL["tied_of_operations"], mine), for_good=True):
        await connection.execute(SQL["cancel_waiting_runs"], mine)


class Hungry(NamedTuple):
    """A back-fill that could have `room` more runs under way."""

    id: int
    lane: int
    tenant: int
    weight: int
    room: int

    @property
    def flow(self) -> Flow:
        """What it makes up for must not hold back what is fresh, whatever the job's own priority."""
        return Flow(self.lane, self.tenant, Priority.BULK)


async def hungry(line: Line, operations: Sequence[int]) -> list[Hungry]:
    return [Hungry(*row) for row in await line.fetch("hungry_backfills", operations)]


class Fed(NamedTuple):
    made: int
    skipped: int


async def feed(connection: Connection, operations: Iterable[Hungry], ranks: Ranks, counts: Mapping[Flow, int]) -> Fed:
    """Hand out up to `room` runs of each of these operations, which are locked, as their jobs are."""
    wanted = list(operations)
    weights = {each.tenant: each.weight for each in wanted}
    flows = [flow for flow in ranks.flows if flow.tenant in weights]
    (row,) = await connection.fetch(
        SQL["feed"],
        [each.id for each in wanted],
        [each.room for each in wanted],
        ranks.ids[0],
        [flow.lane for flow in flows],
        [flow.tenant for flow in flows],
        [ranks.base(flow) for flow in flows],
        [step(weights[flow.tenant], Priority(flow.priority)) for flow in flows],
        [counts[flow] for flow in flows],
    )
    await enter(connection, row["enter"])
    return Fed(row["made"], row["skipped"])


async def are_unfinished(line: Line) -> bool:
    return await line.fetchval("are_unfinished")  # type: ignore[no-any-return]
