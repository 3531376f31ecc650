"""Reading what the next instants will need, so that it is in memory when they come."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from foliot.store.database import Database
from foliot.store.schedules import read_ahead

LEAD: Final = timedelta(seconds=5)
"""How long before its instant a schedule's jobs are read. The jobs of one schedule may lie far apart: from a disk, two
thousand of them took half a second, and with five million in place each firing found most of its own there."""
EVERY: Final = 0.5


class ReadAhead:
    """Changes nothing and decides nothing: without it, firing reads for itself."""

    def __init__(self, database: Database, shards: Callable[[], frozenset[int] | None] = lambda: None) -> None:
        """`shards`: those to look after, all if none."""
        self._line = database.line()
        self._shards = shards
        self._through: datetime | None = None

    async def run_once(self) -> int:
        """Read for the instants that have come into sight; how many jobs there were."""
        if (shards := self._shards()) is not None and not shards:
            return 0
        ahead = await read_ahead(self._line, self._through, LEAD, shards)
        self._through = ahead.through or self._through
        return ahead.members

    async def pause(self) -> float:
        return EVERY

    async def close(self) -> None:
        await self._line.close()
