"""A run by hand for an instant is not the run of that instant, however it ends."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import pytest

from burying import DEAD, replay
from foliot.domain.ids import encode
from foliot.store import upkeep
from telling import told_of
from world import Hand, World

MINUTE = timedelta(minutes=1)


async def _asked_for(world: World, **fields) -> tuple[int, list[datetime], int]:
    """A job of every minute that nobody has fired for three, its instants, and a run by hand for the first of them."""
    job = await world.job_id(every="PT1M", scheduleAt=world.half_way(MINUTE), overlap="allow", **fields)
    await world.make_overdue(by=3 * MINUTE)
    first = await world.next_at()
    (run,) = await world.submit(job=job, due=first)
    await world.promoter.run_once()
    return job, [first + number * MINUTE for number in range(3)], run


async def _succeeds(_: World, worker: Hand) -> None:
    await worker.settle(await worker.claim())


async def _dies(_: World, worker: Hand) -> None:
    await worker.conclude(await worker.claim(), DEAD)


async def _is_replayed(world: World, worker: Hand) -> None:
    taken = await worker.claim()
    await worker.conclude(taken, DEAD)
    await replay(world, *(run.id for run in taken))


async def _is_replayed_and_succeeds(world: World, worker: Hand) -> None:
    await _is_replayed(world, worker)
    await _succeeds(world, worker)


@pytest.mark.parametrize("end", [_succeeds, _dies, _is_replayed, _is_replayed_and_succeeds])
async def test_an_instant_that_was_missed_stays_missed(world: World, end: Callable[[World, Hand], Awaitable[None]]):
    job, instants, _ = await _asked_for(world, catchUp={"mode": "none"})
    await end(world, await world.worker())
    await world.fire()
    told = await told_of(world, job)
    assert [(each.at, each.status, each.run_id) for each in told] == [(at, "missed", None) for at in instants]


async def test_an_instant_that_fired_is_told_with_its_own_run(world: World):
    job, instants, by_hand = await _asked_for(world, catchUp={"mode": "all"})
    await world.fire()
    worker = await world.worker()
    await worker.settle(await worker.claim())
    told = await told_of(world, job)
    assert [(each.at, each.status, each.run_status) for each in told] == [(at, "fired", "completed") for at in instants]
    assert len({each.run_id for each in told} - {encode("run", by_hand)}) == len(instants)


async def test_an_earlier_instant_of_a_one_time_job_keeps_its_own_run(world: World):
    at, worker = world.began - timedelta(hours=1), await world.worker()
    job = await world.job_id(scheduleAt=at.isoformat())
    await world.promoter.run_once()
    (own,) = await worker.claim()
    await worker.settle([own])
    await world.change(job, scheduleAt=(world.began + timedelta(hours=1)).isoformat())
    await world.submit(job=job, due=at)
    await world.promoter.run_once()
    await worker.settle(await worker.claim())
    (told,) = await told_of(world, job)
    assert (told.at, told.run_id) == (at, encode("run", own.id))


async def test_only_of_jobs_with_instants_it_is_noted_and_not_for_longer_than_they_are_told(world: World):
    await world.submit(2)
    await world.submit(job=await world.job_id(onDemand=True))
    assert await world.value("SELECT count(*) FROM foliot.by_hand") == 0
    job, _, run = await _asked_for(world)
    (far,) = await world.submit(job=job, due=world.began + timedelta(days=2))
    noted = await world.sql("SELECT tenant, job, run FROM foliot.by_hand ORDER BY run")
    assert [tuple(row) for row in noted] == [(world.tenant, job, run), (world.tenant, job, far)]
    line = world.database.line(hot=False)
    await world.sql("UPDATE foliot.by_hand SET at = at - interval '32 days' WHERE run = $1", run)
    await upkeep.tidy(line)
    await line.close()
    assert [row["run"] for row in await world.sql("SELECT run FROM foliot.by_hand")] == [far]
