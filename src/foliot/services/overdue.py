"""Attempts that go on outside and whose time is up: they end as timed out, and are tried again like any other."""

from collections import defaultdict
from datetime import timedelta
from typing import Final

import structlog

from foliot.domain.errorclass import TIMEOUT
from foliot.domain.outcome import Ending, Failure, Outcome
from foliot.domain.verdict import outcome_of
from foliot.kit.chance import Chance, fair
from foliot.store import outside
from foliot.store.database import Database
from foliot.store.dispatch import Settlement, conclude_outside
from foliot.store.outside import Going

log = structlog.get_logger("scheduler")

AT_ONCE: Final = 500
"""Attempts that one round ends."""
PAUSE: Final = timedelta(seconds=1)


class Overdue:
    """Any number of these may run: whoever is first to end an attempt has ended it."""

    def __init__(self, database: Database, chance: Chance | None = None) -> None:
        self._line = database.line(lock_timeout="300ms")
        self._chance = chance or fair()

    async def run_once(self) -> int:
        """End some; how many."""
        ends: defaultdict[int, list[Settlement]] = defaultdict(list)
        for going in await outside.overdue(self._line, AT_ONCE):
            ends[going.worker].append(going.settlement(self._judge(going)))
        ended = 0
        for worker, batch in ends.items():
            ended += await conclude_outside(self._line, worker, batch)
        if ended:
            log.warning("handlers that went on outside did not say in time how they ended", runs=ended)
        return ended

    async def pause(self) -> float:
        return PAUSE.total_seconds()

    async def close(self) -> None:
        await self._line.close()

    def _judge(self, going: Going) -> Outcome:
        if going.is_unwanted:
            return Outcome.cancelled()
        error = f"timed out after {going.spec.timeout.total_seconds():g} s: its handler did not say how it ended"
        late = Failure(error, ending=Ending.TIMED_OUT, classes=(TIMEOUT,))
        return outcome_of(late, going.spec, going.run.failures, self._chance())
