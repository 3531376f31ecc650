"""Back-fills: each instant of a past range is run once, in order, so many at a time, and the progress is exact."""

from datetime import timedelta

import pytest

from editing import changed
from filling import DAYS, FIRST, LAST, asked, begin, daily, finish, recount
from foliot.domain.backfill import Order, Reprocess
from foliot.domain.fairness import Priority
from foliot.domain.outcome import Ending, Outcome
from foliot.domain.states import State
from foliot.services import operate
from foliot.store import operations
from foliot.store.flows import reserve
from operating import look, operator, settle_down
from world import World, utc

DEAD = Outcome.dead(Ending.FAILED, "on purpose")


async def test_every_instant_of_the_range_is_run_once_and_in_order(world: World):
    job = await daily(world)
    operation = await begin(world, job)
    waiting = await look(world, operation)
    assert (waiting.status, waiting.started_at, waiting.progress.total) == ("pending", None, 10)
    async with operator(world) as duty:
        assert await finish(world, duty) == DAYS
    done = await look(world, operation)
    assert (done.status, done.progress.succeeded, done.progress.running) == ("completed", 10, 0)
    assert done.created_at <= done.started_at <= done.finished_at
    ended = await world.sql("SELECT scheduled_at, state FROM history WHERE job = $1 ORDER BY 1", job)
    assert [tuple(row) for row in ended] == [(day, State.SUCCEEDED) for day in DAYS]


async def test_the_newest_go_first_if_asked(world: World):
    await begin(world, await daily(world), order=Order.NEWEST)
    async with operator(world) as duty:
        assert await finish(world, duty) == DAYS[::-1]


@pytest.mark.parametrize("concurrency", [1, 3, 10, 1000])
async def test_so_many_are_under_way_and_never_more(world: World, concurrency: int):
    operation = await begin(world, await daily(world), concurrency=concurrency)
    worker = await world.worker()
    async with operator(world) as duty:
        for done in range(10):
            await settle_down(duty)
            expected = min(concurrency, 10 - done)
            assert await world.count("run") == expected
            assert (await look(world, operation)).progress.running == expected
            await worker.settle(await worker.claim(1))
            await recount(world)


async def test_a_run_that_waits_for_its_retry_is_still_under_way(world: World):
    operation = await begin(world, await daily(world), concurrency=1)
    worker = await world.worker()
    async with operator(world) as duty:
        await settle_down(duty)
        await worker.conclude(await worker.claim(), Outcome.again(Ending.FAILED, "later", timedelta(hours=1)))
        assert await duty.run_once() == 0
    progress = (await look(world, operation)).progress
    assert (progress.submitted, progress.running, progress.failed) == (1, 1, 0)


async def test_runs_are_ranked_as_bulk_with_their_instant_and_an_origin_of_their_own(world: World):
    job = await daily(world, priority="critical")
    operation = await begin(world, job)
    async with operator(world) as duty:
        await settle_down(duty)
    rows = await world.sql("SELECT origin, occurrence, scheduled_at, due_at, state FROM run WHERE id > 0 ORDER BY id")
    assert {(row["origin"], row["state"]) for row in rows} == {(operation, State.READY)}
    assert [row["occurrence"] for row in rows] == [row["scheduled_at"] for row in rows] == DAYS[:3]
    assert all(row["due_at"] > LAST for row in rows)
    assert [row["priority"] for row in await world.sql("SELECT priority FROM flow")] == [Priority.BULK]


async def test_what_is_fresh_goes_before_what_is_made_up_for(world: World):
    await begin(world, await daily(world), concurrency=10)
    async with operator(world) as duty:
        await settle_down(duty)
    fresh = await world.submit(3)
    worker = await world.worker()
    first = [run.id for run in await worker.claim(5)]
    assert set(fresh) <= set(first)


