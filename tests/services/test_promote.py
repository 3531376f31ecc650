"""Promotion: what waits for its time becomes ready when it has come, once, and in its fair place."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from foliot.domain.fairness import AGAIN, Priority, step
from foliot.domain.floor import GATHER, WHOLE, WHOLE_RUNS
from foliot.domain.outcome import Ending, Outcome
from foliot.services.promote import Promoter
from foliot.store import dispatch
from foliot.store.waiting import fetch_due, promote
from world import World

HOUR = timedelta(hours=1)
AT_ONCE = Outcome.again(Ending.FAILED, "boom", timedelta())


async def test_a_delayed_run_becomes_ready_when_its_time_has_come(world: World):
    (soon,) = await world.submit(delay=timedelta(seconds=30))
    (later,) = await world.submit(delay=HOUR)
    assert await world.promoter.run_once() == 0
    now = datetime.now(UTC)
    assert await world.promoter.run_once(now + timedelta(minutes=1)) == 1
    assert await world.promoter.run_once(now + 2 * HOUR) == 1
    worker = await world.worker()
    assert [run.id for run in await worker.claim()] == [soon, later]
    assert await world.count("timer") == 0


async def test_what_falls_due_together_is_promoted_in_batches(world: World):
    await world.submit(5_000, delay=HOUR)
    now = datetime.now(UTC) + 2 * HOUR
    moved = [(await world.promoter.run_once(now), world.promoter.apart()) for _ in range(4)]
    assert moved == [(2_000, 0.0), (2_000, 0.0), (1_000, GATHER), (0, GATHER)]  # at once, while there is more to do
    assert await world.count("ready") == await world.count("run") == 5_000


async def test_promoted_runs_are_ranked_behind_what_their_flow_has_already(world: World):
    (delayed,) = await world.submit(delay=timedelta())
    (first,) = await world.submit()
    await world.promoter.run_once()
    assert [run.id for run in await (await world.worker()).claim()] == [first, delayed]


async def test_a_retry_ranks_near_the_head_and_does_not_move_its_flow(world: World):
    (failed,) = await world.submit()
    worker = await world.worker()
    taken = await worker.claim()
    await world.submit(100)
    last = await world.value("SELECT last FROM flow WHERE priority < $1", AGAIN)
    await dispatch.publish(worker.line, {worker.lanes[0]: taken[0].rank})
    await worker.conclude(taken, AT_ONCE)
    await world.promoter.run_once()
    assert await world.value("SELECT last FROM flow WHERE priority < $1", AGAIN) == last
    rank = await world.value("SELECT rank FROM ready WHERE run = $1", failed)
    assert rank == taken[0].rank + step(1, Priority.NORMAL)
    assert failed in [run.id for run in await worker.claim(2)]


async def test_two_promoters_make_each_run_ready_once(world: World):
    await world.submit(10, delay=timedelta())
    rival = Promoter(world.database)
    due = await fetch_due(world.promoter._line, "runs", 100)
    async with world.unfinished() as line:
        assert await promote(line, "runs", due, range(10)) == 10
        second = asyncio.create_task(rival.run_once())
        await world.until_waiting()
    assert await second == 0
    assert await world.count("ready") == 10
    await rival.close()


async def test_what_was_run_since_it_was_due_and_waits_again_is_not_made_ready_before_its_time(world: World):
    await world.submit(delay=timedelta())
    slow = await fetch_due(world.promoter._line, "runs", 1)
    await world.promoter.run_once()
    worker = await world.worker()
    await worker.conclude(await worker.claim(), Outcome.snoozed(HOUR, "later"))
    assert await promote(world.promoter._line, "runs", slow, [1]) == 0
    assert await world.count("ready") == 0


async def test_two_promoters_move_each_timer_once(world: World):
    await world.submit(10, delay=HOUR)
    now = datetime.now(UTC) + 2 * HOUR
    rival = Promoter(world.database)
    due = await fetch_due(world.promoter._line, "timers", 100, now)
    async with world.unfinished() as line:
        assert await promote(line, "timers", due, range(10)) == 10
        second = asyncio.create_task(rival.run_once(now))
        await world.until_waiting()
    assert await second == 0
    assert await world.count("ready") == await world.count("run") == 10
    await rival.close()


async def test_a_timer_that_turns_up_below_what_was_done_is_found_by_the_next_whole_look(world: World):
    clock = [0.0]
    promoter = Promoter(world.database, clock=lambda: clock[0])
    await world.submit(delay=2 * HOUR)
    now = datetime.now(UTC) + 3 * HOUR
    assert await promoter.run_once(now) == 1
    await world.submit(delay=HOUR)
    assert await promoter.run_once(now) == 0
    clock[0] += WHOLE
    assert await promoter.run_once(now) == 1
    await promoter.close()


async def test_a_run_that_turns_up_below_what_was_done_is_found_by_the_next_whole_look(world: World):
    """As when a job is resumed whose runs have been due for long."""
    clock = [0.0]
    promoter = Promoter(world.database, clock=lambda: clock[0])
    await world.submit(delay=timedelta(seconds=30))
    now = datetime.now(UTC) + timedelta(minutes=1)
    assert await promoter.run_once(now) == 1
    (late,) = await world.submit(delay=timedelta())
    await world.sql("UPDATE run SET due_at = due_at - interval '1 minute' WHERE id = $1", late)
    assert await promoter.run_once(now) == 0
    clock[0] += WHOLE_RUNS
    assert await promoter.run_once(now) == 1
    await promoter.close()


async def test_how_long_to_sleep_is_the_time_to_the_next_due_run(world: World):
    assert await world.promoter.pause() == 0.5
    await world.submit(delay=HOUR)
    assert await world.promoter.pause(longest=1e9) == pytest.approx(3_600, abs=30)
    await world.submit(delay=timedelta(seconds=40))
    assert await world.promoter.pause(longest=1e9) == pytest.approx(40, abs=30)
    await world.submit(delay=timedelta())
    assert await world.promoter.pause() == 0.0


async def test_thousands_of_one_time_jobs_of_one_instant_are_promoted_without_squaring(world: World):
    """With the joins that hot lines are allowed, a batch must not be compared with itself row by row."""
    spec = await world.specs.intern(world.tenant, (await world.control.read(world.tenant, await world.job_id())).spec)
    await world.sql(
        "INSERT INTO job (id, tenant, name, spec, kind, exclusive, run, timing, payload)"
        " SELECT n, $1, 'x', $2, 1, true, n, '{}', '' FROM generate_series(1, 4000) AS n",
        world.tenant,
        spec.id,
    )
    await world.sql(
        "INSERT INTO timer (id, job, origin, scheduled_at, due_at, tenant, spec, payload)"
        " SELECT n, n, 1, now(), now(), $1, $2, '' FROM generate_series(1, 4000) AS n",
        world.tenant,
        spec.id,
    )
    async with asyncio.timeout(5):
        assert await world.promoter.run_once() == 2_000
        assert await world.promoter.run_once() == 2_000
    assert await world.count("ready") == 4_000
