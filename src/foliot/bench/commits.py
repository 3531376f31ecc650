"""What two commits cost, one after the other on two connections: the floor of start latency on this disk."""

import asyncio
import time

from foliot.bench.produce import PAYLOAD
from foliot.store.database import Connection, connect


async def two_commits(dsn: str, seconds: float, rate: float) -> list[float]:
    """Seconds for a row to be written and then taken by another, at that pace: durable both times, and nothing else."""
    writer, taker = await connect(dsn), await connect(dsn)
    try:
        await writer.execute("CREATE TABLE IF NOT EXISTS two_commits (payload bytea)")
        waits: list[float] = []
        began = time.monotonic()
        while (late := time.monotonic() - began) < seconds:
            await asyncio.sleep(max(0.0, len(waits) / rate - late))
            waits.append(await _hand_over(writer, taker))
        return waits
    finally:
        await writer.close()
        await taker.close()


async def _hand_over(writer: Connection, taker: Connection) -> float:
    began = time.perf_counter()
    await writer.fetch("INSERT INTO two_commits VALUES ($1)", PAYLOAD)
    await taker.fetch("DELETE FROM two_commits")
    return time.perf_counter() - began
