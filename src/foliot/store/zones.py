"""The edition of the time zone database that schedules are reckoned with."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from foliot.store.database import Connection, Database
from foliot.store.schedules import lock_to_fire
from foliot.store.statements import SQL


class Edition(NamedTuple):
    version: str
    since: datetime
    moved: int
    """Schedules whose next fire it put elsewhere."""


async def latest(database: Database) -> Edition | None:
    """The newest edition that some scheduler has gone over to."""
    row = await database.fetchrow("latest_zone_data")
    return None if row is None else Edition(*row)


async def record(database: Database, version: str, moved: int) -> None:
    await database.fetch("record_zone_data", version, moved)


class WallClockSchedule(NamedTuple):
    id: int
    key: str
    cursor: datetime
    next_at: datetime


async def wall_clock_schedules(database: Database, after: int, limit: int) -> list[WallClockSchedule]:
    """The next ones by id that may depend on a zone and are not due."""
    return [WallClockSchedule(*row) for row in await database.fetch("wall_clock_schedules", after, limit)]


async def put_elsewhere(
    connection: Connection, moves: Sequence[tuple[WallClockSchedule, datetime | None]], version: str
) -> set[int]:
    """Give schedules another next fire; returns those that were free, not due, and still where we saw them.

    Nobody is waited for: who holds one may hold it for long, and the others would not fire meanwhile.
    """
    locked = await lock_to_fire(connection, [schedule.id for schedule, _ in moves], wait=False)
    mine = [(schedule, next_at) for schedule, next_at in moves if schedule.id in locked]
    rows = await connection.fetch(
        SQL["put_schedules_elsewhere"],
        [schedule.id for schedule, _ in mine],
        [schedule.cursor for schedule, _ in mine],
        [schedule.next_at for schedule, _ in mine],
        [next_at for _, next_at in mine],
        version,
    )
    return {row["id"] for row in rows}
