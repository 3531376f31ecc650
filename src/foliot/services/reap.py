"""Taking work back from dead workers: by lease only, and only while the reaper itself can be trusted to see."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final

import structlog

from foliot.kit import telemetry
from foliot.store.database import Database
from foliot.store.fleet import ALL_CLAIMS, LEASE, bury, reap, standing_claims, uptime

log = structlog.get_logger("reaper")

PAUSE: Final = timedelta(seconds=1)
"""Between two looks: well below the third of the lease that is taken for an absence."""
WHOLE: Final = 5.0
"""Seconds between two looks at all claims; a death brings the next one forward. A claim may get its number, be held
up, and be committed when its worker has been dead for long: below what the looks in between begin with, it waits for
this one."""


class Reaper:
    """Declares workers dead after a lease of silence, but never for a silence that was the database's or its own.

    It acts only after one full lease of uninterrupted contact and of server uptime, so that an outage, a restart or
    a suspended machine does not massacre the fleet: the workers get that time to be heard again.
    """

    def __init__(
        self,
        database: Database,
        lease: timedelta = LEASE,
        monotonic: Callable[[], float] = time.monotonic,
        pause: timedelta = PAUSE,
    ) -> None:
        self._line = database.line()
        self._lease = lease
        self._monotonic = monotonic
        self._pause = pause
        self._contact_since: float | None = None
        self._last_contact = 0.0
        self._last_uptime = timedelta()
        self._claims = ALL_CLAIMS
        self._whole = float("-inf")

    async def run_once(self) -> int:
        """Bury and reap once; how many claims were taken back."""
        try:
            return await self._bury_and_reap()
        except BaseException:
            self._contact_since = None
            self._whole = float("-inf")
            raise

    async def _bury_and_reap(self) -> int:
        up = await uptime(self._line)
        # Less than nothing means that the clock was set back since the server's start, and tells nothing else.
        just_started = timedelta() <= up < self._lease
        if self._may_judge(up) and not just_started and (dead := await bury(self._line, self._lease)):
            log.warning("workers fell silent", workers=len(dead))
            self._whole = float("-inf")
        if (now := self._monotonic()) - self._whole >= WHOLE:
            self._claims = await standing_claims(self._line)
            self._whole = now
        reaped = await reap(self._line, self._claims)
        if reaped.claims:
            log.info("took work back", runs=reaped.returned, dead_letters=reaped.dead)
        if reaped.unknown:
            log.warning("at-most-once runs were lost with their worker: see state=unknown", runs=reaped.unknown)
        telemetry.RUNS_REAPED.inc(reaped.returned)
        telemetry.RUNS_UNKNOWN.inc(reaped.unknown)
        return reaped.claims

    async def pause(self) -> float:
        return self._pause.total_seconds()

    async def close(self) -> None:
        await self._line.close()

    def _may_judge(self, up: timedelta) -> bool:
        now = self._monotonic()
        # A pause of a third of the lease between two looks means that we were not running: start counting anew. The
        # server's clock is asked as well: ours stands still while the machine sleeps, and leases end by the server's,
        # which may have been set forward.
        ours, theirs = timedelta(seconds=now - self._last_contact), up - self._last_uptime
        if self._contact_since is None or max(ours, theirs) > self._lease / 3 or theirs < timedelta():
            self._contact_since = now
        self._last_contact, self._last_uptime = now, up
        return now - self._contact_since >= self._lease.total_seconds()
