"""Looking for ready runs that every claimer has gone past, so that none of them would take them any more.

Claimers scan from a mark on, and what is ranked is there before the mark has risen above it (`domain/marks.py`). Unless
something took much longer than it should: a transaction that stood still before its COMMIT, a claim that was taken back
late, a V that was lost with a server.
"""

from collections import defaultdict
from typing import Final

import structlog

from foliot.kit import telemetry
from foliot.store.database import Database
from foliot.store.passed import Passed, heads, lift, passed_over

log = structlog.get_logger("gleaner")

PAGES: Final = 512
"""Pages in one look: at most 80,000 rows. Half as many took 0.5 ms when they were dead."""
BETWEEN: Final = 0.1
"""Seconds between two looks: ten minutes of 10,000 runs a second beside a snapshot are gone through in eight."""
GRACE: Final = 5.0
"""Seconds that claimers are given to take what stands below the head."""
REST: Final = 45.0
"""Seconds between two rounds."""
MOST: Final = 10_000
"""Runs with which a round ends early, to go on from there the next time; there are hardly ever any."""
CHUNK: Final = 500
"""Runs that are moved in one transaction."""


class Gleaner:
    """Goes round the table of ready runs page by page, and lets what was passed stand where claimers look."""

    def __init__(self, database: Database, pages: int = PAGES) -> None:
        self._line = database.line(lock_timeout="1s")
        self._pages = pages
        self._heads: dict[int, int] | None = None
        self._is_fresh = False
        self._place = 0
        self._found: list[Passed] = []

    async def run_once(self) -> int:
        """Learn how far claimers are; the next times, look at some pages; after the last, how many runs were moved."""
        if self._heads is None:
            self._heads, self._found, self._is_fresh = await heads(self._line), [], True
            return 0
        self._is_fresh = False
        look = await passed_over(self._line, self._heads, self._place, self._pages)
        self._found += look.passed
        is_full = len(self._found) >= MOST
        self._place = self._place + self._pages if self._place + self._pages < look.pages else 0
        if self._place and not is_full:
            return 0
        self._heads = None
        return await self._lift_all()

    async def _lift_all(self) -> int:
        """All together and from the last one on: so runs of one flow never change places."""
        lanes: defaultdict[int, list[Passed]] = defaultdict(list)
        for each in sorted(self._found):
            lanes[each.lane].append(each)
        moved = 0
        for lane, passed in lanes.items():
            for below in range(0, len(passed), CHUNK):
                last = len(passed) - below
                moved += await lift(self._line, lane, passed[max(0, last - CHUNK) : last], below)
        if moved:
            log.info("ready runs lay where no worker looked any more; brought back", runs=moved)
            telemetry.RUNS_GLEANED.inc(moved)
        return moved

    async def pause(self) -> float:
        if self._heads is None:
            return REST
        return GRACE if self._is_fresh else BETWEEN

    async def close(self) -> None:
        await self._line.close()
