"""What a process of the bench has to say."""

import asyncio
from asyncio.subprocess import Process
from collections.abc import Callable


async def heard(process: Process, started: Callable[[int], None]) -> bytes:
    """All that it writes until it ends; `started` is told its pid. It does not outlive whoever listens."""
    started(process.pid)
    try:
        said, _ = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    return said
