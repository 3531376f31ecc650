"""Pause and cancel against everything that makes runs ready at the same moment: nothing slips by, nothing is stuck."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from editing import changed
from foliot.domain.ids import decode
from foliot.domain.outcome import Ending, Outcome
from foliot.domain.states import State
from foliot.store import fleet
from foliot.store.waiting import fetch_due
from world import Hand, World

AT_ONCE = Outcome.again(Ending.FAILED, "boom", timedelta())
LATER = Outcome.again(Ending.FAILED, "boom", timedelta(hours=1))
SOON = "2026-01-01T00:00:00Z"


async def _running(world: World) -> tuple[int, Hand, list]:
    """A one-time job whose run a worker holds."""
    job = await world.job_id(scheduleAt=SOON)
    await world.promoter.run_once()
    worker = await world.worker()
    return job, worker, await worker.claim()


async def _state(world: World) -> int | None:
    return await world.value("SELECT state FROM run WHERE id > 0")


async def _ready(world: World) -> int:
    await world.promoter.run_once()
    return await world.count("ready")


async def test_a_ready_run_of_a_paused_job_is_held_and_goes_on_when_resumed(world: World):
    job = await world.job_id(scheduleAt=SOON)
    assert await _ready(world) == 1
    await world.control.pause(world.tenant, job)
    assert await _state(world) == State.BLOCKED
    assert await _ready(world) == 0
    await world.resume(job)
    assert await _ready(world) == 1


async def test_a_waiting_run_of_a_paused_job_does_not_become_ready(world: World):
    job = await world.job_id(scheduleAt=SOON)
    await world.control.pause(world.tenant, job)
    assert await _ready(world) == 0


async def test_a_timer_of_a_paused_job_that_falls_due_is_held(world: World):
    at = datetime.now(UTC) + timedelta(hours=1)
    job = await world.job_id(scheduleAt=at.isoformat())
    await world.control.pause(world.tenant, job)
    await world.promoter.run_once(at)
    assert (await world.count("timer"), await _state(world), await world.count("ready")) == (0, State.BLOCKED, 0)
    await world.resume(job)
    await world.promoter.run_once(at)
    assert await world.count("ready") == 1


async def test_what_a_worker_holds_goes_on_when_its_job_is_paused(world: World):
    job, worker, taken = await _running(world)
    await world.control.pause(world.tenant, job)
    assert await worker.settle(taken) == 1
    assert await world.status(job) == "completed"


@pytest.mark.parametrize("outcome", [Outcome.released(), AT_ONCE])
async def test_a_run_that_comes_back_to_a_paused_job_is_held(world: World, outcome: Outcome):
    job, worker, taken = await _running(world)
    await world.control.pause(world.tenant, job)
    await worker.conclude(taken, outcome)
    assert await _ready(world) == 0
    assert await _state(world) == State.BLOCKED
    await world.resume(job)
    assert await _ready(world) == 1


async def test_a_run_that_the_reaper_brings_back_to_a_paused_job_is_held(world: World):
    job, worker, _ = await _running(world)
    await world.control.pause(world.tenant, job)
    await worker.die()
    assert await fleet.reap(worker.line) == fleet.Reaped(claims=1, returned=0, dead=0)
    assert await _state(world) == State.BLOCKED
    await world.resume(job)
    assert await _ready(world) == 1


@pytest.mark.parametrize("outcome", [Outcome.released(), AT_ONCE, LATER])
async def test_a_run_that_comes_back_to_a_cancelled_job_ends(world: World, outcome: Outcome):
    job, worker, taken = await _running(world)
    await world.control.cancel(world.tenant, job)
    assert await worker.conclude(taken, outcome) == 1
    assert await world.count("run") == await _ready(world) == 0
    assert await world.value("SELECT state FROM history") == State.CANCELLED
    assert await world.status(job) == "cancelled"


@pytest.mark.parametrize("began", [True, False])
async def test_a_run_that_the_reaper_brings_back_to_a_cancelled_job_ends(world: World, *, began: bool):
    job, worker, taken = await _running(world)
    if began:
        await worker.note_started(taken)
    await world.control.cancel(world.tenant, job)
    await worker.die()
    assert await fleet.reap(worker.line) == fleet.Reaped(claims=1, returned=0, dead=0)
    assert await world.count("run") == await world.count("ready") == 0
    (row,) = await world.sql("SELECT ending, state FROM history")
    assert tuple(row) == (Ending.LOST if began else Ending.NONE, State.CANCELLED)


async def test_a_hand_back_in_mid_flight_is_waited_for_by_a_pause(world: World):
    job, worker, taken = await _running(world)
    async with world.unfinished() as line:
        await worker.on(line).conclude(taken, Outcome.released())
        pausing = asyncio.create_task(world.control.pause(world.tenant, job))
        await world.until_waiting()
    await pausing
    assert await _ready(world) == 0


async def test_a_hand_back_waits_for_a_pause_in_mid_flight(world: World):
    job, worker, taken = await _running(world)
    async with world.unfinished() as owner:
        await owner.run("lock_job", world.tenant, job)
        await owner.run("set_gate", world.tenant, job, 1, datetime.now(UTC))
        returning = asyncio.create_task(worker.conclude(taken, Outcome.released()))
        await world.until_waiting()
        await owner.run("block_runs", job)
    assert await returning == 1
    assert await _state(world) == State.BLOCKED


@pytest.mark.parametrize("table", ["runs", "timers"])
async def test_a_promotion_in_mid_flight_is_waited_for_by_a_pause(world: World, table):
    job, now = await _due(world, table)
    async with world.unfinished() as promoter:
        await _promote(world, promoter, table, now)
        pausing = asyncio.create_task(world.control.pause(world.tenant, job))
        await world.until_waiting()
    await pausing
    assert (await _state(world), await world.count("ready")) == (State.BLOCKED, 0)


@pytest.mark.parametrize("table", ["runs", "timers"])
async def test_a_promotion_waits_for_a_resume_in_mid_flight_and_does_not_hold_the_run_for_ever(world: World, table):
    job, now = await _due(world, table)
    await world.control.pause(world.tenant, job)
    await world.sql("UPDATE run SET state = 0 WHERE job = $1", job)  # as if it had come up since
    async with world.unfinished() as owner:
        await owner.run("lock_job", world.tenant, job)
        await owner.run("set_gate", world.tenant, job, 0, None)
        await owner.run("hold_timers", job, await world.value("SELECT run FROM job"), False)
        await owner.run("unblock_runs", job)
        promoting = asyncio.create_task(world.promoter.run_once(now))
        await world.until_waiting()
    await promoting
    assert (await _state(world), await world.count("ready")) == (State.READY, 1)


@pytest.mark.parametrize("table", ["runs", "timers"])
async def test_a_promotion_that_came_first_does_not_escape_a_cancel(world: World, table):
    job, now = await _due(world, table)
    async with world.unfinished() as promoter:
        await _promote(world, promoter, table, now)
        cancelling = asyncio.create_task(world.control.cancel(world.tenant, job))
        await world.until_waiting()
    await cancelling
    assert await world.count("run") == await world.count("ready") == await world.count("timer") == 0
    assert await world.value("SELECT array_agg(state) FROM history") == [State.CANCELLED]


@pytest.mark.parametrize("table", ["runs", "timers"])
async def test_a_promotion_that_came_second_finds_nothing_of_a_cancelled_job(world: World, table):
    job, now = await _due(world, table)
    run = await world.value("SELECT run FROM job")
    async with world.unfinished() as owner:
        await owner.run("lock_job", world.tenant, job)
        await owner.run("set_gate", world.tenant, job, 2, None)
        await owner.run("cancel_timers", job, run)
        await owner.run("cancel_runs", job)
        promoting = asyncio.create_task(world.promoter.run_once(now))
        await world.until_waiting()
    assert await promoting == 0
    assert await world.count("run") == await world.count("ready") == await world.count("timer") == 0
    assert await world.value("SELECT array_agg(state) FROM history") == [State.CANCELLED]


async def test_a_promotion_waits_for_a_pause_in_mid_flight_and_holds_the_run(world: World):
    job, now = await _due(world, "timers")
    async with world.unfinished() as owner:
        await owner.run("lock_job", world.tenant, job)
        await owner.run("set_gate", world.tenant, job, 1, datetime.now(UTC))
        await owner.run("hold_timers", job, await world.value("SELECT run FROM job"), True)
        promoting = asyncio.create_task(world.promoter.run_once(now))
        await world.until_waiting()
        await owner.run("block_runs", job)
    await promoting
    assert (await _state(world), await world.count("ready")) == (State.BLOCKED, 0)


async def test_a_paused_job_that_is_given_another_instant_is_held_when_it_comes(world: World):
    job, _ = await _due(world, "timers")
    await world.control.pause(world.tenant, job)
    later = datetime.now(UTC) + timedelta(hours=2)
    await world.control.change(world.tenant, job, changed(scheduleAt=later.isoformat()))
    await world.promoter.run_once(later)
    assert (await _state(world), await world.count("ready")) == (State.BLOCKED, 0)
    await world.resume(job)
    await world.promoter.run_once(later)
    assert (await _state(world), await world.count("ready")) == (State.READY, 1)


async def test_a_claim_in_mid_flight_goes_on_though_its_job_is_cancelled(world: World):
    job = await world.job_id(scheduleAt=SOON)
    await world.promoter.run_once()
    worker = await world.worker()
    async with world.unfinished() as line:
        taken = await worker.on(line).claim()
        cancelling = asyncio.create_task(world.control.cancel(world.tenant, job))
        await world.until_waiting()
    assert (await cancelling).status == "cancelled"
    assert await worker.settle(taken) == 1
    assert await world.value("SELECT array_agg(state) FROM history") == [State.SUCCEEDED]


async def test_a_claim_skips_what_is_being_cancelled(world: World):
    job = await world.job_id(scheduleAt=SOON)
    await world.promoter.run_once()
    worker = await world.worker()
    async with world.unfinished() as owner:
        await owner.run("cancel_runs", job)
        assert await worker.claim() == []
    assert await world.count("history") == 1


async def _due(world: World, table: str) -> tuple[int, datetime | None]:
    """A one-time job whose run is due in that table, by the clock that is returned."""
    if table == "runs":
        return await world.job_id(scheduleAt=SOON), None
    at = datetime.now(UTC) + timedelta(hours=1)
    view = await world.job(scheduleAt=at.isoformat())
    return decode("job", view.job_id), at


async def _promote(world: World, line, table, now) -> None:
    due = await fetch_due(world.promoter._line, table, 10, now)
    assert len(due) == 1
    at = [now] if table == "runs" else []
    await line.run(f"promote_{table}", [run.id for run in due], [run.lane for run in due], [1_000], *at)
