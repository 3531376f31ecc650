"""Schedulers and the shards they look after: one row per process, one per shard."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from foliot.store.database import Database, Line

LEASE: Final = timedelta(seconds=5)
"""A scheduler that was not seen for so long is gone, by the database's clock."""
BEAT: Final = timedelta(seconds=1)


async def beat(line: Line, scheduler: int, name: str) -> datetime:
    """Say that this scheduler lives; what time it is, by the database's clock."""
    return await line.fetchval("beat_scheduler", scheduler, name)  # type: ignore[no-any-return]


async def bury(line: Line, lease: timedelta = LEASE) -> list[str]:
    """Remove the schedulers whose lease has ended; their names."""
    return [row["name"] for row in await line.fetch("bury_schedulers", lease)]


async def live(line: Line) -> frozenset[int]:
    return frozenset(row["id"] for row in await line.fetch("live_schedulers"))


class Moved(NamedTuple):
    """Shards that changed hands: taken by us, and let go by us or by the dead."""

    taken: frozenset[int]
    freed: frozenset[int]


async def hold(line: Line, scheduler: int, share: Collection[int]) -> Moved:
    """Take what of `share` is free, let go of everything else."""
    rows = await line.fetch("hold_shards", scheduler, sorted(share))
    taken = frozenset(row["shard"] for row in rows if row["mine"])
    return Moved(taken, frozenset(row["shard"] for row in rows) - taken)


async def held(line: Line, scheduler: int) -> frozenset[int]:
    """The shards that are this scheduler's."""
    return frozenset(row["shard"] for row in await line.fetch("held_shards", scheduler))


async def leave(line: Line, scheduler: int) -> None:
    """The scheduler is done: others take its shards with their next beat."""
    await line.fetch("leave_schedulers", scheduler)


class SchedulerRow(NamedTuple):
    id: int
    name: str
    started_at: datetime
    seen_at: datetime
    shards: int
    epoch: int
    """The highest of its shards."""


async def schedulers(database: Database) -> list[SchedulerRow]:
    return [SchedulerRow(*row) for row in await database.fetch("list_schedulers")]


async def clock_behind(database: Database) -> timedelta:
    """How far the database's clock is behind what it has told before: it was set back by that much."""
    return timedelta(seconds=await database.fetchval("clock_behind") or 0.0)
