"""Whoever lets others go on tells their workers, and never too often."""

import asyncio
import time

from foliot.domain.outcome import SUCCEEDED
from foliot.kit.signals import DUE, FLEET, READY
from foliot.kit.tasks import background
from foliot.services.tenants import Tenants
from foliot.store.dispatch import Settlement
from foliot.store.hints import notify
from foliot.store.specs import SpecBook
from worker.carrying import through_sql
from worker.making import NOW, function_spec
from world import PATIENCE, World

SEATS = 40
SENDS_A_SECOND = 50


async def test_places_that_are_handed_over_to_other_lanes_are_told_at_most_fifty_times_a_second(world: World, dsn: str):
    await Tenants(world.database).set_limit("acme", SEATS)
    world.specs = SpecBook(world.database)
    await world.submit(SEATS)
    await world.submit(SEATS, function_spec("other"))
    heard: list[float] = []
    told, line = asyncio.Event(), world.database.line()

    def hear(*_: object) -> None:
        heard.append(time.monotonic())
        told.set()

    await (await line.connection()).add_listener(READY, hear)
    async with through_sql(dsn) as new:
        carrier = new(77)
        lanes = list(await carrier.register(["default"], ["fn:noop"]))
        runs = await carrier.claim(1, lanes, [0], SEATS, [SEATS])
        async with background(carrier.run()):
            began = time.monotonic()
            for run in runs:
                assert await carrier.settle([Settlement(run, NOW, SUCCEEDED)]) == []
            assert await world.count("ready") == SEATS, "each handed its place over"
            async with asyncio.timeout(PATIENCE):
                await told.wait()
    assert len(heard) <= (heard[-1] - began) * SENDS_A_SECOND + 1
    await line.close()


async def test_one_statement_tells_of_several_kinds_at_once(world: World):
    line, heard, told = world.database.line(), list[str](), asyncio.Event()

    def hear(connection: object, pid: int, channel: str, payload: str) -> None:
        heard.append(channel)
        if len(heard) == 3:
            told.set()

    for channel in (READY, DUE, FLEET):
        await (await line.connection()).add_listener(channel, hear)
    await notify(line, [READY, DUE, FLEET])
    async with asyncio.timeout(PATIENCE):
        await told.wait()
    assert heard == [READY, DUE, FLEET]
    await line.close()
