"""Schedules and firings: how far each recurrence has been fired, and what became of each instant."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from foliot.domain.fairness import Priority, step
from foliot.domain.misfire import Advance
from foliot.store.database import Connection, Line
from foliot.store.dispatch import Flow, Ranks
from foliot.store.statements import SQL


class DueSchedule(NamedTuple):
    id: int
    key: str
    next_at: datetime
    now: datetime


async def due_schedules(line: Line, limit: int, now: datetime | None = None) -> list[DueSchedule]:
    """Schedules whose next instant has come, by the database's clock; tests may pass another."""
    return [DueSchedule(*row) for row in await line.fetch("due_schedules", now, limit)]


async def lock_to_fire(connection: Connection, schedules: Sequence[int], *, wait: bool) -> set[int]:
    """Lock schedules against edits, in a statement of its own: what follows must see an edit that was waited for."""
    name = "lock_to_fire" if wait else "lock_free_to_fire"
    return {row["id"] for row in await connection.fetch(SQL[name], sorted(set(schedules)))}


async def advance_schedules(connection: Connection, moves: Sequence[tuple[DueSchedule, Advance]]) -> set[int]:
    """Move cursors and open firings; returns the schedules that were still where we saw them."""
    rows = await connection.fetch(
        SQL["advance_schedules"],
        [due.id for due, _ in moves],
        [due.next_at for due, _ in moves],
        [advance.through for _, advance in moves],
        [advance.fire for _, advance in moves],
        [advance.missed_from for _, advance in moves],
        [advance.missed_through for _, advance in moves],
        [advance.next_at for _, advance in moves],
    )
    return {row["id"] for row in rows}


class OpenFiring(NamedTuple):
    """A firing with jobs left to do: those after `done_through`, of which the next `members` end at `upto`."""

    schedule: int
    at: datetime
    done_through: int
    members: int
    upto: int | None


async def open_firings(line: Line, limit: int, chunk: int) -> list[OpenFiring]:
    return [OpenFiring(*row) for row in await line.fetch("open_firings", limit, chunk)]


async def firing_flows(line: Line, firings: Sequence[OpenFiring]) -> tuple[dict[Flow, int], dict[int, int]]:
    """How many runs the next chunk will make per flow, and the tenants' weights."""
    rows = await line.fetch(
        "firing_flows",
        [firing.schedule for firing in firings],
        [firing.at for firing in firings],
        [firing.done_through for firing in firings],
        [firing.upto for firing in firings],
    )
    counts = {Flow(row["lane"], row["tenant"], row["priority"]): row["runs"] for row in rows}
    return counts, {row["tenant"]: row["weight"] for row in rows}


class Fired(NamedTuple):
    fired: int
    skipped: int


async def fire_chunk(
    connection: Connection, firings: Sequence[OpenFiring], chunk: int, ranks: Ranks, weights: dict[int, int]
) -> Fired:
    """Make the runs of these firings' next jobs and move the firings on; those that others moved are left alone."""
    flows = ranks.flows
    (row,) = await connection.fetch(
        SQL["fire_chunk"],
        [firing.schedule for firing in firings],
        [firing.at for firing in firings],
        [firing.done_through for firing in firings],
        [firing.upto for firing in firings],
        [firing.members < chunk for firing in firings],
        ranks.ids[0],
        [flow.lane for flow in flows],
        [flow.tenant for flow in flows],
        [flow.priority for flow in flows],
        [ranks.base(flow) for flow in flows],
        [step(weights[flow.tenant], Priority(flow.priority)) for flow in flows],
    )
    return Fired(row["fired"], row["skipped"])


async def rest_schedules(connection: Connection, schedules: Sequence[int]) -> None:
    """Stop firing schedules that nobody will need again; the next job that wants one wakes it."""
    await connection.fetch(SQL["rest_schedules"], await lock_to_fire(connection, schedules, wait=False))


async def seconds_to_next_fire(line: Line) -> float | None:
    """By the database's clock; negative if it has come, none if nothing is scheduled."""
    return await line.fetchval("next_fire")  # type: ignore[no-any-return]
