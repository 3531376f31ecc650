"""Hints: however many are given, few are sent, and the last is never lost."""

import asyncio
import time
from collections.abc import Sequence

from foliot.kit.signals import DUE, FLEET, READY, Hints
from foliot.kit.tasks import background
from world import PATIENCE

SENDS_A_SECOND = 50


async def test_a_flood_of_hints_becomes_at_most_fifty_a_second_whatever_their_kinds_and_the_last_is_heard():
    sent: list[tuple[float, Sequence[str]]] = []
    heard = asyncio.Event()

    async def send(channels: Sequence[str]) -> None:
        sent.append((time.monotonic(), channels))
        if DUE in channels:
            heard.set()

    hints = Hints(send)
    async with background(hints.run()):
        began = time.monotonic()
        while time.monotonic() - began < 0.3:
            for _ in range(1_000):
                hints.give(READY)
                hints.give(FLEET)
            await asyncio.sleep(0)
        hints.give(DUE)
        async with asyncio.timeout(PATIENCE):
            await heard.wait()
    assert 1 <= len(sent) <= (sent[-1][0] - began) * SENDS_A_SECOND + 1
    assert sent[1][1] == [FLEET, READY]


async def test_who_cannot_send_goes_on_trying_with_the_next_hint():
    tried = asyncio.Queue()

    async def send(channels: Sequence[str]) -> None:
        tried.put_nowait(channels)
        raise ConnectionError("the server went away")

    hints = Hints(send, pause=0)
    async with background(hints.run()):
        for _ in range(3):
            hints.give(READY)
            assert await asyncio.wait_for(tried.get(), PATIENCE) == [READY]