async def test_overlap_does_not_matter_to_a_backfill_nor_a_backfill_to_overlap(world: World):
    job = await daily(world)  # overlap: skip
    at = await world.next_at()
    await world.fire(at)
    await begin(world, job)
    async with operator(world) as duty:
        await settle_down(duty)
        assert await world.count("run") == 1 + 3
        worker = await world.worker()
        fired = [run for run in await worker.claim() if run.scheduled_at == at]
        await worker.settle(fired)
        await world.fire(at + timedelta(days=1))
    assert await world.value("SELECT count(*) FROM run WHERE origin = 0") == 1  # not skipped
    assert await world.value("SELECT count(*) FROM history WHERE state = $1", State.SKIPPED) == 0


async def _ended(world: World, job: int, **states: State) -> None:
    """Let the job have had runs that ended so, on these days of January."""
    spec = await world.value("SELECT spec FROM job WHERE id = $1", job)
    for number, (day, state) in enumerate(states.items()):
        await world.sql(
            "INSERT INTO history (run, job, scheduled_at, due_at, finished_at, tenant, spec, attempt, ending, state)"
            " VALUES (first_of_block(1, now()) + $1, $2, $3, $3, now(), $4, $5, 1, 1, $6)",
            number,
            job,
            utc(f"2026-01-{day.removeprefix('d')} 00:00"),
            world.tenant,
            spec,
            state,
        )


@pytest.mark.parametrize(
    ("reprocess", "left_out"),
    [(Reprocess.NONE, {1, 2, 3, 4, 5, 6}), (Reprocess.FAILED, {1}), (Reprocess.ALL, set())],
)
async def test_what_has_been_dealt_with_is_run_again_as_asked(world: World, reprocess: Reprocess, left_out: set[int]):
    job = await daily(world)
    await _ended(
        world,
        job,
        d01=State.SUCCEEDED,
        d02=State.DEAD,
        d03=State.CANCELLED,
        d04=State.SKIPPED,
        d05=State.UNKNOWN,
        d06=State.DISCARDED,
    )
    operation = await begin(world, job, reprocess=reprocess)
    assert (await look(world, operation)).progress.skipped == len(left_out)
    async with operator(world) as duty:
        ran = await finish(world, duty)
    assert ran == [day for number, day in enumerate(DAYS, 1) if number not in left_out]
    assert (await look(world, operation)).status == "completed"


async def test_the_last_run_of_an_instant_decides_whether_it_failed(world: World):
    job = await daily(world)
    await _ended(world, job, d01=State.DEAD)
    await world.sql(
        "INSERT INTO history SELECT run + 1, job, scheduled_at, due_at, started_at, finished_at, worker, fence, tenant,"
        " spec, attempt, ending, $1, error, target FROM history",
        State.SUCCEEDED,
    )
    plan = await world.operations.plan_backfill(world.tenant, job, asked(reprocess=Reprocess.FAILED))
    assert (plan.plan.already_done, plan.plan.to_run) == (1, 9)


async def test_a_retry_on_record_is_not_an_ending(world: World):
    job = await daily(world)
    await _ended(world, job, d01=State.SCHEDULED)
    plan = await world.operations.plan_backfill(world.tenant, job, asked())
    assert plan.plan.to_run == 10


async def _queued(world: World, job: int) -> None:
    """Let the first two days be queued already: one by hand, one by the schedule of an exclusive job."""
    for number, occurrence in enumerate(("2026-01-01", "-infinity"), 1):
        await world.sql(
            "INSERT INTO run (id, job, origin, occurrence, scheduled_at, due_at, tenant, spec, state, payload)"
            " VALUES ($1, $2, $1, $3::text::timestamptz, $4, now(), $5, 1, 2, '')",
            number,
            job,
            occurrence,
            DAYS[number - 1],
            world.tenant,
        )


