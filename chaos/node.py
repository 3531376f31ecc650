"""One process of Foliot under test: started again whenever it ends, known by a new boot id each time."""

import asyncio
import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, NamedTuple

import msgspec

from chaos.ends import End, asked_for
from chaos.patience import until

REST: Final = 0.3
"""Seconds before a process that ended is started again, as a supervisor would."""
WORDS: Final = 4_096
"""Bytes of its log that are kept of a process that ended by itself."""


class Boot(NamedTuple):
    name: str
    pid: int
    began: float
    ended: float | None
    status: int | None = None
    """What it exited with; or the signal that killed it, negative."""


class Node:
    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        *,
        folder: Path,
        ends: Path | None = None,
    ) -> None:
        """`ends`: where it is written down when a process ends though nobody has told it to."""
        self.name = name
        self.kind = name.partition("-")[0]
        self.boots: list[Boot] = []
        self._command = command
        self._environment = environment
        self._log = log
        self._folder = folder
        self._ends = ends
        self._process: asyncio.subprocess.Process | None = None
        self._sent: set[int] = set()
        """Signals that the process that runs now was sent."""

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
        name, said = f"{self.name}.{len(self.boots) + 1}", self._log.stat().st_size
        self._sent = set()
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
                self._sent |= {signal.SIGTERM, signal.SIGKILL}
                await _end(process, ended)
        finally:
            stopping.cancel()
            if process.returncode is None:
                process.kill()
            self.boots[-1] = self.boots[-1]._replace(ended=time.time(), status=process.returncode)
            self._write_down(self.boots[-1], said)

    def _write_down(self, boot: Boot, said: int) -> None:
        """An end that nobody asked for; `said`: how long the log was when this process began."""
        if self._ends is None or boot.status is None or asked_for(boot.status, self._sent):
            return
        with self._log.open("rb") as log:
            log.seek(max(said, log.seek(0, os.SEEK_END) - WORDS))
            words = log.read().decode(errors="replace")
        end = End(name=boot.name, pid=boot.pid, status=boot.status, at=boot.ended or 0.0, words=words)
        with self._ends.open("ab") as file:
            file.write(msgspec.json.encode(end) + b"\n")

    def signal(self, number: signal.Signals) -> int:
        """Send it to the process that runs now; its pid, 0 if none does."""
        pid = self.pid
        if pid:
            self._sent.add(number)
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
