"""Replays and discards of a filter: an operation that walks over what was dead when it was asked for, at its pace."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from burying import DEAD, asked, begin, bury, discard, replay
from foliot.domain.errors import Conflict, NotFound
from foliot.domain.letters import Selection
from foliot.domain.operation import OperationKind
from foliot.domain.outcome import Ending, Outcome
from foliot.services import operate
from foliot.store import letters, sweeps
from operating import look, operator, settle_down
from world import World

SECOND = timedelta(seconds=1)


async def _told(world: World, operation: int) -> tuple[str, int, int, int, int, int]:
    view = await look(world, operation)
    progress = view.progress
    return view.status, progress.total, progress.submitted, progress.succeeded, progress.failed, progress.skipped


async def test_all_that_is_meant_is_replayed_once_and_followed_to_its_end(world: World):
    dead = await bury(world, 5)
    await bury(world, 1, Outcome.dead(Ending.FAILED, "other", "OSError"))
    operation = await begin(world, selection=Selection(error_class="ValueError"))
    assert await _told(world, operation) == ("pending", 5, 0, 0, 0, 0)
    worker = await world.worker()
    async with operator(world) as duty:
        await settle_down(duty)
        assert await _told(world, operation) == ("running", 5, 5, 0, 0, 0)
        taken = await worker.claim()
        assert [run.id for run in taken] == dead
        await worker.settle(taken[:4])
        await worker.conclude(taken[4:], DEAD)
        await settle_down(duty)
    assert await _told(world, operation) == ("failed", 5, 5, 4, 1, 0)
    assert await world.count("dead_letter") == 2


async def test_what_dies_again_is_not_replayed_for_ever(world: World):
    await bury(world, 3)
    operation = await begin(world, concurrency=1)
    worker, tries = await world.worker(), 0
    async with operator(world) as duty:
        while await world.value("SELECT count(*) FROM operation WHERE finished_at IS NULL"):
            await settle_down(duty)
            taken = await worker.claim()
            tries += len(taken)
            await worker.conclude(taken, DEAD)
            assert tries <= 3
    assert await _told(world, operation) == ("failed", 3, 3, 0, 3, 0)


async def test_so_many_a_second_by_the_clock(world: World):
    await bury(world, 30)
    await begin(world, per_second=10)
    start = datetime(2026, 6, 1, tzinfo=UTC)
    gone = []
    async with operator(world) as duty:
        for step in range(9):
            await duty.run_once(start + step * SECOND / 2)
            gone.append(await world.count("run"))
        await duty.run_once(start + timedelta(hours=1))  # nothing is made up for
        gone.append(await world.count("run"))
    assert gone == [1, 6, 11, 16, 21, 26, 30, 30, 30, 30]


async def test_after_an_absence_hardly_more_than_one_seconds_worth_goes_at_once(world: World):
    await bury(world, 50)
    await begin(world, per_second=10)
    start = datetime(2026, 6, 1, tzinfo=UTC)
    async with operator(world) as duty:
        await duty.run_once(start)
        await duty.run_once(start + timedelta(hours=1))
        assert await world.count("run") == 1 + 11


async def test_no_more_are_under_way_than_asked(world: World):
    await bury(world, 5)
    await begin(world, concurrency=2)
    worker = await world.worker()
    async with operator(world) as duty:
        for left in (5, 4, 3, 2, 1):
            await settle_down(duty)
            assert await world.count("run") == min(2, left)
            await worker.settle(await worker.claim(1))
        await settle_down(duty)
    assert await world.value("SELECT state FROM operation") == 2


async def test_a_discard_needs_no_worker_and_no_pace(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(operate, "CHUNK", 2)
    await bury(world, 5)
    operation = await begin(world, OperationKind.DISCARD)
    async with operator(world) as duty:
        await settle_down(duty)
        await duty.run_once()
    assert await _told(world, operation) == ("completed", 5, 5, 5, 0, 0)
    assert await world.count("dead_letter") == await world.count("run") == 0
    notes = await world.sql("SELECT DISTINCT error FROM history WHERE ending = 0")
    assert [row[0][:16] for row in notes] == ["discarded by op_"]


async def test_a_dry_run_counts_and_writes_nothing(world: World):
    open_, over = await world.job_id(name="a", onDemand=True), await world.job_id(name="b", onDemand=True)
    await bury(world, 2, job=open_)
    await bury(world, 1, job=over)
    await world.control.cancel(world.tenant, over)
    planned = await world.operations.plan_sweep(world.tenant, asked())
    assert (planned.operation_id, planned.status, planned.progress.total, planned.progress.skipped) == (
        None,
        "planned",
        3,
        1,
    )
    assert "2 dead letters would be replayed" in planned.message
    assert await world.count("operation") == 0
    discarding = await world.operations.plan_sweep(world.tenant, asked(OperationKind.DISCARD))
    assert "3 dead letters would be discarded" in discarding.message


async def test_what_cannot_be_replayed_or_was_dealt_with_since_is_skipped(world: World):
    over = await world.job_id(onDemand=True)
    dead = await bury(world, 4)
    await bury(world, 1, job=over)
    operation = await begin(world)
    await world.control.cancel(world.tenant, over)
    await replay(world, dead[0])
    await discard(world, dead[1])
    worker = await world.worker()
    async with operator(world) as duty:
        await settle_down(duty)
        await worker.settle(await worker.claim())
        await settle_down(duty)
    assert await _told(world, operation) == ("completed", 5, 2, 2, 0, 3)
    assert await world.count("dead_letter") == 1


async def test_more_than_was_counted_does_not_break_it(world: World):
    """A run that was about to die is not counted, but has died before the operation was made."""
    (late,) = await bury(world)
    operation = await begin(world, selection=Selection(error_class="ValueError"))
    await world.sql("UPDATE operation SET total = 1, skipped = 0")
    more = await bury(world, 2)
    await world.sql("UPDATE dead_letter SET died_at = (SELECT created_at FROM operation)")
    worker = await world.worker()
    async with operator(world) as duty:
        await settle_down(duty)
        assert {run.id for run in await worker.claim()} <= {late, *more}
    view = await look(world, operation)
    assert view.progress.submitted + view.progress.skipped <= view.progress.total


async def test_nothing_to_do_is_done_at_once(world: World):
    operation = await begin(world)
    assert await _told(world, operation) == ("completed", 0, 0, 0, 0, 0)


async def test_a_cancelled_replay_hands_out_no_more_and_what_came_back_goes_on(world: World):
    await bury(world, 5)
    operation = await begin(world, concurrency=2)
    worker = await world.worker()
    async with operator(world) as duty:
        await settle_down(duty)
        cancelled = await world.operations.cancel(world.tenant, operation)
        assert (cancelled.status, cancelled.finished_at, cancelled.progress.running) == ("cancelled", None, 2)
        await settle_down(duty)
        assert await world.count("run") == 2
        await worker.settle(await worker.claim())
        await settle_down(duty)
    view = await look(world, operation)
    assert (view.status, view.progress.succeeded, view.finished_at is not None) == ("cancelled", 2, True)
    assert await world.count("dead_letter") == 3
    await world.operations.cancel(world.tenant, operation)  # again is no error


async def test_another_tenants_are_neither_counted_nor_touched(world: World):
    globex = await world.another_tenant()
    await bury(world, 2, tenant=globex)
    await bury(world, 1)
    operation = await begin(world)
    async with operator(world) as duty:
        await settle_down(duty)
    assert (await look(world, operation)).progress.total == 1
    assert await world.count("dead_letter") == 2
    with pytest.raises(NotFound):
        await world.operations.cancel(globex, operation)


async def test_two_replays_of_the_same_run_at_once_bring_it_back_once(world: World):
    worker = await world.worker()
    for _ in range(25):
        (run,) = await bury(world, worker=worker)
        done = await asyncio.gather(*(replay(world, run) for _ in range(3)))
        assert sum(len(each.run_ids) for each in done) == 1
        assert await world.count("ready") == 1
        await worker.settle(await worker.claim())


async def test_a_second_replay_waits_for_the_first_and_finds_nothing(world: World):
    runs = await bury(world, 3)
    async with world.database.transaction() as first:
        told = await letters.replay(first, world.tenant, dict.fromkeys(runs, 1), "first")
        assert all(each.done for each in told)
        second = asyncio.create_task(replay(world, *reversed(runs)))
        third = asyncio.create_task(discard(world, *runs))
        await world.until_waiting(2)
    assert (await second).run_ids == (await third).run_ids == []
    assert await world.count("run") == 3
    assert await world.value("SELECT count(*) FROM history WHERE state = 10") == 0


async def test_a_replay_waits_for_a_discard_and_finds_nothing(world: World):
    runs = await bury(world, 2)
    async with world.database.transaction() as first:
        assert await letters.discard(first, world.tenant, runs, "first") == runs
        second = asyncio.create_task(replay(world, *runs))
        await world.until_waiting()
    assert (await second).run_ids == []
    assert await world.count("run") == 0


async def test_a_replay_that_meets_a_cancel_of_its_job_comes_before_it_or_is_refused(world: World):
    job = await world.job_id(onDemand=True)
    (run,) = await bury(world, job=job)
    async with world.unfinished() as owner:
        await owner.run("lock_job", world.tenant, job)
        await owner.execute("UPDATE job SET gate = 2 WHERE id = $1", job)
        second = asyncio.create_task(replay(world, run))
        await world.until_waiting()
    assert "cancelled" in (await second).refused[0].reason
    assert await world.count("dead_letter") == 1


async def test_two_who_serve_the_same_operation_replay_everything_once(world: World):
    dead = await bury(world, 20)
    operation = await begin(world, concurrency=3)
    worker = await world.worker()
    seen: list[int] = []
    async with operator(world) as one, operator(world) as other:
        while await world.value("SELECT count(*) FROM operation WHERE finished_at IS NULL"):
            await asyncio.gather(one.run_once(), other.run_once())
            taken = await worker.claim()
            seen += [run.id for run in taken]
            await worker.settle(taken)
    assert sorted(seen) == dead
    assert await _told(world, operation) == ("completed", 20, 20, 20, 0, 0)


async def test_a_cancel_waits_for_a_step_in_mid_flight_and_counts_it(world: World):
    await bury(world, 2)
    operation = await begin(world, concurrency=1)
    async with operator(world) as duty:
        (sweep,) = await sweeps.hungry_sweeps(duty._line, [operation], None)
        (letter,) = await sweeps.next_letters(duty._line, sweep, 1)
        async with world.database.transaction() as step:
            assert await sweeps.lock_sweep(step, sweep)
            await letters.replay(step, world.tenant, {letter.id: 1}, "x", sweep.created_at)
            await sweeps.move_sweep(step, sweep, sweeps.Step([letter.id], 0, False, letter.id, None))
            cancelling = asyncio.create_task(world.operations.cancel(world.tenant, operation))
            await world.until_waiting()
        assert (await cancelling).progress.submitted == 1
        await settle_down(duty)
    assert await world.count("run") == 1
    assert await world.count("dead_letter") == 1


async def test_a_step_that_was_overtaken_does_nothing(world: World):
    await bury(world, 2)
    operation = await begin(world)
    async with operator(world) as duty:
        (seen,) = await sweeps.hungry_sweeps(duty._line, [operation], None)
        await duty.run_once()
        async with world.database.transaction() as connection:
            assert not await sweeps.lock_sweep(connection, seen)


async def test_a_job_that_is_being_edited_holds_up_its_own_operation_alone(world: World):
    job = await world.job_id(onDemand=True)
    await bury(world, 1, job=job)
    await bury(world, 1, Outcome.dead(Ending.FAILED, "x", "OSError"))
    await begin(world, selection=Selection(job=job))
    await begin(world, selection=Selection(error_class="OSError"))
    async with operator(world) as duty:
        async with world.unfinished() as owner:
            await owner.execute("SELECT FROM job WHERE id = $1 FOR UPDATE", job)
            await duty.run_once()
            assert await world.count("run") == 1
        await duty.run_once()
    assert await world.count("run") == 2


async def test_an_operation_that_is_over_cannot_be_cancelled(world: World):
    operation = await begin(world)
    with pytest.raises(Conflict):
        await world.operations.cancel(world.tenant, operation)
