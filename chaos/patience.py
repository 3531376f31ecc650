"""Waiting for something to become true, not for ever."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable


async def until(condition: Callable[[], bool | Awaitable[bool]], seconds: float, pause: float = 0.05) -> bool:
    """Ask again and again; whether it became true in time."""
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if await answer if inspect.isawaitable(answer) else answer:
            return True
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(pause)
