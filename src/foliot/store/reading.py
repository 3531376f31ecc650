"""What people look at: jobs, runs and attempts as rows."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from foliot.domain.ids import HIGHEST
from foliot.domain.spec import Spec
from foliot.store.database import Connection, Database, Row
from foliot.store.statements import SQL


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    name: str
    key: str | None
    kind: int
    gate: int
    exclusive: bool
    overlap: int
    schedule: int | None
    run: int | None
    status: str
    timing: dict[str, Any]
    labels: dict[str, str]
    payload: bytes
    version: int
    created_at: datetime
    updated_at: datetime
    spec: Spec
    schedule_key: str | None
    next_at: datetime | None
    after: datetime | None
    until: datetime | None
    last_run: int | None
    last_state: int | None
    last_scheduled_at: datetime | None
    last_started_at: datetime | None
    last_finished_at: datetime | None
    last_error: str | None
    paused_at: datetime | None
    head: int | None = None
    """The first root of the graph that it is part of."""
    parents: list[int] = []
    conditions: list[int] = []


def _job(row: Row) -> JobRow:
    values = {name: row[name] for name in JobRow.__struct_fields__ if name not in {"spec", "timing", "labels"}}
    return JobRow(
        **values,
        spec=Spec.parse(row["spec_body"]),
        timing=msgspec.json.decode(row["timing"]),
        labels=msgspec.json.decode(row["labels"]),
    )


async def find_job(connection: Connection, tenant: int, job: int) -> JobRow | None:
    row = await connection.fetchrow(SQL["find_job"], tenant, job)
    return None if row is None else _job(row)


async def find_jobs(database: Database, tenant: int, jobs: Sequence[int]) -> list[JobRow]:
    """Those of these jobs that the tenant has, by id."""
    return [_job(row) for row in await database.fetch("find_jobs", tenant, jobs)]


async def find_job_by_key(connection: Connection, tenant: int, key: str) -> int | None:
    """The job of this key that is not cancelled: there is one at most."""
    return await connection.fetchval(SQL["find_job_by_key"], tenant, key)  # type: ignore[no-any-return]


async def list_jobs(
    database: Database,
    tenant: int,
    *,
    below: int = HIGHEST,
    status: str | None = None,
    name: str | None = None,
    labels: dict[str, str] | None = None,
    kind: int | None = None,
    limit: int,
) -> list[JobRow]:
    """Newest first, ids below `below`."""
    wanted = None if labels is None else msgspec.json.encode(labels).decode()
    return [
        _job(row) for row in await database.fetch_anew("list_jobs", tenant, below, status, name, wanted, kind, limit)
    ]


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    job: int | None
    spec: Spec
    scheduled_at: datetime
    due_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    attempt: int
    state: int
    error: str | None
    error_class: str | None
    worker: int | None
    waits: str | None = None
    """Of a run that is ready but blocked all the same: `pause` of its queue, or `worker` if none offers its handler;
    of one that is blocked, `parents` if it waits for those."""
    line: int | None = None
    """Of a run that stands in one: 1 its job's overlap, 2 its limit, 3 its tenant's."""
    capacity: int | None = None
    going: int | None = None
    ahead: int | None = None
    target: bytes | None = None
    payload: bytes | None = None
    until: datetime | None = None
    """Of a run that goes on outside: then its time is up."""
    cancel_asked: datetime | None = None
    """Of a run that a worker holds: since when it is to stop."""
    result: bytes | None = None


def _run(row: Row) -> RunRow:
    return RunRow(spec=Spec.parse(row["spec_body"]), **{k: v for k, v in row.items() if k != "spec_body"})


async def find_run(database: Database, tenant: int, run: int, most_ahead: int) -> RunRow | None:
    """Of those before it in its line, at most `most_ahead` are counted."""
    row = await database.fetchrow("find_run", tenant, run, most_ahead)
    return None if row is None else _run(row)


async def list_runs(
    database: Database,
    tenant: int,
    *,
    above: int = 0,
    below: int = HIGHEST,
    job: int | None = None,
    states: Sequence[int] | None = None,
    text: str | None = None,
    limit: int,
) -> list[RunRow]:
    """Newest first, ids from `above` on and below `below`; with `text`, those that it is found in (`is_about`)."""
    return [_run(row) for row in await database.fetch_anew("list_runs", tenant, below, job, states, limit, above, text)]


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    run: int
    job: int | None
    attempt: int
    ending: int
    """-1 while it is under way."""
    scheduled_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    worker: int | None
    fence: int
    error: str | None
    error_class: str | None
    late_ending: int | None
    """What its worker said of it after the lease was lost."""
    late_error: str | None
    late_at: datetime | None


async def list_attempts(
    database: Database,
    tenant: int,
    *,
    job: int | None = None,
    run: int | None = None,
    below: tuple[int, int] = (HIGHEST, 0),
    limit: int,
) -> list[AttemptRow]:
    """Newest first, those of lower (run, fence) than `below`."""
    return [AttemptRow(**row) for row in await database.fetch_anew("list_attempts", tenant, job, run, *below, limit)]
