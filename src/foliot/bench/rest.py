"""Waits until the disk is done with what was written before, so that no measurement pays for it."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from typing import Final

from foliot.store.database import connect

CALM: Final = 10.0
"""Seconds without a slow commit after which the disk is said to rest."""
SLOW: Final = 0.02
"""Seconds that a bare commit does not take on a disk that rests."""
PATIENCE: Final = 180.0
"""Seconds after which it is measured all the same: some disks are never that quick."""
PAUSE: Final = 0.05
_COMMIT: Final = "SELECT pg_logical_emit_message(true, 'rest', '')"


async def let_disk_rest(dsn: str, calm: float, say: Callable[[str], None]) -> None:
    """Write down all that the server and the system still hold, then wait until bare commits are quick."""
    connection = await connect(dsn, statement_timeout="0")
    try:
        await connection.execute("CHECKPOINT", timeout=3_600)
        await asyncio.to_thread(os.sync)

        async def commit() -> float:
            began = time.perf_counter()
            await connection.fetchval(_COMMIT)
            return time.perf_counter() - began

        began = time.monotonic()
        rests = await until_calm(commit, min(CALM, calm), PATIENCE)
        state = "rests" if rests else "does not rest"
        say(f"the disk {state} after {time.monotonic() - began:.0f} s")
    finally:
        await connection.close()


async def until_calm(commit: Callable[[], Awaitable[float]], calm: float, patience: float) -> bool:
    """Whether no commit was slow for `calm` seconds on end, looked for during `patience`."""
    began = since = time.monotonic()
    while time.monotonic() - since < calm:
        if time.monotonic() - began > patience:
            return False
        if await commit() > SLOW:
            since = time.monotonic()
        await asyncio.sleep(PAUSE)
    return True
