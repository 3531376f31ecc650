"""Hints: however many are given, few are sent, and the last is never lost."""

import asyncio
import time

from foliot.kit.signals import DUE, READY, Hints
from foliot.kit.tasks import background
from world import PATIENCE

SENDS_A_SECOND = 50


async def test_a_flood_of_hints_becomes_at_most_fifty_a_second_of_each_kind_and_the_last_is_heard():
    sent: list[tuple[float, str]] = []
    heard = asyncio.Event()

    async def send(channel: str) -> None:
        sent.append((time.monotonic(), channel))
        if channel == DUE:
            heard.set()

    hints = Hints(send)
    async with background(hints.run()):
        began = time.monotonic()
        while time.monotonic() - began < 0.3:
            for _ in range(1_000):
                hints.give(READY)
            await asyncio.sleep(0)
        hints.give(DUE)
        async with asyncio.timeout(PATIENCE):
            await heard.wait()
    ready = [at for at, channel in sent if channel == READY]
    assert 1 <= len(ready) <= (sent[-1][0] - began) * SENDS_A_SECOND + 1


async def test_who_cannot_send_goes_on_trying_with_the_next_hint():
    tried = asyncio.Queue()

    async def send(channel: str) -> None:
        tried.put_nowait(channel)
        raise ConnectionError("the server went away")

    hints = Hints(send, pause=0)
    async with background(hints.run()):
        for _ in range(3):
            hints.give(READY)
            assert await asyncio.wait_for(tried.get(), PATIENCE) == READY
