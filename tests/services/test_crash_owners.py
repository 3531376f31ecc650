"""C11: an owner cancels, pauses or deletes while a worker claims or settles: one of them wins, and both are told."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from foliot.domain.errors import Conflict
from foliot.domain.outcome import SUCCEEDED, Ending, Outcome
from foliot.domain.states import State
from world import Hand, World

REPEATS = 25
AGAIN = Outcome.again(Ending.FAILED, "boom", timedelta(hours=1))


async def _one_time_job(world: World) -> tuple[int, int]:
    """Its number, and that of its run, which is ready."""
    job = await world.job_id(scheduleAt="2026-01-01T00:00:00Z")
    await world.promoter.run_once()
    return job, await world.value("SELECT id FROM run WHERE job = $1", job)


async def _race(world: World, number: int, owner: Awaitable[Any], worker: Awaitable[Any]) -> tuple[Any, Any]:
    """What both are answered. The owner needs several statements; before which of them the worker comes is `number`.

    The first time that is before all of them, the last time after.
    """
    owning = asyncio.ensure_future(owner)
    for _ in range(number):
        await world.value("SELECT 1")
    if number == REPEATS - 1:
        await asyncio.wait([owning])
    answer = await worker
    return await owning, answer


async def _status(world: World, run: int) -> str:
    return (await world.insights.run(world.tenant, run)).status


async def test_c11_of_a_cancel_and_a_claim_one_wins_and_the_owner_is_told(world: World):
    worker, won = await world.worker(), Counter[str]()

    async def cancel(job: int, run: int) -> str:
        assert (await world.control.cancel(world.tenant, job)).status == "cancelled"
        return await _status(world, run)

    for number in range(REPEATS):
        job, run = await _one_time_job(world)
        told, taken = await _race(world, number, cancel(job, run), worker.claim())
        assert told == ("running" if taken else "cancelled")
        assert await worker.settle(taken) == len(taken)
        (row,) = await world.sql("SELECT state FROM history WHERE job = $1", job)
        assert row["state"] == (State.SUCCEEDED if taken else State.CANCELLED)
        assert await world.status(job) == "cancelled"
        won[told] += 1
    assert won["running"]
    assert won["cancelled"]
    assert await world.count("run") == await world.count("ready") == 0


async def _delete(world: World, job: int) -> str:
    await world.control.cancel(world.tenant, job)
    try:
        await world.control.erase(world.tenant, job)
    except Conflict as error:
        return error.message
    return "gone"


async def test_c11_of_a_delete_and_a_claim_one_wins_and_the_owner_is_told(world: World):
    worker, won = await world.worker(), Counter[str]()
    for number in range(REPEATS):
        job, run = await _one_time_job(world)
        told, taken = await _race(world, number, _delete(world, job), worker.claim())
        assert told == ("runs of the job still go on" if taken else "gone")
        won[told] += 1
        if taken:
            assert await worker.settle(taken) == 1
            assert await _status(world, run) == "completed"
            assert await _delete(world, job) == "gone"
    assert len(won) == 2
    assert await world.count("job") == await world.count("run") == await world.count("history") == 0


async def test_c11_nothing_begins_after_a_pause_was_acknowledged(world: World):
    worker, won = await world.worker(), Counter[bool]()
    for number in range(REPEATS):
        job, run = await _one_time_job(world)
        paused, taken = await _race(world, number, world.control.pause(world.tenant, job), worker.claim())
        assert paused.paused_at is not None
        assert await worker.claim() == []
        await world.promoter.run_once()
        assert await world.count("ready") == 0
        assert (await _status(world, run) == "running") == bool(taken)
        won[bool(taken)] += 1
        await world.control.cancel(world.tenant, job)
    assert len(won) == 2


async def test_c11_of_a_cancel_and_a_result_one_wins_and_the_owner_is_told(world: World):
    """A retry that comes after the cancel ends the run; one that comes before it is cancelled while it waits."""
    worker, won = await world.worker(), Counter[str]()

    async def cancel(run: int) -> str:
        await world.canceller.cancel(world.tenant, run)
        return await _status(world, run)

    for number in range(REPEATS):
        (run,) = await world.submit()
        taken = await worker.claim()
        told, ours = await _race(world, number, cancel(run), worker.conclude(taken, AGAIN))
        assert ours == 1
        assert await world.count("run") == await world.count("ready") == 0
        rows = await world.sql("SELECT state FROM history WHERE run = $1 ORDER BY finished_at", run)
        states = [row["state"] for row in rows]
        assert states in ([State.CANCELLED], [State.SCHEDULED, State.CANCELLED])
        first = "result" if len(states) == 2 else "cancel"
        assert told in ({"cancelled"} if first == "result" else {"cancelled", "running"})
        won[first] += 1
    assert len(won) == 2


async def _cancel(world: World, job: int) -> str:
    await world.control.cancel(world.tenant, job)
    return await world.status(job)


async def _pause(world: World, job: int) -> str:
    try:
        await world.control.pause(world.tenant, job)
    except Conflict as error:
        return error.message
    return "paused"


async def _starts_only_when_resumed(world: World, worker: Hand, job: int, run: int) -> None:
    later = datetime.now(UTC) + timedelta(hours=2)
    await world.promoter.run_once(later)
    assert await worker.claim() == []
    await world.resume(job)
    await world.promoter.run_once(later)
    again = await worker.claim()
    assert [each.id for each in again] == [run]
    assert await worker.settle(again) == 1


@pytest.mark.parametrize("outcome", [SUCCEEDED, AGAIN], ids=["a success", "a retry"])
@pytest.mark.parametrize("deed", [_cancel, _pause, _delete], ids=["cancel", "pause", "delete"])
async def test_c11_a_result_counts_whatever_its_owner_wants_and_a_retry_does_what_the_owner_wants(
    world: World, deed: Callable[[World, int], Awaitable[str]], outcome: Outcome
):
    worker, answers, succeeds = await world.worker(), Counter[tuple[Any, ...]](), outcome is SUCCEEDED
    for number in range(REPEATS):
        job, run = await _one_time_job(world)
        taken = await worker.claim()
        say = worker.settle(taken) if succeeds else worker.conclude(taken, outcome)
        told, ours = await _race(world, number, deed(world, job), say)
        assert ours == 1
        assert await world.count("ready") == 0
        rows = await world.sql("SELECT state FROM history WHERE run = $1 ORDER BY finished_at", run)
        states = tuple(State(row["state"]) for row in rows)
        answers[told, states] += 1
        if told == "paused" and not succeeds:
            await _starts_only_when_resumed(world, worker, job, run)
        elif told == "runs of the job still go on":
            assert await _delete(world, job) == "gone"
        assert await world.count("run") == 0, "nothing of it is left"
    cancelled, retried_first = (State.CANCELLED,), (State.SCHEDULED, State.CANCELLED)
    assert (
        answers.keys()
        == {
            (_cancel, True): {("cancelled", (State.SUCCEEDED,))},
            (_cancel, False): {("cancelled", cancelled), ("cancelled", retried_first)},
            (_pause, True): {("paused", (State.SUCCEEDED,)), ("the job is over", (State.SUCCEEDED,))},
            (_pause, False): {("paused", (State.SCHEDULED,))},
            (_delete, True): {("gone", ()), ("runs of the job still go on", (State.SUCCEEDED,))},
            (_delete, False): {("gone", ()), ("runs of the job still go on", cancelled)},
        }[deed, succeeds]
    )
