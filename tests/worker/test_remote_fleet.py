"""Whole workers through the gateway: many of them, few connections, everything once; and an API that goes away."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any

from foliot.domain.ids import encode
from foliot.store.fleet import AT_REST
from foliot.store.specs import StoredSpec
from foliot.worker.executor import Assignment, Executor
from foliot.worker.process import WorkerOptions, WorkerProcess
from worker.carrying import NewCarrier, through_http
from worker.making import PATIENCE, event, eventually
from world import World

WORKERS = 50
OFTEN = timedelta(milliseconds=10)
SERVED = 8 + 3 + 2
"""Connections of the pool, of the gateway, of the submitter: what one API process has without any worker."""


@asynccontextmanager
async def fleet(new: NewCarrier, executor: Executor, count: int, **options: Any) -> AsyncIterator[None]:
    stop, ready = asyncio.Event(), Counter[int]()

    def executors(_: StoredSpec) -> Executor:
        return executor

    settings = WorkerOptions(groups=("fn:noop",), **options)
    tasks = [
        asyncio.ensure_future(
            WorkerProcess(new(1_000 + number), executors, settings).run(stop, partial(ready.update, [number]))
        )
        for number in range(count)
    ]
    try:
        await eventually(lambda: len(ready) == count or any(task.done() for task in tasks))
        yield
    finally:
        stop.set()
        await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)


async def test_fifty_workers_use_no_connection_more_than_none_and_run_everything_once(world: World):
    ran: Counter[str] = Counter()

    async def execute(assignment: Assignment) -> None:
        ran[encode("run", assignment.run.id)] += 1

    async with through_http(world) as new, fleet(new, execute, WORKERS, concurrency=10):
        await eventually(lambda: len(world.gateway._claims._polls) == WORKERS)
        ids = await world.submit(500)
        await world.until("SELECT count(*) >= $1 FROM history", 500)
        connections = await world.value("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        assert connections <= SERVED
        assert await world.value("SELECT count(*) FROM worker WHERE state = 0") == WORKERS
    assert ran == Counter(encode("run", number) for number in ids)
    assert await world.value("SELECT count(DISTINCT run) FROM history") == 500
    assert await world.value("SELECT count(DISTINCT worker) FROM history") == WORKERS
    assert await world.count("run") == await world.count("claim") == 0
    assert await world.value("SELECT count(*) FROM worker WHERE state = 2") == WORKERS


async def test_a_worker_that_is_told_to_stop_does_not_wait_for_work_any_longer(world: World):
    async def execute(_: Assignment) -> None:
        pass

    async with through_http(world) as new, fleet(new, execute, 1):
        await eventually(lambda: world.gateway._claims._polls)
    assert world.gateway._claims._polls == {}
    assert await world.value("SELECT state FROM worker") == 2


async def test_a_remote_worker_that_is_drained_finishes_what_it_runs_and_leaves(world: World):
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def execute(_: Assignment) -> None:
        begun.set()
        await may_end.wait()

    options = WorkerOptions(groups=("fn:noop",), concurrency=2, heartbeat=OFTEN)
    async with through_http(world) as new:
        process = WorkerProcess(new(7), lambda _: execute, options)
        task = asyncio.ensure_future(process.run(asyncio.Event()))
        (first,) = await world.submit()
        await event(begun)
        await world.fleet.drain(7)
        await eventually(lambda: process.is_draining and not world.gateway._claims._polls)
        (second,) = await world.submit()
        may_end.set()
        await asyncio.wait_for(task, PATIENCE)
    assert await world.value("SELECT run FROM history") == first
    assert await world.value("SELECT run FROM ready WHERE lane > 0") == second
    assert await world.value("SELECT state FROM worker WHERE id = 7") == 2


async def test_a_claim_that_waits_asks_anew_when_a_queue_is_paused_or_resumed(world: World):
    async with through_http(world) as new:
        carrier = new(7)
        lanes = list(await carrier.register(["default", "mail"], ["fn:noop"]))
        for number, steer in enumerate([world.fleet.pause, world.fleet.resume], 1):
            poll = asyncio.ensure_future(carrier.claim(number, lanes, [0, 0], 1, [1, 1]))
            await eventually(lambda: world.gateway._claims._polls)
            await steer("mail")
            assert not poll.done()
            await carrier.beat(AT_REST)
            assert await asyncio.wait_for(poll, PATIENCE) == []


async def test_a_claim_that_waits_is_told_that_somebody_drains_its_worker(world: World):
    heard = asyncio.Event()
    async with through_http(world) as new:
        carrier = new(7)
        lanes = list(await carrier.register(["default"], ["fn:noop"]))
        await carrier.listen(heard.set, heard.set)
        poll = asyncio.ensure_future(carrier.claim(1, lanes, [0], 1, [1]))
        await eventually(lambda: world.gateway._claims._polls)
        await world.fleet.drain(7)
        world.gateway.hear()
        assert await asyncio.wait_for(poll, PATIENCE) == []
        assert heard.is_set()
