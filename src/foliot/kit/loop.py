"""Waiting for whichever comes first."""

import asyncio
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
