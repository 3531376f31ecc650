"""The fleet as people see and steer it: workers, queues, and who is paused or drained."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from foliot.store.database import Connection, Database, Line
from foliot.store.statements import SQL


class WorkerRow(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    name: str
    state: int
    host: str
    pid: int
    version: str
    app: str | None
    concurrency: int
    running: int
    queues: list[str]
    handlers: list[str]
    labels: list[str]
    started_at: datetime
    seen_at: datetime


async def list_workers(
    database: Database, *, state: int | None = None, before: tuple[datetime, int] | None = None, limit: int
) -> list[WorkerRow]:
    """Newest first, those that started before `before`."""
    started, number = before or (None, None)
    rows = await database.fetch("list_workers", None, state, started, number, limit)
    return [WorkerRow(**row) for row in rows]


async def find_worker(database: Database, worker: int) -> WorkerRow | None:
    rows = await database.fetch("list_workers", worker, None, None, None, 1)
    return WorkerRow(**rows[0]) if rows else None


async def drain(connection: Connection, worker: int) -> bool:
    """Have a worker that lives leave in good order; it learns so by its next heartbeat. Whether that is new."""
    return bool(await connection.fetch(SQL["drain_worker"], worker))


class QueueRow(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    paused_at: datetime | None
    ready: int
    running: int
    scheduled: int
    rate: float
    workers: int
    oldest_age: float | None
    unserved: list[str]


async def list_queues(database: Database, *, after: str = "", only: str | None = None, limit: int) -> list[QueueRow]:
    """By name, those after `after`. A queue is there once a job, a run or a worker has named it."""
    return [QueueRow(**row) for row in await database.fetch("list_queues", after, only, limit)]


async def pause(connection: Connection, queue: str) -> bool:
    """No claim takes anything of this queue from now on; whether that is new."""
    return bool(await connection.fetch(SQL["pause_queue"], queue))


async def resume(connection: Connection, queue: str) -> bool:
    """Whether it was paused."""
    return bool(await connection.fetch(SQL["resume_queue"], queue))


class FleetGauges(NamedTuple):
    live: int
    draining: int
    paused_queues: int
    unserved_lanes: int


async def gauges(database: Database) -> FleetGauges:
    (row,) = await database.fetch("fleet_gauges")
    return FleetGauges(*row)


class Look(NamedTuple):
    busy: int
    backlog: int


async def look_at_processes(line: Line, host: str, pids: Sequence[int], most: int, key: str | None = None) -> Look:
    """How many of these processes have work in hand, and how much waits for them, counted up to `most`.

    With `key` only those that came with it, through the gateway.
    """
    (row,) = await line.fetch("look_at_processes", host, pids, most, key)
    return Look(row["busy"], row["backlog"])
