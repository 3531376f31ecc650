"""What was: the definitions that a job has had, and what happened to a run."""

from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from foliot.domain.passage import Passage
from foliot.domain.spec import Spec
from foliot.store.database import Connection, Database
from foliot.store.reading import JobRow
from foliot.store.statements import SQL

NEWEST = 2**31 - 1


class VersionRow(NamedTuple):
    """A definition, as the job that it made, and from when to when it was the job's."""

    job: JobRow
    since: datetime
    until: datetime | None


async def list_versions(database: Database, tenant: int, job: int, *, below: int, limit: int) -> list[VersionRow]:
    """Newest first, versions below `below`."""
    return [_version(job, dict(row)) for row in await database.fetch("list_versions", tenant, job, below, limit)]


def _version(job: int, row: dict[str, Any]) -> VersionRow:
    since, until, spec = row.pop("since"), row.pop("until"), Spec.parse(row.pop("spec_body"))
    timing, labels = (msgspec.json.decode(row.pop(name)) for name in ("timing", "labels"))
    unknown = dict.fromkeys(_OF_NOW)
    fields = {**unknown, **row, "id": job, "gate": 0, "status": "pending", "created_at": since, "updated_at": since}
    return VersionRow(JobRow(spec=spec, timing=timing, labels=labels, **fields), since, until)


_OF_NOW = (
    "schedule", "run", "schedule_key", "next_at", "after", "until", "last_run", "last_state", "last_scheduled_at",
    "last_started_at", "last_finished_at", "last_error", "paused_at",
)  # fmt: skip
"""What a job has only as it stands, and a definition has not."""


async def passages_of(database: Database, tenant: int, run: int) -> list[Passage]:
    return [Passage(*row) for row in await database.fetch("passages_of_run", tenant, run)]


class Lingering(NamedTuple):
    """What keeps a cancelled job from being erased."""

    goes_on: bool
    children: list[int]


async def lingers(connection: Connection, job: int) -> Lingering:
    row = await connection.fetchrow(SQL["lingers"], job)
    return Lingering(*row)


async def erase_history(connection: Connection, tenant: int, job: int, most: int) -> bool:
    """Whether there was any."""
    return bool(await connection.execute(SQL["erase_history"], tenant, job, most) != "DELETE 0")


async def erase_job(connection: Connection, tenant: int, job: int) -> None:
    """The job, and all that is known of it but its history."""
    await connection.execute(SQL["erase_job"], tenant, job)
