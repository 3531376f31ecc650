"""Taking work back from dead workers: by lease only, and only while the reaper itself can be trusted to see."""

import time
from collections.abc import Callable
from datetime import timedelta

import structlog

from foliot.kit import telemetry
from foliot.store.database import Database
from foliot.store.fleet import LEASE, bury, reap, uptime

log = structlog.get_logger("reaper")


class Reaper:
    """Declares workers dead after a lease of silence, but never for a silence that was the database's or its own.

    It acts only after one full lease of uninterrupted contact and of server uptime, so that an outage, a restart or
    a suspended machine does not massacre the fleet: the workers get that time to be heard again.
    """

    def __init__(
        self, database: Database, lease: timedelta = LEASE, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._line = database.line(hot=False)
        self._lease = lease
        self._monotonic = monotonic
        self._contact_since: float | None = None
        self._last_contact = 0.0

    async def run_once(self) -> int:
        """Bury and reap once; how many claims were taken back."""
        try:
            up = await uptime(self._line)
        except BaseException:
            self._contact_since = None
            raise
        if self._may_judge() and up >= self._lease and (dead := await bury(self._line, self._lease)):
            log.warning("workers fell silent", workers=len(dead))
        reaped = await reap(self._line)
        if reaped.claims:
            log.info("took work back", runs=reaped.returned, dead_letters=reaped.dead)
        telemetry.RUNS_REAPED.inc(reaped.returned)
        return reaped.claims

    async def pause(self) -> float:
        return 1.0

    async def close(self) -> None:
        await self._line.close()

    def _may_judge(self) -> bool:
        now = self._monotonic()
        # A pause of a third of the lease between two looks means that we were not running: start counting anew.
        if self._contact_since is None or now - self._last_contact > self._lease.total_seconds() / 3:
            self._contact_since = now
        self._last_contact = now
        return now - self._contact_since >= self._lease.total_seconds()
