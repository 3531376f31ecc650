"""Fire times that come up while a run from before is still there: skipped, in line, or in its place."""

from datetime import timedelta

import pytest

from editing import changed
from foliot.domain.outcome import Ending, Outcome
from foliot.domain.states import State
from foliot.store import fleet
from services.test_admission import left_behind, promote
from world import World

DAILY = {"every": "PT24H"}
AGAIN = Outcome.again(Ending.FAILED, "boom", timedelta())


async def fire(world: World, times: int) -> list:
    """Fire so many instants of the only schedule; which they were."""
    instants = []
    for _ in range(times):
        instants.append(await world.next_at())
        await world.fire(instants[-1])
    return instants


async def told(world: World) -> dict[int, list[str]]:
    rows = await world.sql("SELECT state, error FROM history WHERE state > 4 ORDER BY run")
    return {state: [row["error"] for row in rows if row["state"] == state] for state in {row["state"] for row in rows}}


async def states(world: World) -> list[int]:
    return [row["state"] for row in await world.sql("SELECT state FROM run WHERE id > 0 ORDER BY id")]


async def test_queued_fire_times_run_one_after_the_other_in_order(world: World):
    await world.job(overlap="queue", **DAILY)
    worker = await world.worker()
    instants = await fire(world, 4)
    assert await states(world) == [State.READY, State.BLOCKED, State.BLOCKED, State.BLOCKED]
    for instant in instants:
        (run,) = await worker.claim()
        assert run.scheduled_at == instant
        await worker.conclude([run], AGAIN)
        await promote(world)
        (run,) = await worker.claim()
        assert run.scheduled_at == instant  # nobody overtakes it while it is tried again
        await worker.settle([run])
    assert await told(world) == {}
    assert await world.count("run") == await world.count("seat") == 0


async def test_where_one_may_wait_further_ones_are_skipped(world: World):
    await world.job(overlap="queueOne", **DAILY)
    worker = await world.worker()
    instants = await fire(world, 4)
    assert await states(world) == [State.READY, State.BLOCKED]
    assert await told(world) == {State.SKIPPED: ["another run waits already"] * 2}
    (first,) = await worker.claim()
    await worker.conclude([first], AGAIN)
    await promote(world)
    (first,) = await worker.claim()
    await worker.settle([first])
    (second,) = await worker.claim()
    assert [first.scheduled_at, second.scheduled_at] == instants[:2]
    await fire(world, 1)  # the place to wait in is free again
    assert await states(world) == [State.READY, State.BLOCKED]


async def test_where_one_may_wait_it_is_asked_when_its_phase_has_come(world: World):
    await world.job(overlap="queueOne", jitter="PT1H", **DAILY)
    for _ in range(4):
        (instant,) = await fire(world, 1)
        assert State.SCHEDULED in await states(world)
        while await world.promoter.run_once(instant + timedelta(hours=1)):
            pass
    assert await states(world) == [State.READY, State.BLOCKED]
    assert await told(world) == {State.SKIPPED: ["another run waits already"] * 2}
    assert await left_behind(world) == 0


async def test_a_newer_fire_time_takes_the_place_of_what_waits(world: World):
    await world.job(overlap="cancelPrevious", **DAILY)
    worker = await world.worker()
    instants = await fire(world, 3)
    assert await states(world) == [State.READY]
    assert await told(world) == {State.CANCELLED: ["a newer run took its place"] * 2}
    (run,) = await worker.claim()
    assert run.scheduled_at == instants[-1]
    await fire(world, 2)  # what a worker holds is asked to stop, and waited for
    assert await states(world) == [State.READY, State.BLOCKED]
    standing = await fleet.beat(worker.line, worker.id)
    assert standing is not None
    assert standing.stop == {run.id}
    await worker.conclude([run], AGAIN)  # whatever it says, it is not tried again
    assert len(await worker.claim()) == 1
    assert await world.count("run") == 1
    assert await left_behind(world) == 0


async def test_runs_by_hand_do_not_wait_for_fire_times(world: World):
    job = await world.job_id(overlap="queue", **DAILY)
    await fire(world, 2)
    await world.submit(1, job=job)
    assert sorted(await states(world)) == [State.READY, State.READY, State.BLOCKED]


@pytest.mark.parametrize("overlap", ["queue", "queueOne"])
async def test_fire_times_that_wait_go_on_after_a_pause_in_their_order(world: World, overlap: str):
    job = await world.job_id(overlap=overlap, **DAILY)
    await fire(world, 2)
    await world.sql("UPDATE foliot.run SET due_at = clock_timestamp() WHERE id > 0")  # fired ahead of their time
    await world.control.pause(world.tenant, job)
    assert await states(world) == [State.BLOCKED] * 2
    assert await left_behind(world) == 0
    await world.resume(job)
    await promote(world)
    assert await states(world) == [State.READY, State.BLOCKED]
    assert await left_behind(world) == 0


async def test_an_overlap_that_is_allowed_from_now_on_lets_all_go_that_wait(world: World):
    job = await world.job_id(overlap="queue", **DAILY)
    await fire(world, 3)
    await world.control.change(world.tenant, job, changed(overlap="allow"))
    await promote(world)
    assert await states(world) == [State.READY] * 3


async def test_a_job_that_is_cancelled_takes_along_who_waits(world: World):
    job = await world.job_id(overlap="queue", **DAILY)
    await fire(world, 3)
    await world.control.cancel(world.tenant, job)
    assert await world.count("run") == await world.count("seat") == await world.count("ready") == 0
