"""The borrowed loop: a service is a deed, this repeats it."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta


async def any_of(*events: asyncio.Event, within: timedelta | None = None) -> None:
    """Return when one of the events is set, or after `within`."""
    if any(event.is_set() for event in events):
        return
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        seconds = None if within is None else within.total_seconds()
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def every(
    pause: timedelta, step: Callable[[], Awaitable[int]], *, stop: asyncio.Event, wake: asyncio.Event | None = None
) -> None:
    """Repeat `step`: at once while it finds work, after `pause` (or when woken) when it finds none."""
    wake = wake or asyncio.Event()
    while not stop.is_set():
        wake.clear()
        if not await step():
            await any_of(stop, wake, within=pause)
