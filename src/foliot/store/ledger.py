"""The records from which the fate of every instant can be told."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from foliot.domain.misfire import CatchUp, Mode
from foliot.domain.occurrence import Firing, OneTime, Stretch, Trace
from foliot.domain.states import State
from foliot.store.database import Connection, Database
from foliot.store.statements import SQL


async def stretches(connection: Connection, job: int, since: datetime, until: datetime) -> list[tuple[str, Stretch]]:
    """Who owned the job's instants in (since, until], the latest first, each with its schedule's key."""
    rows = await connection.fetch(SQL["stretches"], job, since, until)
    return [
        (
            row["key"],
            Stretch(
                schedule=row["schedule"],
                after=row["after"],
                until=row["until"],
                cursor=row["cursor"],
                paused=row["paused"],
                catch_up=CatchUp(Mode(row["catch_up"]), timedelta(seconds=row["catch_up_window"])),
            ),
        )
        for row in rows
    ]


class Record(NamedTuple):
    """What a schedule's record says of the instants from `at` to `through`."""

    at: datetime
    through: datetime
    firing: Firing
    closed_at: datetime


async def firings_of(connection: Connection, schedule: int, first: datetime, last: datetime) -> list[Record]:
    rows = await connection.fetch(SQL["firings_of"], schedule, first, last)
    return [
        Record(
            row["at"],
            row["through"],
            Firing(opened_at=row["opened_at"], is_open=row["is_open"], missed=row["missed"], late=row["late"]),
            row["closed_at"],
        )
        for row in rows
    ]


async def traces(
    connection: Connection, job: int, instants: Sequence[datetime], spans: Sequence[tuple[int, int]]
) -> dict[datetime, Trace]:
    """The runs of these instants: live ones, and those in history with ids in one of the spans."""
    rows = await connection.fetch(SQL["traces"], job, instants, [low for low, _ in spans], [high for _, high in spans])
    return {
        row["scheduled_at"]: Trace(run=row["run"], due_at=row["due_at"], state=State(row["state"]), note=row["note"])
        for row in reversed(rows)
    }


async def one_time_instants(connection: Connection, job: int, since: datetime, until: datetime) -> list[OneTime]:
    """The instants in (since, until] that the job's one-time definitions have had, the latest first."""
    rows = await connection.fetch(SQL["one_time_instants"], job, since, until)
    return [
        OneTime(
            at=row["at"],
            is_present=row["is_present"],
            paused=row["paused"],
            has_begun=bool(row["attempt"]),
            trace=None
            if row["run"] is None
            else Trace(run=row["run"], due_at=row["due_at"], state=State(row["state"]), note=row["note"]),
        )
        for row in rows
    ]


async def filled_back(connection: Connection, job: int, instants: Sequence[datetime]) -> dict[datetime, int]:
    """The last run that a back-fill made for each of these instants, if any did."""
    return {row["at"]: row["run"] for row in await connection.fetch(SQL["filled_back"], job, instants)}


class GapRow(NamedTuple):
    schedule: int
    key: str
    at: datetime
    through: datetime
    opened_at: datetime
    jobs: int
    job: int
    name: str


async def gaps(
    database: Database, tenant: int, since: datetime, until: datetime, below: tuple[datetime, int], limit: int
) -> list[GapRow]:
    """Missed and late instants in [since, until), newest first, those before `below` (instant and schedule)."""
    return [GapRow(*row) for row in await database.fetch("gaps", tenant, since, until, *below, limit)]
