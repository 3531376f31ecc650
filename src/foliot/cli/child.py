"""A process that is started again when it dies."""

import asyncio
import signal
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

import structlog

from foliot.kit.loop import any_of

log = structlog.get_logger("up")

GRACE: Final = 35.0
"""Seconds that a child gets to finish, longer than any takes by itself; then it is killed."""
SHORTEST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0
STEADY: Final = 10.0
"""Seconds after which a child has proved that it can live: its next death is its first again."""


class Child:
    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], *, descriptors: Sequence[int] = ()
    ) -> None:
        """`arguments` are those of `foliot`; the child inherits `descriptors`."""
        self._name = arguments[0]
        self._arguments = arguments
        self._environment = environment
        self._descriptors = descriptors

    async def keep(self, stop: asyncio.Event) -> None:
        """Run the child until `stop`; if it dies it is back in a tenth of a second, after repeated deaths later."""
        loop, pause = asyncio.get_running_loop(), SHORTEST_PAUSE
        while not stop.is_set():
            began = loop.time()
            process = await self._start()
            died, stopping = asyncio.ensure_future(process.wait()), asyncio.ensure_future(stop.wait())
            await asyncio.wait([died, stopping], return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if stop.is_set():
                await self._end(process, died)
                return
            if loop.time() - began > STEADY:
                pause = SHORTEST_PAUSE
            log.warning("a process ended; starting it again", which=self._name, how=fate(died.result()))
            await any_of(stop, within=timedelta(seconds=pause))
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _start(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "foliot",
            *self._arguments,
            env=self._environment,
            stdin=asyncio.subprocess.PIPE,  # its end tells the child that we are gone
            pass_fds=self._descriptors,
            start_new_session=True,  # Ctrl-C reaches us alone, and we pass it on
        )

    async def _end(self, process: asyncio.subprocess.Process, died: "asyncio.Future[int]") -> None:
        if not died.done():
            process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(asyncio.shield(died), GRACE)
        except TimeoutError:
            log.warning("a process did not finish in time; killing it", which=self._name)
            process.kill()
            await died


def fate(status: int) -> str:
    """How a process ended, in words."""
    if status >= 0:
        return f"status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