async def test_an_instant_that_is_queued_for_another_reason_is_not_run_beside_it(world: World):
    job = await daily(world)
    await _queued(world, job)
    planned = await world.operations.plan_backfill(world.tenant, job, asked(reprocess=Reprocess.ALL))
    assert (planned.plan.under_way, planned.plan.to_run, planned.plan.first[0]) == (2, 8, DAYS[2])


async def test_an_instant_that_was_queued_since_is_passed_over(world: World):
    job = await daily(world)
    operation = await begin(world, job, until=DAYS[2])
    await _queued(world, job)
    async with operator(world) as duty:
        assert await finish(world, duty) == [DAYS[2]]
    progress = (await look(world, operation)).progress
    assert (progress.total, progress.skipped, progress.succeeded) == (3, 2, 1)


async def test_what_the_schedule_has_yet_to_fire_is_left_to_it(world: World):
    """A scheduler that is behind will come to these instants: a back-fill must not run them besides."""
    job = await daily(world)
    await world.make_overdue(by=timedelta(days=5))
    first = await world.next_at()
    past = asked(since=first - timedelta(days=2), until=first + timedelta(days=3), reprocess=Reprocess.ALL)
    plan = (await world.operations.plan_backfill(world.tenant, job, past)).plan
    assert (plan.to_run, plan.under_way) == (2, 4)
    await world.advance(first)  # past the cursor now, but not yet made into a run
    plan = (await world.operations.plan_backfill(world.tenant, job, past)).plan
    assert (plan.to_run, plan.under_way) == (2, 4)
    await world.fire(first)
    plan = (await world.operations.plan_backfill(world.tenant, job, past)).plan
    assert (plan.to_run, plan.under_way) == (2, 4)  # one of the four is a run by now


async def test_a_backfill_of_which_some_failed_says_so(world: World):
    operation = await begin(world, await daily(world), concurrency=10)
    worker = await world.worker()
    async with operator(world) as duty:
        await settle_down(duty)
        taken = await worker.claim()
        await worker.conclude(taken[:2], DEAD)
        await worker.settle(taken[2:9])
        await settle_down(duty)
        half = await look(world, operation)
        assert (half.status, half.progress.failed, half.progress.succeeded, half.progress.running) == (
            "running",
            2,
            7,
            1,
        )
        assert half.estimated_end_at > half.started_at
        await worker.settle(taken[9:])
        await settle_down(duty)
    done = await look(world, operation)
    assert (done.status, done.progress.failed, done.progress.succeeded) == ("failed", 2, 8)
    assert done.estimated_end_at is None


async def test_a_run_of_which_nothing_is_left_counts_as_failed(world: World):
    operation = await begin(world, await daily(world), until=FIRST)
    async with operator(world) as duty:
        await settle_down(duty)
        await world.sql("DELETE FROM run WHERE id > 0")
        await settle_down(duty)
    assert (await look(world, operation)).progress.failed == 1


async def test_later_instants_follow_an_edit(world: World):
    job = await daily(world, payload=1)
    operation = await begin(world, job)
    worker = await world.worker("noop", "other")
    async with operator(world) as duty:
        await settle_down(duty)
        await world.control.change(world.tenant, job, changed(payload=2, handler="other"))
        await worker.settle(await worker.claim())
        await settle_down(duty)
        taken = await worker.claim()
    assert [run.payload for run in taken] == [b"2"] * 3
    assert [run.scheduled_at for run in taken] == DAYS[3:6]
    assert (await look(world, operation)).progress.submitted == 6


async def test_an_edit_of_the_schedule_does_not_move_the_instants_of_a_backfill(world: World):
    job = await daily(world)
    await begin(world, job)
    await world.control.change(world.tenant, job, changed(every="PT1H"))
    async with operator(world) as duty:
        assert await finish(world, duty) == DAYS


