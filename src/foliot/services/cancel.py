"""Cancelling single runs, whatever they are doing."""

from collections.abc import Callable
from typing import Final

from foliot.domain.ids import encode
from foliot.kit.signals import READY
from foliot.store.audit import note
from foliot.store.database import Database, Line
from foliot.store.outbox import send_out
from foliot.store.specs import SpecBook
from foliot.store.stopping import is_in_outbox, still_theirs, stop

_WHY: Final = "cancelled on request"


class Canceller:
    def __init__(self, database: Database, specs: SpecBook, hint: Callable[[str], None]) -> None:
        self._database = database
        self._specs = specs
        self._hint = hint

    async def cancel(self, tenant: int, run: int) -> None:
        """End a run that waits; ask for the end of one that a worker holds; leave alone what has ended.

        Another tenant's is left alone as well. May be repeated: the first call counts. Who won, this call, a success or
        another end, is seen from the run.
        """
        async with self._database.connection() as connection:
            if await is_in_outbox(connection, tenant, run):
                await send_out(Line.over(connection), self._specs)
            async with connection.transaction():
                stopped = await stop(connection, await still_theirs(connection, tenant, [run]), _WHY)
                if stopped.ended or stopped.asked:
                    became = "cancelled" if stopped.ended else "asked to stop"
                    await note(connection, encode("run", run), None, {"became": became})
        for channel in stopped.channels:
            self._hint(channel)
        if stopped.lanes:
            self._hint(READY)
