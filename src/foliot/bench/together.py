"""Runs parts of the raw floor in processes of their own that begin at the same moment."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from foliot.domain.errors import FoliotError

READY: Final = b"ready\n"
GO: Final = b"go\n"
Answer = dict[str, Any]


async def run_together(dsn: str, *parts: Sequence[object], patience: float = 900) -> list[Answer]:
    """What each part says at its end. None begins before all are connected, so that nobody's start-up is measured."""
    processes = [await _spawn(dsn, part) for part in parts]
    try:
        async with asyncio.timeout(patience):
            for process, part in zip(processes, parts, strict=True):
                if await _stream(process.stdout).readline() != READY:
                    raise _failed(part)
            for process in processes:
                _stream(process.stdin).write(GO)
            said = await asyncio.gather(*(_stream(process.stdout).read() for process in processes))
            for process, part in zip(processes, parts, strict=True):
                if await process.wait():
                    raise _failed(part)
            return [msgspec.json.decode(text) for text in said]
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _spawn(dsn: str, part: Sequence[object]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "foliot.bench.floor", dsn, *map(str, part)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )


def _stream(pipe: Any) -> Any:
    """A pipe that was asked for is there; only the types do not know."""
    return pipe


def _failed(part: Sequence[object]) -> FoliotError:
    return FoliotError(f"the floor's {' '.join(map(str, part))} failed", "its error stands above")
