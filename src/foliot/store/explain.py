"""What is known of a run or of a job at one moment: the facts that explain why it waits."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from foliot.domain.capacity import Fleet, Line
from foliot.domain.gates import COUNTED, Code
from foliot.domain.job import Gate, Overlap
from foliot.domain.job_facts import JobFacts, Other, Previous
from foliot.domain.labels import parted
from foliot.domain.misfire import USUAL, CatchUp, Mode
from foliot.domain.run_facts import JobStand, Parent, RunFacts
from foliot.domain.schedule import Recurrence
from foliot.domain.spec import Spec
from foliot.domain.states import State
from foliot.store.database import Connection, Database, Row
from foliot.store.fleet import STOPPED_WITHIN
from foliot.store.members import LEASE
from foliot.store.reading import JobRow
from foliot.store.statements import SQL

MOST_NAMED = 20
MOST_SUMMED_UP = 1_000
_UNCOUNTED = COUNTED + 1
_AS_THEY_ARE = (
    "now", "run", "scheduled_at", "due_at", "attempt", "error", "error_class", "started_at", "finished_at",
    "held_since", "worker", "mark", "crashes", "cancel_asked", "outside_until", "waits_for_parents", "ahead",
    "rank",
)  # fmt: skip


@asynccontextmanager
async def one_moment(database: Database) -> AsyncIterator[Connection]:
    """A connection on which everything is read as it stood at one and the same moment."""
    async with (
        database.connection() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        yield connection


async def facts_of_run(connection: Connection, tenant: int, run: int) -> RunFacts | None:
    """None if the tenant has no such run."""
    row = await connection.fetchrow(SQL["explain_run"], tenant, run, _UNCOUNTED)
    if row is None:
        return None
    spec, state = Spec.parse(row["spec_body"]), State(row["state"])
    asked = row["cancel_asked"]
    return RunFacts(
        **{name: row[name] for name in _AS_THEY_ARE},
        state=state,
        max_retries=spec.max_retries,
        at_most_once=spec.is_at_most_once,
        path=spec.limit_path,
        job=_job_stand(row),
        stops_by=None if asked is None else asked + STOPPED_WITHIN,
        takes=None if row["takes"] is None else timedelta(seconds=max(row["takes"], 0.0)),
        **await _surroundings(connection, tenant, row) if state < State.RUNNING else {},
    )


def _job_stand(row: Row) -> JobStand | None:
    if row["job"] is None:
        return None
    return JobStand(row["job"], row["job_name"], Gate(row["job_gate"]), row["job_paused_at"])


class Schedulers(NamedTuple):
    schedulers: int
    scheduler_seen: datetime | None
    behind: float


async def _schedulers(connection: Connection) -> Schedulers:
    return Schedulers(*await connection.fetchrow(SQL["explain_schedulers"], LEASE))


async def _surroundings(connection: Connection, tenant: int, row: Row) -> dict[str, Any]:
    """What a run that waits has around it: parents, lines, workers, schedulers."""
    found: dict[str, Any] = {}
    if row["waits_for_parents"]:
        rows = await connection.fetch(SQL["why_blocked"], row["run"], MOST_NAMED)
        found["parents"] = tuple(Parent(each["run"], each["dead"], each["name"]) for each in rows)
    if row["state"] != State.READY and row["lane"] is not None:
        overlap = 1 if row["overlap"] and row["origin"] == 0 else None
        found["lines"] = await _lines(connection, tenant, row, row["run"], overlap)
    found["fleet"] = await _fleet(connection, row["lane"])
    around = await _schedulers(connection)
    return {**found, "schedulers": around.schedulers, "scheduler_seen": around.scheduler_seen}


async def _lines(
    connection: Connection, tenant: int, row: Row, run: int | None, overlap: int | None, job: int | None = None
) -> tuple[Line, ...]:
    rows = await connection.fetch(
        SQL["explain_lines"],
        tenant,
        run,
        job or row.get("job"),
        row["lane"],
        overlap,
        row["concurrency"],
        row["limit_key"],
        _UNCOUNTED,
    )
    return tuple(Line(**each) for each in rows)


async def _fleet(connection: Connection, lane: int | None) -> Fleet | None:
    row = None if lane is None else await connection.fetchrow(SQL["explain_lane"], lane)
    return None if row is None else Fleet(**{**row, "labels": parted(row["labels"])})


async def facts_of_job(connection: Connection, tenant: int, row: JobRow, recurrence: Recurrence | None) -> JobFacts:
    """Of a job that is not a one-time job; `recurrence` is the one of its schedule."""
    more = await connection.fetchrow(SQL["explain_job"], tenant, row.id)
    fleet = await _fleet(connection, more["lane"])
    if fleet is None:
        raise ValueError(f"job {row.id} has no lane")
    around = await _schedulers(connection)
    calendar = row.timing.get("calendar")
    return JobFacts(
        now=more["now"],
        job=row.id,
        name=row.name,
        gate=Gate(row.gate),
        fleet=fleet,
        paused_at=row.paused_at,
        recurrence=recurrence,
        next_at=row.next_at,
        after=row.after,
        until=row.until,
        not_before=_instant(row.timing.get("scheduleAt")) if "every" not in row.timing else None,
        ends_at=_instant(row.timing.get("endsAt")),
        max_runs=row.timing.get("maxRuns"),
        runs_left=more["runs_left"],
        catch_up=_catch_up(more),
        phase=timedelta(milliseconds=more["phase"] or 0),
        calendar=calendar["name"] if isinstance(calendar, dict) else calendar,
        overlap=Overlap.SKIP if row.head is not None else Overlap.stored(row.overlap, exclusive=row.exclusive),
        previous=None
        if more["previous"] is None
        else Previous(more["previous"], more["scheduled_at"], more["started_at"]),
        parents=tuple(map(Other, row.parents, more["parent_names"])),
        held_roots=tuple(map(Other, more["held"], more["held_names"])),
        lines=await _lines(connection, tenant, more, None, None, row.id),
        path=row.spec.limit_path,
        schedulers=around.schedulers,
        scheduler_seen=around.scheduler_seen,
        clock_behind=timedelta(seconds=around.behind),
    )


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _catch_up(row: Row) -> CatchUp:
    if row["catch_up"] is None:
        return USUAL
    return CatchUp(Mode(row["catch_up"]), timedelta(seconds=row["catch_up_window"]))


class Held(NamedTuple):
    """So many runs of a job that the same gate holds up; `code` is none for those that run."""

    code: Code | None
    runs: int
    oldest: int


async def runs_of_job(connection: Connection, tenant: int, job: int) -> list[Held]:
    """What the runs of a job wait for that have not ended; the first thousand of them are looked at."""
    rows = await connection.fetch(SQL["explain_runs_of_job"], tenant, job, MOST_SUMMED_UP)
    return [Held(None if row["code"] == "running" else Code(row["code"]), row["runs"], row["oldest"]) for row in rows]
