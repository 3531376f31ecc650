"""Runs a peer's producer and workers as processes of ours, and ends only those."""

import asyncio
import json
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from bench.peers.peer import SCRIPTS, Home
from bench.peers.tallies import Reader, Tallies


class CellError(Exception):
    """Says why a number could not be had."""


class Workplace:
    """The processes around one fresh store."""

    def __init__(self, home: Home, url: str, folder: Path) -> None:
        self._home = home
        self._folder = folder
        self._reader = Reader(folder)
        self._environment = {
            **os.environ,
            **home.environment,
            "PEER_URL": url,
            "PEER_TALLIES": str(folder),
            "FOLIOT_DATABASE_URL": url,
            "FOLIOT_LOG_LEVEL": "warning",
            "PYTHONPATH": str(SCRIPTS),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self._running: list[asyncio.subprocess.Process] = []

    @classmethod
    @asynccontextmanager
    async def made(cls, home: Home, url: str) -> AsyncIterator["Workplace"]:
        with tempfile.TemporaryDirectory(prefix="foliot-peers-", ignore_cleanup_errors=True) as folder:
            yield cls(home, url, Path(folder))

    def tallies(self) -> Tallies:
        return self._reader.read()

    async def script(self, *arguments: object, patience: float = 300) -> dict[str, Any]:
        """Run the peer's script to its end and return what it says in its last line."""
        process = await self._spawn(self._home.script(*arguments), asyncio.subprocess.PIPE)
        try:
            said, _ = await asyncio.wait_for(process.communicate(), patience)
        except TimeoutError:
            raise CellError(f"{arguments[0]} did not end within {patience:g} s") from None
        finally:
            await _end(process)
        if process.returncode:
            raise CellError(f"{arguments[0]} failed: {self._last_words()}")
        lines = said.decode().strip().splitlines()
        return json.loads(lines[-1]) if lines else {}

    @asynccontextmanager
    async def working(self, *, scheduling: bool = False) -> AsyncIterator[None]:
        """The peer's workers, and what stands beside them if schedules are to fire."""
        commands = [*self._home.workers(), *(self._home.beside() if scheduling else ())]
        self._running = []
        try:
            for command in commands:
                self._running.append(await self._spawn(command, asyncio.subprocess.DEVNULL))
            yield
        finally:
            await asyncio.gather(*map(_end, self._running))

    async def until(self, enough: Callable[[Tallies], bool], patience: float) -> bool:
        """Wait until the tallies are `enough`, or say False after `patience` seconds."""
        loop = asyncio.get_running_loop()
        end = loop.time() + patience
        while loop.time() < end:
            if any(each.returncode is not None for each in self._running):
                raise CellError(f"a worker ended too early: {self._last_words()}")
            if enough(self.tallies()):
                return True
            await asyncio.sleep(0.2)
        return False

    async def _spawn(self, command: list[str], output: int) -> asyncio.subprocess.Process:
        with (self._folder / "errors").open("ab") as errors:
            return await asyncio.create_subprocess_exec(
                *command,
                cwd=SCRIPTS,
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )

    def _last_words(self) -> str:
        lines = (self._folder / "errors").read_text(errors="replace").strip().splitlines()
        # The report is published: it names no folder of this machine.
        return " / ".join(lines[-4:]).replace(f"{SCRIPTS.parents[2]}/", "")[-600:] or "it said nothing"


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ask it to end, then end it and what it started: it leads a session of its own."""
    if process.returncode is None:
        process.terminate()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 10)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