async def test_a_paused_job_holds_its_backfill_and_a_resumed_one_lets_it_go_on(world: World):
    job = await daily(world)
    operation = await begin(world, job)
    worker = await world.worker()
    async with operator(world) as duty:
        await settle_down(duty)
        (running,) = await worker.claim(1)
        await world.control.pause(world.tenant, job)
        await worker.settle([running])
        await settle_down(duty)
        held = await look(world, operation)
        assert (held.status, held.progress.submitted, held.progress.running) == ("running", 3, 2)
        assert "resume" in held.message
        assert await worker.claim() == []
        await world.resume(job)
        await world.promoter.run_once()
        assert sorted([FIRST, *await finish(world, duty)]) == DAYS
    done = await look(world, operation)
    assert (done.status, done.message) == ("completed", None)


async def test_a_cancelled_job_takes_its_backfill_along(world: World):
    job = await daily(world)
    operation = await begin(world, job)
    worker = await world.worker()
    async with operator(world) as duty:
        await settle_down(duty)
        running = await worker.claim(1)
        await world.control.cancel(world.tenant, job)
        await settle_down(duty)
        stopped = await look(world, operation)
        assert (stopped.status, stopped.message, stopped.finished_at) == ("cancelled", "the job was cancelled", None)
        await worker.settle(running)
        await settle_down(duty)
    over = await look(world, operation)
    assert over.finished_at is not None
    assert (over.progress.submitted, over.progress.succeeded, over.progress.cancelled) == (3, 1, 2)
    assert await world.count("run") == await world.count("ready") == 0


async def test_many_backfills_share_a_round(world: World, monkeypatch):
    monkeypatch.setattr(operate, "CHUNK", 6)
    globex = await world.another_tenant()
    mine = [await begin(world, await daily(world), concurrency=10) for _ in range(2)]
    body = await world.operations.backfill(globex, await daily(world, tenant=globex), asked(concurrency=10))
    assert body
    async with operator(world) as duty:
        await duty.run_once()
        rows = await world.sql("SELECT submitted FROM operation")
        assert [row["submitted"] for row in rows] == [2, 2, 2]
        await settle_down(duty)
    assert await world.count("run") == await world.count("ready") == 30
    assert await world.value("SELECT count(DISTINCT (lane, rank)) FROM ready WHERE lane > 0") >= 20  # two flows
    assert (await look(world, mine[0])).progress.running == 10


async def test_more_backfills_than_one_round_serves_all_have_their_turn(world: World, monkeypatch):
    monkeypatch.setattr(operate, "MOST_OPERATIONS", 2)
    for _ in range(5):
        await begin(world, await daily(world), concurrency=1)
    async with operator(world) as duty:
        rounds = 0
        while await world.count("run") < 5:
            await duty.run_once()
            rounds += 1
        assert rounds == 3
        assert await duty.pause() in {0.0, operate.SHORTEST}


async def test_it_looks_often_while_something_goes_on_and_seldom_otherwise(world: World):
    async with operator(world) as duty:
        assert (await duty.run_once(), await duty.pause()) == (0, operate.IDLE)
        await begin(world, await daily(world), concurrency=1)
        await settle_down(duty)
        naps = [await duty.pause() for _ in range(10)]
        assert naps[0] == operate.SHORTEST
        assert naps == sorted(naps)
        assert naps[-1] == operate.LONGEST


async def test_a_job_that_moved_to_a_lane_without_a_reserved_rank_is_left_to_promote(world: World):
    job = await daily(world)
    await begin(world, job)
    async with operator(world) as duty:
        wanted = await operations.hungry(duty._line, [await world.value("SELECT id FROM operation")])
        counts = {wanted[0].flow: 3}
        ranks = await reserve(duty._ranks, counts, {}, 3)
        await world.control.change(world.tenant, job, changed(queue="elsewhere"))
        async with world.database.transaction() as connection:
            assert await operations.feed(connection, wanted, ranks, counts) == (3, 0)
    assert (await world.count("ready"), await world.count("run")) == (0, 3)
    await world.promoter.run_once()
    assert await world.count("ready") == 3
