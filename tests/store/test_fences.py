"""A fenced-out writer changes nothing, however the run moved on without it."""

import asyncio
from datetime import timedelta

import pytest

from foliot.domain.outcome import Ending, Outcome
from foliot.store import fleet
from foliot.store.dispatch import Claimed
from world import Hand, World

AT_ONCE = Outcome.again(Ending.FAILED, "boom", timedelta())
DEAD = Outcome.dead(Ending.FAILED, "boom")


async def _claimed(world: World) -> tuple[Hand, list[Claimed]]:
    await world.submit()
    worker = await world.worker()
    return worker, await worker.claim()


async def _all_of(world: World) -> list[tuple]:
    """Everything that a writer could have changed."""
    tables = ("run WHERE id > 0", "ready WHERE lane > 0", "claim", "history", "dead_letter")
    return [tuple(row) for table in tables for row in await world.sql(f"SELECT * FROM {table} ORDER BY 1, 2")]


async def _writes_nothing(world: World, worker: Hand, runs: list[Claimed]) -> None:
    before = await _all_of(world)
    assert await worker.settle(runs) == 0
    for outcome in (AT_ONCE, DEAD, Outcome.released(), Outcome.cancelled()):
        assert await worker.conclude(runs, outcome) == 0
    await worker.note_started(runs)
    assert await _all_of(world) == before


async def test_a_late_worker_cannot_settle_a_run_that_was_reaped_and_claimed_again(world: World):
    late, runs = await _claimed(world)
    await late.die()
    await fleet.reap(late.line)
    await _writes_nothing(world, late, runs)
    other = await world.worker()
    again = await other.claim()
    assert [run.id for run in again] == [run.id for run in runs]
    await _writes_nothing(world, late, runs)
    assert await other.settle(again) == 1


async def test_a_late_worker_cannot_settle_a_run_that_it_handed_back(world: World):
    """The claim still stands (others of it go on), the run is even held by the same worker: no ABA."""
    await world.submit(2)
    worker = await world.worker()
    first, second = await worker.claim()
    await worker.conclude([first], Outcome.released())
    await _writes_nothing(world, worker, [first])
    (again,) = await worker.claim()
    assert again.id == first.id
    await _writes_nothing(world, worker, [first])
    assert await worker.settle([second, again]) == 2


async def test_a_late_worker_cannot_settle_a_run_that_is_being_retried(world: World):
    worker, runs = await _claimed(world)
    await worker.conclude(runs, AT_ONCE)
    await _writes_nothing(world, worker, runs)
    await world.promoter.run_once()
    await _writes_nothing(world, worker, runs)
    again = await worker.claim()
    await _writes_nothing(world, worker, runs)
    assert await worker.settle(again) == 1


@pytest.mark.parametrize("position", [0, 2, 3, -1])
async def test_a_run_must_stand_at_the_place_that_the_writer_says(world: World, position: int):
    await world.submit(2)
    worker = await world.worker()
    first, _ = await worker.claim()
    forged = Claimed(first.fence, position, *[getattr(first, name) for name in Claimed.__struct_fields__[2:]])
    assert await worker.settle([forged]) == 0
    assert await worker.conclude([forged], DEAD) == 0


async def test_a_fence_is_of_use_to_its_own_worker_only(world: World):
    _, runs = await _claimed(world)
    thief = await world.worker()
    await _writes_nothing(world, thief, runs)


async def test_the_fence_only_rises(world: World):
    worker, runs = await _claimed(world)
    fences = [runs[0].fence]
    for _ in range(3):
        await worker.conclude(runs, Outcome.released())
        runs = await worker.claim()
        fences.append(runs[0].fence)
    assert fences == sorted(set(fences))


async def test_a_settle_that_waits_for_the_reaper_finds_nothing(world: World):
    late, runs = await _claimed(world)
    await late.die()
    async with world.unfinished() as reaper:
        assert (await fleet.reap(reaper)).returned == 1
        settling = asyncio.create_task(late.settle(runs))
        await world.until_waiting()
    assert await settling == 0
    assert await world.count("ready") == 1
    assert await world.count("history") == 0


async def test_a_reaper_leaves_a_claim_alone_that_is_being_settled(world: World):
    late, runs = await _claimed(world)
    await late.die()
    async with world.unfinished() as line:
        assert await late.on(line).settle(runs) == 1
        assert (await fleet.reap(late.line)).claims == 0
    assert (await fleet.reap(late.line)) == fleet.Reaped(1, 0, 0)
    assert await world.count("ready") == 0
    assert await world.count("history") == 1


async def test_of_two_settles_of_the_same_run_one_writes(world: World):
    worker, runs = await _claimed(world)
    twin = worker.on(world.database.line())
    async with world.unfinished() as line:
        assert await worker.on(line).settle(runs) == 1
        second = asyncio.create_task(twin.settle(runs))
        await world.until_waiting()
    assert await second == 0
    assert await world.count("history") == 1
    await twin.line.close()


async def test_a_settle_that_waits_for_a_hand_back_finds_nothing(world: World):
    """Its snapshot is older than the new fence: the row's lock makes it look again."""
    worker, runs = await _claimed(world)
    async with world.unfinished() as line:
        assert await worker.on(line).conclude(runs, Outcome.released()) == 1
        second = asyncio.create_task(worker.settle(runs))
        await world.until_waiting()
    assert await second == 0
    assert await world.count("ready") == 1
    assert await world.count("history") == 0


async def test_a_start_noted_after_the_reaper_came_is_not_written(world: World):
    late, runs = await _claimed(world)
    await late.die()
    async with world.unfinished() as reaper:
        await fleet.reap(reaper)
        noting = asyncio.create_task(late.note_started(runs))
        await world.until_waiting()
    await noting
    assert await world.value("SELECT started_at FROM run WHERE id = $1", runs[0].id) is None
