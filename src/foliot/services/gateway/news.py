"""Remote workers that wait for work are told when a heartbeat would learn something: a drain, a pause, a lane."""

import asyncio
from contextlib import suppress

from foliot.services.gateway.claims import Claims
from foliot.store.database import Line
from foliot.store.gateway import news_of


class News:
    """A hint that is lost costs the time until the next heartbeat, like any other."""

    def __init__(self, line: Line, claims: Claims) -> None:
        self._line = line
        self._claims = claims
        self._heard = asyncio.Event()
        self._seen: object = None

    def hear(self) -> None:
        """Something changed about workers, queues, or runs that workers hold."""
        self._heard.set()

    async def run(self) -> None:
        """Pass on what is heard, until cancelled."""
        while True:
            await self._heard.wait()
            self._heard.clear()
            with suppress(Exception):
                await self._tell()

    async def _tell(self) -> None:
        """Those who are to leave or to stop something; all, if it is about queues or lanes.

        Which lanes they would ask for now is not known here.
        """
        waiting = self._claims.workers
        changed, *seen = await news_of(self._line, waiting)
        self._claims.tell(changed if seen == self._seen else waiting)
        self._seen = seen
