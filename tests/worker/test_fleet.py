"""What a worker does when its queue is paused, when it is drained, and when it lacks a handler after all."""

import asyncio
from collections import Counter
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from foliot.domain.ids import encode
from foliot.domain.outcome import Ending
from foliot.kit.signals import FLEET
from foliot.sdk import Context
from foliot.store.database import Line
from foliot.store.hints import notify
from foliot.worker import claimer as claimer_module
from worker.crew import Crew
from worker.making import Gate, claimed, event, eventually
from worker.test_claimer import Station
from world import PATIENCE, World

OFTEN = timedelta(milliseconds=10)
LANE = frozenset({1})


@pytest.fixture
def crew(dsn: str) -> Crew:
    return Crew(dsn)


async def test_what_waits_is_handed_back_when_its_queue_is_paused_and_nothing_more_is_asked_for():
    gate = Gate()
    station = Station([], gate.executor, concurrency=1)
    runs = [claimed() for _ in range(3)]
    await station.claimer._start(runs)
    await eventually(lambda: gate.begun)
    station.claimer.hold(LANE)
    await station.settler.run_once()
    assert [each.run for each in station.carrier.settled] == runs[1:]
    assert {each.outcome.ending for each in station.carrier.settled} == {Ending.RELEASED}
    station.carrier.runs = [claimed()]
    gate.opened.set()
    await eventually(lambda: not station.runner.going)
    await station.settler.run_once()  # there is room again
    assert await station.claimer.run_once() == 0
    assert station.carrier.asked == []
    station.claimer.hold(frozenset())
    assert await station.claimer.run_once() == 1
    await eventually(lambda: len(gate.begun) == 2)


async def test_a_claim_whose_answer_comes_after_the_pause_starts_nothing():
    gate = Gate()
    station = Station([], gate.executor)
    station.claimer.hold(LANE)
    await station.claimer._start([claimed(), claimed()])
    await station.settler.run_once()
    assert [each.outcome.ending for each in station.carrier.settled] == [Ending.RELEASED] * 2
    assert gate.begun == []


async def test_a_lane_without_a_handler_here_is_left_alone_for_a_while(monkeypatch: pytest.MonkeyPatch):
    station = Station([claimed() for _ in range(3)], None)
    assert await station.claimer.run_once() == 3
    for _ in range(10):
        assert await station.claimer.run_once() == 0
    assert len(station.carrier.asked) == 1
    station.claimer._shunned = dict.fromkeys(station.claimer._shunned, 0.0)  # the while is over
    await station.claimer.run_once()
    assert len(station.carrier.asked) == 2
    assert claimer_module.SHUN_FOR >= 10


async def test_the_load_tells_what_is_in_hand_and_what_was_taken_by_lane():
    gate = Gate()
    station = Station([claimed() for _ in range(4)], gate.executor)
    station.claimer.load()
    await station.claimer.run_once()
    load = station.claimer.load()
    assert load.running == {1: 4}
    assert load.rate[1] > 0
    gate.opened.set()
    await eventually(lambda: not list(station.runner.in_hand()))
    assert station.claimer.load() == ({}, {})


async def test_a_drained_worker_takes_nothing_more_and_leaves_when_what_it_runs_has_ended(world: World, crew: Crew):
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def slow(ctx: Context, payload: Any) -> None:
        begun.set()
        await may_end.wait()

    async with crew.work({"noop": slow}, concurrency=1, grace=timedelta(0)) as hired:
        (first,) = await world.submit()
        await event(begun)
        await world.fleet.drain(hired.id)
        line = world.database.line(hot=False)
        await notify(line, [FLEET])  # as the API's notifier does: it need not wait for its next heartbeat
        await line.close()
        await eventually(lambda: hired.process.is_draining)
        (second,) = await world.submit()
        assert not hired.task.done()  # however long it takes: the grace period is for those that are told to stop
        may_end.set()
        await asyncio.wait_for(hired.task, PATIENCE)
    assert await world.value("SELECT run FROM history") == first
    assert await world.value("SELECT run FROM ready WHERE lane > 0") == second
    assert await world.value("SELECT state FROM worker WHERE id = $1", hired.id) == 2


async def test_a_pause_in_the_middle_of_work_loses_and_doubles_nothing(world: World, crew: Crew):
    ran: Counter[str] = Counter()

    async def noop(ctx: Context, payload: Any) -> None:
        ran[ctx.run] += 1

    async with crew.work({"noop": noop}, concurrency=20, heartbeat=OFTEN):
        ids = await world.submit(3_000)
        await eventually(lambda: len(ran) > 100)
        await world.fleet.pause("default")
        await world.until("SELECT count(*) = 0 FROM claim")
        held = len(ran)
        assert await world.count("ready") == 3_000 - held
        await world.until("SELECT count(*) = 0 FROM claim WHERE pg_sleep(0.05) IS NOT NULL")
        assert len(ran) == held
        await world.fleet.resume("default")
        await world.until("SELECT count(*) >= 3000 FROM history WHERE state = 4")
    assert ran == Counter(encode("run", number) for number in ids)


async def test_a_worker_under_load_has_three_connections_at_most(world: World, dsn: str):
    async def noop(ctx: Context, payload: Any) -> None:
        pass

    async with Crew(dsn, partial(Line, dsn, application_name="counted")).work({"noop": noop}, heartbeat=OFTEN):
        most = 0
        for _ in range(5):
            await world.submit(400)
            query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'counted'"
            most = max(most, await world.value(query))
        await world.until("SELECT count(*) = 2000 FROM history WHERE state = 4")
        most = max(most, await world.value(query))
    assert most == 3
