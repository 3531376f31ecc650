"""What has to be done now and then so that tables stay small and ready for tomorrow."""

from datetime import timedelta
from typing import Final, NamedTuple

from foliot.store.database import Database, Line
from foliot.store.members import LEASE

KEY_LIFE: Final = timedelta(hours=24)

_REMOVALS: Final = (
    "remove_dead_workers",
    "retire_ended_subscriptions",
    "remove_old_firings",
    "remove_past_subscriptions",
    "remove_old_operations",
)


async def make_history_leaves(line: Line) -> int:
    """Make the leaves of the days to come; how many were missing."""
    return await line.fetchval("make_leaves")  # type: ignore[no-any-return]


async def tidy(line: Line) -> None:
    """Remove what nobody can ask for any more."""
    await line.fetch("expire_keys", KEY_LIFE)
    for name in _REMOVALS:
        await line.fetch(name)


class Gauges(NamedTuple):
    overdue_schedules: int
    schedulers: int
    unheld_shards: int
    clock_behind: float
    """Seconds."""


async def gauges(database: Database) -> Gauges:
    (row,) = await database.fetch("gauges", LEASE)
    return Gauges(*row)


async def ready_per_queue(database: Database) -> dict[str, int]:
    return {row["queue"]: row["runs"] for row in await database.fetch("ready_per_queue")}
