"""When too much waits already, no more is taken in: of one tenant, or of all of them together."""

import asyncio
from typing import Final

import structlog

from foliot.domain.errors import Swamped, TooMany
from foliot.kit import telemetry
from foliot.store import terms
from foliot.store.database import Database

log = structlog.get_logger("api")

LOOKS_EVERY: Final = 1.0
"""Seconds between two looks at what waits."""
AFTER: Final = 5.0
"""Seconds after which it is worth asking again."""


class Backlog:
    """Goes by what was found a second ago, so that nobody waits for a count. 0 for no limit.

    What Foliot itself makes is not asked: fire times, back-fills, replays and retries are promises that it has given.
    """

    def __init__(self, database: Database, *, system: int = 0, tenant: int = 0) -> None:
        self._database = database
        self._system = system
        self._tenant = tenant
        self._waiting: dict[int, int] = {}
        self._total = 0

    def check(self, tenant: int, own: int | None) -> None:
        """TooMany or Swamped if what waits has reached the tenant's limit, its own or the usual one, or that of all."""
        if 0 < self._system <= self._total:
            telemetry.CALLS_REFUSED.labels("system backlog").inc()
            message = f"{self._total:,} runs wait in this deployment, which takes no more from {self._system:,} on"
            hint = (
                "nothing was written: repeat the call; if it lasts, the operator adds workers or raises FOLIOT_BACKLOG"
            )
            raise Swamped(message, hint, after=AFTER)
        limit, waiting = own or self._tenant, self._waiting.get(tenant, 0)
        if 0 < limit <= waiting:
            telemetry.CALLS_REFUSED.labels("tenant backlog").inc()
            message = f"about {waiting:,} runs of this tenant wait or run, and no more are taken from {limit:,} on"
            hint = "nothing was written: repeat the call later; more workers help, or an operator who raises it"
            raise TooMany(message, hint, after=AFTER)

    def of(self, tenant: int) -> int:
        """Of its runs, those that were due and had not ended at the last look."""
        return self._waiting.get(tenant, 0)

    async def look(self) -> None:
        self._waiting = await terms.sample_backlog(self._database)
        self._total = sum(self._waiting.values())
        telemetry.BACKLOG.set(self._total)

    async def run(self) -> None:
        """Look every second, until cancelled. What is not known does not hold anybody up."""
        while True:
            try:
                await self.look()
            except Exception as error:  # noqa: BLE001 - the next look is a second away
                self._waiting, self._total = {}, 0
                log.warning("what waits could not be counted", error=str(error))
            await asyncio.sleep(LOOKS_EVERY)
