"""Keeping house: tomorrow's leaves of history, yesterday's leftovers."""

from foliot.store import upkeep
from foliot.store.database import Database


class Housekeeper:
    def __init__(self, database: Database) -> None:
        self._line = database.line(hot=False)

    async def run_once(self) -> int:
        """Do all of it once. Returns 0: there is never a reason to do it again at once."""
        await upkeep.make_history_leaves(self._line)
        await upkeep.tidy(self._line)
        return 0

    async def pause(self) -> float:
        return 30.0

    async def close(self) -> None:
        await self._line.close()
