"""What a process of the product shows of itself, read while it works."""

import asyncio
import time
from typing import Final, NamedTuple

import aiohttp

_SETTLED: Final = "foliot_attempts_total"


class Sample(NamedTuple):
    """How many attempts a worker has settled by one moment."""

    at: float
    settled: float


async def sample(port: int) -> Sample:
    """Ask the worker that shows its metrics on this port; patiently, it may be starting."""
    async with asyncio.timeout(30), aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
                    return Sample(time.monotonic(), _read(await answer.text()))
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.1)


def _read(text: str) -> float:
    """The sum over all labels."""
    lines = [line for line in text.splitlines() if line.partition("{")[0].partition(" ")[0] == _SETTLED]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


async def reading(port: int, name: str) -> float:
    """One metric of the process that shows its own on this port."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} ")), 0.0)


def rate(first: Sample, last: Sample) -> float:
    """Runs settled a second between the two."""
    return (last.settled - first.settled) / (last.at - first.at)
