"""Asking an API whether it is ready."""

import asyncio
from contextlib import closing, suppress
from typing import Final

PATIENCE: Final = 2.0
"""Seconds for an answer: who takes longer is not ready."""


async def is_ready(host: str, port: int) -> bool:
    """Whether who listens there says so. No connection is left behind, whatever comes of it."""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection(host, port)
            with closing(writer):
                writer.write(b"GET /ready HTTP/1.0\r\n\r\n")
                return b" 200 " in await reader.readline()
    return False
