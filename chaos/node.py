"""One process of Foliot under test: started again whenever it ends, known by a new boot id each time."""

import asyncio
import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, NamedTuple

from chaos.patience import until

REST: Final = 0.3
"""Seconds before a process that ended is started again, as a supervisor would."""


class Boot(NamedTuple):
    name: str
    pid: int
    began: float
    ended: float | None


class Node:
    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        *,
        folder: Path,
    ) -> None:
        self.name = name
        self.kind = name.partition("-")[0]
        self.boots: list[Boot] = []
        self._command = command
        self._environment = environment
        self._log = log
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None and self._process.returncode is None else 0

    @property
    def boot(self) -> str:
        return self.boots[-1].name if self.boots else ""

    def boots_since(self, instant: float) -> list[str]:
        """All that lived at some time since then."""
        return [boot.name for boot in self.boots if boot.ended is None or boot.ended >= instant]

    async def keep(self, stop: asyncio.Event) -> None:
        """Run until `stop`, then end it."""
        with self._log.open("ab") as log:
            while not stop.is_set():
                await self._live(log, stop)
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), REST)

    async def _live(self, log: IO[bytes], stop: asyncio.Event) -> None:
        name = f"{self.name}.{len(self.boots) + 1}"
        self._process = process = await asyncio.create_subprocess_exec(
            *self._command,
            env={**os.environ, **self._environment, "CHAOS_BOOT": name},
            stdin=asyncio.subprocess.PIPE,  # its end tells the process that the harness is gone
            stdout=log,
            stderr=log,
            cwd=self._folder,
            start_new_session=True,
        )
        self.boots.append(Boot(name, process.pid, time.time(), None))
        ended, stopping = asyncio.ensure_future(process.wait()), asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait([ended, stopping], return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                await _end(process, ended)
        finally:
            stopping.cancel()
            if process.returncode is None:
                process.kill()
            self.boots[-1] = self.boots[-1]._replace(ended=time.time())

    def signal(self, number: signal.Signals) -> int:
        """Send it to the process that runs now; its pid, 0 if none does."""
        pid = self.pid
        if pid:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        return pid

    async def until_reborn(self, boot: str, seconds: float) -> bool:
        """Wait until another process than `boot` lives here."""
        return await until(lambda: self.boot != boot, seconds)


async def _end(process: asyncio.subprocess.Process, ended: "asyncio.Future[int]") -> None:
    for number in (signal.SIGCONT, signal.SIGTERM):
        with suppress(ProcessLookupError):
            process.send_signal(number)
    try:
        await asyncio.wait_for(asyncio.shield(ended), 15)
    except TimeoutError:
        process.kill()
        await ended
