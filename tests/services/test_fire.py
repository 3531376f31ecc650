"""Firing: every job of a schedule gets its run at every instant, once, or a record why not."""

from datetime import UTC, datetime, timedelta

import pytest

from foliot.domain.outcome import Ending
from foliot.domain.portion import LONGEST
from foliot.domain.states import State
from foliot.services import fire
from foliot.services.fire import Firer
from foliot.store.schedules import Awaited
from services.conftest import InChunks
from world import World

DAILY = {"every": "PT24H"}
DAY = timedelta(days=1)


async def _members(world: World, count: int) -> None:
    """Let so many more jobs subscribe to the only schedule."""
    await world.sql(
        "INSERT INTO subscription SELECT schedule, job + n, after, until, tenant, spec, exclusive, closed, payload"
        "  FROM subscription, generate_series(1, $1::int) AS n",
        count,
    )


async def _firing(world: World):
    (row,) = await world.sql("SELECT fired, skipped, closed_at IS NOT NULL AS closed FROM firing")
    return tuple(row)


async def test_jobs_of_a_tenant_with_the_same_recurrence_share_one_schedule(world: World):
    globex = await world.another_tenant()
    jobs = {await world.job_id(**DAILY) for _ in range(3)}
    jobs |= {await world.job_id(tenant=globex, cronExpression="0 0 * * *") for _ in range(2)}
    jobs |= {await world.job_id(tenant=globex, **DAILY) for _ in range(2)}
    assert await world.count("schedule") == 3
    at = await world.value("SELECT min(next_at) FROM schedule")
    await world.fire(at)
    rows = await world.sql("SELECT job, tenant, scheduled_at, origin FROM run WHERE id > 0")
    assert {row["job"] for row in rows} == jobs
    assert len(rows) == 7
    assert {(row["scheduled_at"], row["origin"]) for row in rows} == {(at, 0)}
    assert sorted(row["tenant"] for row in rows) == [world.tenant] * 3 + [globex] * 4


async def test_a_single_job_does_not_wait_for_another_tenants_crowd_of_the_same_instant(
    world: World, in_chunks: InChunks
):
    in_chunks(10)
    globex = await world.another_tenant()
    await world.job_id(**DAILY)
    await _members(world, 99)
    alone = await world.job_id(tenant=globex, **DAILY)
    at = await world.next_at()
    assert await world.firer.run_once(at) > 0  # both have come up, and have had a first chunk
    assert alone in {row["job"] for row in await world.sql("SELECT job FROM run WHERE id > 0")}
    assert await world.count("run") == 11


async def test_hundreds_of_jobs_fire_in_one_transaction(world: World):
    globex = await world.another_tenant()
    await world.job_id(**DAILY)
    await _members(world, 199)
    await world.job_id(tenant=globex, **DAILY)
    await world.sql(
        "INSERT INTO subscription SELECT schedule, job + n, after, until, tenant, spec, exclusive, closed, payload"
        "  FROM subscription, generate_series(1, 199) AS n WHERE tenant = $1",
        globex,
    )
    assert await world.firer.run_once(await world.next_at()) == 4  # a schedule and a firing of each
    assert [tuple(row) for row in await world.sql("SELECT fired, skipped FROM firing")] == [(200, 0), (200, 0)]
    assert await world.count("run") == await world.count("ready") == 400
    worker = await world.worker()
    first = [run.tenant for run in await worker.claim(100)]
    assert first.count(globex) == 50  # ranked like anything else


async def test_nothing_fires_before_its_time(world: World):
    await world.job_id(**DAILY)
    await world.fire(await world.next_at() - timedelta(microseconds=1))
    assert await world.count("run") == 0


async def test_an_instant_fires_once(world: World):
    await world.job_id(**DAILY)
    at = await world.next_at()
    await world.fire(at)
    await world.fire(at)
    assert await world.count("run") == 1
    assert await world.next_at() == at + DAY


async def test_a_large_schedule_fires_in_chunks_and_a_crash_between_them_loses_nothing(
    world: World, in_chunks: InChunks
):
    in_chunks(10)
    await world.job_id(**DAILY)
    await _members(world, 34)
    at = await world.next_at()
    await world.firer.run_once(at)
    assert await world.count("run") == 10
    assert await _firing(world) == (10, 0, False)
    successor = Firer(world.database)
    chunks = 0
    while await successor.run_once(at):
        chunks += 1
    await successor.close()
    assert chunks == 3
    assert await _firing(world) == (35, 0, True)
    assert await world.value("SELECT count(DISTINCT job) FROM run WHERE id > 0") == 35
    assert await world.value("SELECT count(DISTINCT rank) FROM ready WHERE lane > 0") == 35


