"""Sending and hearing hints through NOTIFY."""

from foliot.store.database import Line


async def notify(line: Line, channel: str) -> None:
    """Committed by itself, never inside a transaction that matters: NOTIFY holds a lock of the whole server."""
    await line.fetch("notify", channel)
