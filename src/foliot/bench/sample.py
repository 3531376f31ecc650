"""What a process of the product shows of itself, read while it works."""

import asyncio
import time
from typing import Final, NamedTuple

import aiohttp

_NAMES: Final = ("foliot_attempts_total", "foliot_claim_seconds_sum", "foliot_claim_seconds_count")


class Sample(NamedTuple):
    """A worker's counters at one moment."""

    at: float
    settled: float
    claim_seconds: float
    claims: float


async def sample(port: int) -> Sample:
    """Ask the worker that shows its metrics on this port; patiently, it may be starting."""
    async with asyncio.timeout(30), aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
                    return Sample(time.monotonic(), *_read(await answer.text()))
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.1)


def _read(text: str) -> list[float]:
    """The sum of each of the wanted metrics over all its labels."""
    found = dict.fromkeys(_NAMES, 0.0)
    for line in text.splitlines():
        name = line.partition("{")[0].partition(" ")[0]
        if name in found:
            found[name] += float(line.rpartition(" ")[2])
    return list(found.values())


async def reading(port: int, name: str) -> float:
    """One metric of the process that shows its own on this port."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} ")), 0.0)


def rate(first: Sample, last: Sample) -> float:
    """Runs settled a second between the two."""
    return (last.settled - first.settled) / (last.at - first.at)


def claim_time(first: Sample, last: Sample) -> float:
    """Milliseconds that a claim took between the two, on average."""
    claims = last.claims - first.claims
    return (last.claim_seconds - first.claim_seconds) / claims * 1_000 if claims else 0.0
