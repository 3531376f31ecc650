"""Handlers that are to end: cancelled on request, told that their worker leaves, or out of time."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web

from foliot.domain.outcome import Ending, Outcome
from foliot.domain.spec import HttpHandler, Spec
from foliot.kit.signals import RECALL
from foliot.sdk import Context
from foliot.store.hints import notify
from foliot.worker.desk import WorkerDesk
from foliot.worker.executor import Assignment, Executor
from foliot.worker.process import WorkerOptions, WorkerProcess
from foliot.worker.runner import LAST_WORDS
from worker.carrying import through_http
from worker.conftest import Serve
from worker.crew import Crew
from worker.making import PATIENCE, Gate, claimed, event, eventually
from worker.test_claimer import Station
from worker.test_runner import Bench
from world import NOOP, World

LATE = timedelta(minutes=1)
"""Between heartbeats: whoever hears of something sooner was told by a hint."""


@pytest.fixture
def crew(dsn: str) -> Crew:
    return Crew(dsn)


async def _cancel(world: World, run: int) -> None:
    """As the API does, hints and all."""
    await world.canceller.cancel(world.tenant, run)
    line = world.database.line(hot=False)
    await notify(line, world.hints)
    if RECALL in world.hints:
        world.gateway.hear()
    await line.close()


async def _ended(world: World, run: int) -> tuple[str, str]:
    """How a run ended, and its last attempt."""
    await world.until("SELECT count(*) > 0 FROM history WHERE run = $1 AND state > 3", run)
    (attempt, *_) = (await world.insights.attempts(world.tenant, run=run, limit=5, cursor=None)).items
    return (await world.insights.run(world.tenant, run)).status, attempt.status


async def test_a_coroutine_is_cancelled_and_cleans_up(world: World, crew: Crew):
    begun, seen = asyncio.Event(), []

    async def patient(ctx: Context, payload: Any) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append((ctx.cancelled, ctx.stop_reason))
            await asyncio.sleep(0)
            # One that swallows it has heard of it all the same.

    async with crew.work({"noop": patient}, heartbeat=LATE):
        (run,) = await world.submit()
        await event(begun)
        await _cancel(world, run)
        assert await _ended(world, run) == ("cancelled", "cancelled")
    assert seen == [(True, "cancelled on request")]


@pytest.mark.parametrize("notices", [True, False])
async def test_a_thread_has_to_ask_and_one_that_never_knew_is_done(world: World, crew: Crew, *, notices: bool):
    begun, may_end = threading.Event(), threading.Event()

    def patient(ctx: Context, payload: Any) -> None:
        begun.set()
        while notices and not ctx.cancelled:
            may_end.wait(0.001)
        assert may_end.wait(PATIENCE)

    async with crew.work({"noop": patient}, heartbeat=LATE) as hired:
        (run,) = await world.submit()
        await eventually(begun.is_set)
        await _cancel(world, run)
        await eventually(lambda: hired.process._desk.stopping)
        may_end.set()
        assert await _ended(world, run) == (("cancelled", "cancelled") if notices else ("completed", "completed"))


async def test_an_http_request_is_aborted(world: World, crew: Crew, serve: Serve):
    begun, hung_up = asyncio.Event(), asyncio.Event()

    async def answer(_: web.Request) -> web.StreamResponse:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            hung_up.set()
        raise AssertionError

    spec = Spec(handler=HttpHandler(url=await serve(answer)))
    async with crew.work({}, heartbeat=LATE):
        (run,) = await world.submit(spec=spec)
        await event(begun)
        await _cancel(world, run)
        assert await _ended(world, run) == ("cancelled", "cancelled")
        await event(hung_up)


@asynccontextmanager
async def _remote(world: World, executor: Executor, **options: Any) -> AsyncIterator[None]:
    stop, ready = asyncio.Event(), asyncio.Event()
    async with through_http(world) as new:
        settings = WorkerOptions(groups=("fn:noop",), **options)
        task = asyncio.ensure_future(WorkerProcess(new(77), lambda _: executor, settings).run(stop, ready.set))
        await event(ready)
        yield
        stop.set()
        await asyncio.wait_for(task, PATIENCE)


async def test_a_remote_worker_hears_of_it_where_it_waits_for_work(world: World):
    gate = Gate()
    async with _remote(world, gate.executor, heartbeat=timedelta(seconds=10)):
        (run,) = await world.submit()
        await eventually(lambda: gate.going)
        await eventually(lambda: world.gateway._claims._polls)
        await _cancel(world, run)
        assert await _ended(world, run) == ("cancelled", "cancelled")


async def test_a_remote_worker_that_does_not_wait_for_work_hears_of_it_with_its_next_heartbeat(world: World):
    gate = Gate()
    async with _remote(world, gate.executor, concurrency=1, heartbeat=timedelta(milliseconds=50)):
        (run,) = await world.submit()
        await eventually(lambda: gate.going)
        await world.canceller.cancel(world.tenant, run)
        assert await _ended(world, run) == ("cancelled", "cancelled")


async def test_what_is_recalled_is_handed_back_unless_it_has_begun():
    gate = Gate()
    station = Station([], gate.executor, concurrency=1)
    first, second, third = (claimed() for _ in range(3))
    await station.claimer._start([first, second])
    await eventually(lambda: gate.begun)
    station.claimer.recall(frozenset({first.id, second.id, third.id}))
    await station.claimer._start([third])  # it was on its way
    await station.settler.run_once()
    assert [each.run for each in station.carrier.settled] == [second, third]
    assert {each.outcome for each in station.carrier.settled} == {Outcome.released()}
    assert gate.begun == [first.id]
    gate.opened.set()


async def test_a_handler_that_does_not_heed_it_is_left_behind_and_counts_no_more():
    bench, begun, may_end = Bench(concurrency=1), asyncio.Event(), asyncio.Event()
    deaf = 2

    async def stubborn(_: Assignment) -> None:
        begun.set()
        for _ in range(deaf):
            try:
                await may_end.wait()
                break
            except asyncio.CancelledError:
                pass

    run = bench.add(stubborn)
    follower = bench.add(Gate().executor)
    await event(begun)
    bench.runner.cancel({run.id})
    await asyncio.sleep(0)
    bench.pass_time(LAST_WORDS / 2)
    assert bench.ended == []
    bench.pass_time(LAST_WORDS / 2)
    assert [(each.run, each.outcome.ending) for each in bench.ended] == [(run, Ending.CANCELLED)]
    await eventually(lambda: bench.runner.going == 1)  # its place is free
    assert bench.runner._underway.of(follower) is not None
    assert bench.runner._underway.told_to_stop(run) is not None  # it may still ask
    may_end.set()
    await eventually(lambda: bench.runner._underway.told_to_stop(run) is None)
    assert len(bench.ended) == 1


async def test_a_heartbeat_begins_the_time_anew_and_seven_days_are_the_end():
    bench, gate = Bench(), Gate()
    run = bench.add(gate.executor, timeout=timedelta(hours=10))
    other = bench.add(gate.executor, timeout=timedelta(hours=10))
    await eventually(lambda: len(gate.begun) == 2)
    bench.pass_time(timedelta(hours=9))
    going = bench.runner._underway.of(run)
    assert going is not None
    bench.runner._underway.extend(going.assignment, bench._passed)
    bench.pass_time(timedelta(hours=9))
    await eventually(lambda: len(bench.ended) == 1)
    assert bench.ended[0].run is other
    for _ in range(17):
        bench.runner._underway.extend(going.assignment, bench._passed)
        bench.pass_time(timedelta(hours=9))
        await asyncio.sleep(0)
    assert len(bench.ended) == 1
    bench.runner._underway.extend(going.assignment, bench._passed)  # 171 hours: no more
    bench.pass_time(timedelta(hours=9))
    await eventually(lambda: len(bench.ended) == 2)
    assert bench.ended[1].outcome.ending is Ending.TIMED_OUT


async def test_a_worker_that_leaves_gives_its_handlers_notice(world: World, crew: Crew):
    begun, seen = asyncio.Event(), []

    async def careful(ctx: Context, payload: Any) -> None:
        assert not ctx.draining
        before = ctx.deadline
        begun.set()
        while not ctx.draining:  # noqa: ASYNC110 - a handler has to ask
            await asyncio.sleep(0.001)
        seen.append((ctx.cancelled, ctx.deadline < before, ctx.time_left < timedelta(seconds=30)))

    async with crew.work({"noop": careful}) as hired:
        await world.submit(spec=NOOP)
        await event(begun)
        await hired.leave()
    assert seen == [(False, True, True)]
    assert await world.value("SELECT state FROM history") == 4


async def test_a_desk_that_has_closed_refuses_to_save():
    desk = WorkerDesk()
    attempt = Assignment(claimed(), NOOP, "report", claimed().scheduled_at)
    desk.open()
    early = desk.save(attempt, b"{}")
    desk.close()
    late = desk.save(attempt, b"{}")
    assert [type(each.exception(0)).__name__ for each in (early, late)] == ["FenceLost"] * 2
