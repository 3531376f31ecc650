"""A process that is started again when it dies."""

import asyncio
import signal
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

import structlog

from foliot.cli.shell import DRAINED
from foliot.kit.loop import any_of

log = structlog.get_logger("up")

FOLIOT: Final = (sys.executable, "-m", "foliot")

GRACE: Final = 35.0
"""Seconds that a child gets to finish, longer than any takes by itself; then it is killed."""
SHORTEST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0
STEADY: Final = 10.0
"""Seconds after which a child has proved that it can live: its next death is its first again."""


class Child:
    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], *, descriptors: Sequence[int] = ()
    ) -> None:
        """The child inherits `descriptors`."""
        self._name = name
        self._command = command
        self._environment = environment
        self._descriptors = descriptors
        self._process: asyncio.subprocess.Process | None = None
        self.is_retiring = False

    @property
    def pid(self) -> int | None:
        """None before its first start."""
        return None if self._process is None else self._process.pid

    async def keep(self, stop: asyncio.Event) -> int:
        """Run the child until `stop`; if it dies it is back in a tenth of a second, after repeated deaths later.

        A worker that was drained does not come back. Returns the status that the child ended with at last.
        """
        loop, pause, status = asyncio.get_running_loop(), SHORTEST_PAUSE, 0
        while not (stop.is_set() or self.is_retiring):
            began = loop.time()
            self._process = process = await self._start()
            died, stopping = asyncio.ensure_future(process.wait()), asyncio.ensure_future(stop.wait())
            await asyncio.wait([died, stopping], return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if stop.is_set():
                return await self._end(process, died)
            status = died.result()
            if status == DRAINED or self.is_retiring:
                log.info("a process was drained and is not started again", which=self._name)
                break
            if loop.time() - began > STEADY:
                pause = SHORTEST_PAUSE
            log.warning("a process ended; starting it again", which=self._name, how=fate(status))
            await any_of(stop, within=timedelta(seconds=pause))
            pause = min(pause * 2, LONGEST_PAUSE)
        return status

    def retire(self) -> None:
        """Have a worker finish what it runs, however long that takes, and not come back."""
        self.is_retiring = True
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGUSR1)

    async def _start(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *self._command,
            env=self._environment,
            stdin=asyncio.subprocess.PIPE,  # its end tells the child that we are gone
            pass_fds=self._descriptors,
            start_new_session=True,  # Ctrl-C reaches us alone, and we pass it on
        )

    async def _end(self, process: asyncio.subprocess.Process, died: "asyncio.Future[int]") -> int:
        if not died.done():
            process.send_signal(signal.SIGTERM)
        try:
            return await asyncio.wait_for(asyncio.shield(died), GRACE)
        except TimeoutError:
            log.warning("a process did not finish in time; killing it", which=self._name)
            process.kill()
            return await died


def fate(status: int) -> str:
    """How a process ended, in words."""
    if status >= 0:
        return f"status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