async def test_workers_begin_with_a_short_chunk_while_the_others_are_made(
    world: World, monkeypatch, in_chunks: InChunks
):
    monkeypatch.setattr(fire, "FIRST_CHUNK", 3)
    in_chunks(10)
    await world.job_id(**DAILY)
    await _members(world, 14)
    at = await world.next_at()
    made = []
    while await world.firer.run_once(at):
        made.append((await world.count("ready"), world.firer._more))
    assert made == [(3, True), (13, True), (15, False)]
    assert await _firing(world) == (15, 0, True)


async def test_a_slow_machine_makes_fewer_runs_in_a_transaction(world: World, monkeypatch):
    """As slow as the ticks of its clock: each transaction seems to last for one of them."""
    now, tick = 0.0, 0.0

    def clock() -> float:
        nonlocal now
        now += tick
        return now

    monkeypatch.setattr(fire, "CHUNK", 20)
    slow = Firer(world.database, clock=clock)
    await world.job_id(**DAILY)
    await _members(world, 48)
    at = await world.next_at()
    made = []
    while await slow.run_once(at):
        made.append(await world.count("ready"))
        tick = 0.0 if len(made) < 3 else LONGEST
    await slow.close()
    assert made == [5, 12, 21, 32, 37, 42, 47, 49]
    assert await _firing(world) == (49, 0, True)


async def test_chunks_that_end_with_the_last_job_close_the_firing_too(world: World, in_chunks: InChunks):
    in_chunks(5)
    await world.job_id(**DAILY)
    await _members(world, 9)
    await world.fire(await world.next_at())
    assert await _firing(world) == (10, 0, True)
    assert await world.next_at() is not None  # not mistaken for deserted


async def test_many_large_schedules_are_all_done(world: World, in_chunks: InChunks):
    in_chunks(10)
    for hours in (24, 48, 72):
        await world.job_id(every=f"PT{hours}H")
    await _members(world, 14)
    at = await world.value("SELECT max(next_at) FROM schedule")
    await world.sql("UPDATE schedule SET next_at = $1", at)
    await world.fire(at)
    assert await world.count("run") == 45
    assert await world.value("SELECT count(*) FROM firing WHERE closed_at IS NULL") == 0


async def test_an_instant_that_comes_while_the_run_is_still_going_is_recorded_as_skipped(world: World):
    job = await world.job_id(**DAILY)
    first = await world.next_at()
    await world.fire(first)
    await world.fire(first + DAY)
    assert await world.count("run") == 1
    (row,) = await world.sql("SELECT job, scheduled_at, attempt, ending, state, error FROM history")
    assert tuple(row)[:5] == (job, first + DAY, 0, Ending.NONE, State.SKIPPED)
    assert "still going" in row["error"]
    assert await world.count("firing") == 0  # the run and the skip say it all


async def test_the_next_instant_fires_when_the_run_is_over(world: World):
    await world.job_id(**DAILY)
    first = await world.next_at()
    await world.fire(first)
    worker = await world.worker()
    await worker.settle(await worker.claim())
    await world.fire(first + DAY)
    assert [run.scheduled_at for run in await worker.claim()] == [first + DAY]


async def test_runs_may_overlap_where_their_owner_says_so(world: World):
    await world.job_id(overlap="allow", **DAILY)
    first = await world.next_at()
    await world.fire(first)
    await world.fire(first + DAY)
    rows = await world.sql("SELECT scheduled_at FROM run WHERE id > 0 ORDER BY 1")
    assert [row["scheduled_at"] for row in rows] == [first, first + DAY]


async def test_nothing_fires_before_schedule_at_or_after_ends_at(world: World):
    now = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    begin, end = now + 3 * DAY, now + 5 * DAY
    await world.job_id(
        cronExpression="0 0 * * *", overlap="allow", scheduleAt=begin.isoformat(), endsAt=end.isoformat()
    )
    for day in range(1, 9):
        await world.fire(now + day * DAY)
    rows = await world.sql("SELECT scheduled_at FROM run WHERE id > 0 ORDER BY 1")
    assert [row["scheduled_at"] for row in rows] == [begin, begin + DAY, end]


async def test_a_job_without_a_reserved_rank_is_left_to_promotion(world: World, monkeypatch):
    """It subscribed between the count and the chunk, with a clock that had been set back."""
    job = await world.job_id(**DAILY)

    async def see_nobody(*_):
        return Awaited({}, {}, {})

    monkeypatch.setattr(fire, "firing_flows", see_nobody)
    at = await world.next_at()
    await world.fire(at)
    (row,) = await world.sql("SELECT job, state FROM run WHERE id > 0")
    assert tuple(row) == (job, State.SCHEDULED)
    await world.promoter.run_once(at)
    assert await world.count("ready") == 1


async def test_how_long_to_sleep_is_told_by_the_databases_clock(world: World):
    assert await world.firer.pause() == 1.0
    await world.job_id(**DAILY)
    assert await world.firer.pause(longest=1e9) == pytest.approx(
        (await world.next_at() - datetime.now(UTC)).total_seconds(), abs=60
    )
    await world.make_overdue(by=2 * DAY)
    assert await world.firer.pause() == 0.0
