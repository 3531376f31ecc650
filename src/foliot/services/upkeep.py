"""Keeping house: tomorrow's leaves of history, yesterday's leftovers."""

from datetime import timedelta

from foliot.kit import telemetry
from foliot.store import letters, upkeep
from foliot.store.database import Database


class Housekeeper:
    def __init__(self, database: Database, keep_dead_letters: timedelta = timedelta(days=90)) -> None:
        self._line = database.line(hot=False)
        self._keep_dead_letters = keep_dead_letters

    async def run_once(self) -> int:
        """Do all of it once. Returns 0: there is never a reason to do it again at once."""
        await upkeep.make_history_leaves(self._line)
        await upkeep.tidy(self._line)
        telemetry.LETTERS_DISCARDED.inc(await letters.expire(self._line, self._keep_dead_letters))
        return 0

    async def pause(self) -> float:
        return 30.0

    async def close(self) -> None:
        await self._line.close()
