"""Waiting for something to become true, not for ever."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable


async def until(condition: Callable[[], bool | Awaitable[bool]], seconds: float, pause: float = 0.05) -> bool:
    """Ask again and again; whether it became true in time."""
    now = asyncio.get_running_loop().time
    deadline = now() + seconds
    while True:
        answer = condition()
        if await answer if inspect.isawaitable(answer) else answer:
            return True
        if now() > deadline:
            return False
        await asyncio.sleep(pause)
