"""Keeping house: tomorrow's leaves of history, yesterday's leftovers, and the gauges that people watch."""

from foliot.kit import telemetry
from foliot.store import upkeep
from foliot.store.database import Database


class Housekeeper:
    def __init__(self, database: Database) -> None:
        self._line = database.line(hot=False)

    async def run_once(self) -> int:
        """Do all of it once. Returns 0: there is never a reason to do it again at once."""
        await upkeep.make_history_leaves(self._line)
        await upkeep.tidy(self._line)
        await self.measure()
        return 0

    async def measure(self) -> None:
        gauges = await upkeep.gauges(self._line)
        telemetry.DEAD_LETTERS.set(gauges.dead_letters)
        telemetry.OVERDUE_SCHEDULES.set(gauges.overdue_schedules)
        for queue, runs in (await upkeep.ready_per_queue(self._line)).items():
            telemetry.READY_RUNS.labels(queue).set(runs)

    async def pause(self) -> float:
        return 30.0

    async def close(self) -> None:
        await self._line.close()
