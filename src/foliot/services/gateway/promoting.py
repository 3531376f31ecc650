"""For remote workers that wait in vain: what fell due and still waits is made ready, though no scheduler lives."""

import asyncio
from collections.abc import Callable

import structlog

from foliot.domain.idleness import Idleness
from foliot.domain.ids import encode
from foliot.kit import telemetry
from foliot.kit.clock import Steady
from foliot.store.database import Line
from foliot.store.left_lying import LeftLying

log = structlog.get_logger("gateway")


class Promoting:
    """As workers do that speak to the database themselves, once for all who wait here.

    Beside the claims and not among them: what waits for somebody's lock is not to hold them up.
    """

    def __init__(self, line: Line, wake: Callable[[], None], clock: Steady) -> None:
        """`line`: one that waits only shortly for locks; `wake`: called when there is something to claim."""
        self._left_lying = LeftLying(line)
        self._wake = wake
        self._clock = clock
        self._idleness = Idleness()
        self._wanted = asyncio.Event()

    def claimed(self, runs: int) -> None:
        """A claim brought so many runs."""
        now = self._clock()
        if runs:
            self._idleness.found(now)
        elif self._idleness.is_time(now):
            self._wanted.set()

    async def run(self) -> None:
        """Look whenever it is time to, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await self._promote()
            except Exception as error:  # noqa: BLE001 - looked for again soon
                log.warning("could not look for what fell due", error=str(error) or type(error).__name__)

    async def _promote(self) -> None:
        moved, refused = await self._left_lying.pick_up(self._clock())
        for run, reason in refused.items():
            log.error("a run that was handed in cannot be run", run=encode("run", run), reason=reason)
        telemetry.RUNS_PROMOTED.inc(moved)
        if moved:
            self._wake()
