"""The gauges that people watch: read from the database when somebody looks, so every API process tells the same."""

import time
from collections.abc import Callable
from typing import Final

from foliot.kit import telemetry
from foliot.store import letters, roster, upkeep
from foliot.store.database import Database

FRESH_FOR: Final = 5.0
"""Seconds: several scrapers cost no more than one."""
TOLERATED: Final = 5.0
"""Seconds that the database's clock may be set back without an alarm."""


class Gauges:
    def __init__(self, database: Database, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._monotonic = monotonic
        self._measured = float("-inf")

    async def measure(self) -> None:
        """Bring the gauges up to date."""
        if self._monotonic() - self._measured < FRESH_FOR:
            return
        gauges = await upkeep.gauges(self._database)
        telemetry.OVERDUE_SCHEDULES.set(gauges.overdue_schedules)
        telemetry.OVERDUE_FIRINGS.set(gauges.overdue_firings)
        telemetry.OVERDUE_TIMERS.set(gauges.overdue_timers)
        telemetry.SCHEDULERS.set(gauges.schedulers)
        telemetry.SHARDS_UNHELD.set(gauges.unheld_shards)
        telemetry.CLOCK_BEHIND.set(gauges.clock_behind if gauges.clock_behind > TOLERATED else 0)
        fleet = await roster.gauges(self._database)
        telemetry.WORKERS.labels("live").set(fleet.live)
        telemetry.WORKERS.labels("draining").set(fleet.draining)
        telemetry.QUEUES_PAUSED.set(fleet.paused_queues)
        telemetry.LANES_WITHOUT_WORKER.set(fleet.unserved_lanes)
        for queue, runs in (await upkeep.ready_per_queue(self._database)).items():
            telemetry.READY_RUNS.labels(queue).set(runs)
        dead = await letters.per_queue(self._database)
        telemetry.DEAD_LETTERS.set(sum(dead.values()))
        for queue, count in dead.items():
            telemetry.QUEUE_DEAD_LETTERS.labels(queue).set(count)
        self._measured = self._monotonic()
