"""What the machine did meanwhile: a bare commit now and then, how late we were woken, what the server did by itself."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

from foliot.bench.watch import stolen
from foliot.kit.tasks import background
from foliot.store.database import Connection, connect

EVERY: Final = 0.04
"""Seconds between two commits: often enough to meet a disk that stands still, and too seldom to be a load."""
LOOK_EVERY: Final = 0.5
NEAR: Final = 0.02
"""Seconds before and after in which something counts as having happened at the same time."""
_COMMIT: Final = "SELECT pg_logical_emit_message(true, 'pulse', '')"
_AT_WORK: Final = """
SELECT CASE backend_type WHEN 'checkpointer' THEN 'checkpoint' ELSE query END
  FROM pg_stat_activity
 WHERE (backend_type = 'checkpointer' AND wait_event IS DISTINCT FROM 'CheckpointerMain')
    OR backend_type = 'autovacuum worker'
"""


class Beat(NamedTuple):
    """One commit: when it was begun, how long it took, and how much too late we had been woken for it, in seconds."""

    at: float
    took: float
    late: float


class Look(NamedTuple):
    """Which share of the processors others on the host took between two instants, and who was at work in the server."""

    since: float
    at: float
    steal: float
    at_work: tuple[str, ...]


class Pulse:
    def __init__(self, commits: Connection, looks: Connection) -> None:
        self._commits = commits
        self._looks = looks
        self.beats: list[Beat] = []
        self.looks: list[Look] = []

    @classmethod
    @asynccontextmanager
    async def taken(cls, dsn: str) -> AsyncIterator["Pulse"]:
        """While the block lasts."""
        pulse = cls(await connect(dsn), await connect(dsn))
        try:
            async with background(pulse._beat(), pulse._look()):
                yield pulse
        finally:
            await pulse._commits.close()
            await pulse._looks.close()

    async def _beat(self) -> None:
        while True:
            asked = time.time()
            await asyncio.sleep(EVERY)
            at = time.time()
            await self._commits.fetch(_COMMIT)
            self.beats.append(Beat(at, time.time() - at, max(0.0, at - asked - EVERY)))

    async def _look(self) -> None:
        since, before = time.time(), stolen()
        while True:
            await asyncio.sleep(LOOK_EVERY)
            at_work = tuple(row[0] for row in await self._looks.fetch(_AT_WORK))
            at, now = time.time(), stolen()
            self.looks.append(Look(since, at, (now - before) / (at - since), at_work))
            since, before = at, now

    def around(self, begin: float, end: float) -> dict[str, Any]:
        """What was seen between these two instants: times in ms, processors taken away in percent of one."""
        beats = [
            beat for beat in self.beats if beat.at - beat.late <= end + NEAR and beat.at + beat.took >= begin - NEAR
        ]
        looks = [look for look in self.looks if look.since <= end and look.at >= begin]
        return {
            "commit": round(1_000 * max((beat.took for beat in beats), default=0.0), 1),
            "wake": round(1_000 * max((beat.late for beat in beats), default=0.0), 1),
            "steal": round(100 * max((look.steal for look in looks), default=0.0)),
            "server": sorted({work for look in looks for work in look.at_work}),
        }
