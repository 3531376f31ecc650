"""What has to be done now and then so that tables stay small and ready for tomorrow."""

from datetime import timedelta
from typing import Final, NamedTuple

from foliot.store.database import Database, Line
from foliot.store.members import LEASE

KEY_LIFE: Final = timedelta(hours=24)
"""How long a key is remembered at least; at most until the end of the day after."""

_REMOVALS: Final = (
    "remove_dead_workers",
    "retire_ended_subscriptions",
    "remove_old_firings",
    "remove_past_subscriptions",
    "remove_old_operations",
    "remove_by_hand",
    "remove_late_results",
    "remove_old_reports",
    "remove_old_graphs",
    "remove_old_dependencies",
    "remove_old_events",
)


async def make_history_leaves(line: Line) -> int:
    """Make the leaves of the days to come; how many were missing."""
    return await line.fetchval("make_leaves")  # type: ignore[no-any-return]


async def tidy(line: Line) -> None:
    """Remove what nobody can ask for any more."""
    for name in _REMOVALS:
        await line.fetch(name)


async def keep_keys(line: Line) -> None:
    """Open a new leaf for idempotency keys every day, and drop those whose time is over.

    Waits for calls with a key that are in mid-transaction, for as long as the line waits for locks.
    """
    await line.fetch("turn_key_leaf")
    await line.fetch("drop_key_leaves", KEY_LIFE)


class Gauges(NamedTuple):
    overdue_schedules: int
    overdue_firings: int
    overdue_timers: int
    schedulers: int
    unheld_shards: int
    clock_behind: float
    """Seconds."""


async def gauges(database: Database) -> Gauges:
    (row,) = await database.fetch("gauges", LEASE)
    return Gauges(*row)


async def ready_per_queue(database: Database) -> dict[str, int]:
    return {row["queue"]: row["runs"] for row in await database.fetch("ready_per_queue")}
