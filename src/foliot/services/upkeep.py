"""Keeping house: tomorrow's leaves of history, yesterday's leftovers."""

from datetime import timedelta

from foliot.kit import telemetry
from foliot.store import letters, upkeep
from foliot.store.database import Database
from foliot.store.recovery import is_contended


class Housekeeper:
    def __init__(self, database: Database, keep_dead_letters: timedelta = timedelta(days=90)) -> None:
        # Whoever waits for a lock of a whole table holds up all who come after: briefly, then.
        self._line = database.line(hot=False, lock_timeout="100ms")
        self._put_off = False
        self._keep_dead_letters = keep_dead_letters

    async def run_once(self) -> int:
        """Do all of it once. Returns 0: there is never a reason to do it again at once."""
        await upkeep.make_history_leaves(self._line)
        await upkeep.tidy(self._line)
        telemetry.LETTERS_DISCARDED.inc(await letters.expire(self._line, self._keep_dead_letters))
        await self._keep_keys()
        return 0

    async def _keep_keys(self) -> None:
        """A caller that holds its transaction open puts it off; the open leaf serves for longer than a day as well."""
        self._put_off = False
        try:
            await upkeep.keep_keys(self._line)
        except Exception as error:
            if not is_contended(error):
                raise
            self._put_off = True

    async def pause(self) -> float:
        return 2.0 if self._put_off else 30.0

    async def close(self) -> None:
        await self._line.close()
