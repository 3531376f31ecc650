"""Several schedulers, and owners who edit while they fire: nothing doubled, nothing lost."""

import asyncio
from datetime import timedelta

from foliot.domain.misfire import Advance, Opening
from foliot.domain.states import State
from foliot.services import fire
from foliot.services.fire import Firer
from foliot.store import schedules
from foliot.store.flows import reserve
from foliot.store.schedules import Fired, advance_schedules, due_schedules, fire_chunk, firing_flows, open_firings
from services.conftest import InChunks
from world import World

DAY = timedelta(days=1)


async def _job_with_members(world: World, members: int) -> int:
    job = await world.job_id(every="PT24H")
    await world.sql(
        "INSERT INTO subscription SELECT schedule, job + n, after, until, tenant, spec, exclusive, closed, payload"
        "  FROM subscription, generate_series(1, $1::int) AS n",
        members - 1,
    )
    return job


async def _chunk(world: World, line) -> Fired:
    """Do the next chunk of what is open on an unfinished line."""
    firings = await open_firings(world.firer._line, 10, fire.CHUNK)
    awaited = await firing_flows(world.firer._line, firings)
    ranks = await reserve(world.firer._ranks, awaited.counts, awaited.weights, 1)
    connection = await line.connection()
    await schedules.lock_to_fire(connection, [firing.schedule for firing in firings], wait=True)
    return await fire_chunk(connection, firings, ranks, awaited)


async def _open(world: World) -> None:
    """Advance the schedule, leaving its firing to be done."""
    await world.advance(await world.next_at())


async def test_an_advance_is_made_by_one_of_two(world: World):
    await world.job_id(every="PT24H")
    at = await world.next_at()
    due = await due_schedules(world.firer._line, 10, at)
    move = [(due[0], Advance((Opening(at, at, at + DAY),), at, at + DAY))]
    async with world.database.transaction() as first:
        assert len(await advance_schedules(first, move)) == 1
        second = asyncio.create_task(world.advance(at))
        await world.until_waiting()
    assert await second == 0  # it waited for its turn, and found that the schedule had moved on
    assert await world.count("firing") == 1


async def test_of_two_schedulers_on_the_same_chunk_the_second_finds_it_done(world: World):
    await _job_with_members(world, 20)
    await _open(world)
    rival = Firer(world.database)
    async with world.unfinished() as line:
        assert await _chunk(world, line) == Fired(fired=20, skipped=0)
        firing = asyncio.create_task(rival._make_runs())
        await world.until_waiting()
    await firing
    assert await world.count("run") == await world.count("ready") == 20
    assert await world.count("history") == 0
    await rival.close()


async def test_schedulers_side_by_side_fire_every_job_once(world: World, in_chunks: InChunks):
    in_chunks(7)
    await _job_with_members(world, 100)
    at = await world.next_at()
    firers = [Firer(world.database) for _ in range(3)]

    async def until_done(firer: Firer) -> None:
        while await firer.run_once(at) or await world.value("SELECT count(*) FROM firing WHERE closed_at IS NULL"):
            pass

    await asyncio.gather(*map(until_done, firers))
    assert await world.count("run") == 100
    assert await world.value("SELECT count(DISTINCT job) FROM run WHERE id > 0") == 100
    assert await world.count("history") == 0
    assert await world.value("SELECT fired FROM firing") == 100
    for firer in firers:
        await firer.close()


async def test_a_fire_waits_for_a_settle_in_mid_flight_and_then_fires(world: World):
    await world.job_id(every="PT24H")
    at = await world.next_at()
    await world.fire(at)
    worker = await world.worker()
    taken = await worker.claim()
    async with world.unfinished() as line:
        await worker.on(line).settle(taken)
        firing = asyncio.create_task(world.fire(at + DAY))
        await world.until_waiting()
    await firing
    assert await world.count("run") == 1
    assert await world.value("SELECT array_agg(state) FROM history") == [State.SUCCEEDED]


async def test_a_job_paused_in_mid_fire_is_recorded_as_skipped(world: World, in_chunks: InChunks):
    in_chunks(2)
    jobs = [await world.job_id(every="PT24H") for _ in range(4)]
    await world.make_overdue(by=DAY)
    await world.advance(at := await world.next_at())
    await world.firer._make_runs()
    await world.control.pause(world.tenant, jobs[3])
    await world.fire(at)
    assert {row["job"] for row in await world.sql("SELECT job FROM run WHERE id > 0")} == set(jobs[:3])
    (row,) = await world.sql("SELECT job, scheduled_at, state, error FROM history")
    assert (row["job"], row["scheduled_at"], row["state"]) == (jobs[3], at, State.SKIPPED)
    assert "paused" in row["error"]


async def test_a_pause_waits_for_a_chunk_in_mid_flight_and_holds_what_it_made(world: World):
    job = await _job_with_members(world, 1)
    await _open(world)
    async with world.unfinished() as line:
        assert await _chunk(world, line) == Fired(fired=1, skipped=0)
        pausing = asyncio.create_task(world.control.pause(world.tenant, job))
        await world.until_waiting()
    await pausing
    assert await world.count("ready") == 0
    assert await world.value("SELECT state FROM run WHERE job = $1", job) == State.BLOCKED


async def test_a_cancel_waits_for_a_chunk_in_mid_flight_and_ends_what_it_made(world: World):
    job = await _job_with_members(world, 1)
    await _open(world)
    async with world.unfinished() as line:
        await _chunk(world, line)
        cancelling = asyncio.create_task(world.control.cancel(world.tenant, job))
        await world.until_waiting()
    await cancelling
    assert await world.count("run") == await world.count("ready") == 0
    assert await world.value("SELECT state FROM history") == State.CANCELLED


async def _moved_in_mid_flight(world: World) -> int:
    """A job that follows another schedule now, and has still to be fired for an instant of its former one."""
    job = await _job_with_members(world, 1)
    await _open(world)
    await world.change(job, every="PT12H")
    return job


async def test_a_cancel_waits_for_a_chunk_of_a_former_schedule_too(world: World):
    job = await _moved_in_mid_flight(world)
    async with world.unfinished() as line:
        assert await _chunk(world, line) == Fired(fired=1, skipped=0)
        cancelling = asyncio.create_task(world.control.cancel(world.tenant, job))
        await world.until_waiting()
    await cancelling
    assert await world.count("run") == await world.count("ready") == 0
    assert await world.value("SELECT state FROM history") == State.CANCELLED


async def test_a_pause_waits_for_a_chunk_of_a_former_schedule_too(world: World):
    job = await _moved_in_mid_flight(world)
    async with world.unfinished() as line:
        await _chunk(world, line)
        pausing = asyncio.create_task(world.control.pause(world.tenant, job))
        await world.until_waiting()
    await pausing
    assert await world.count("ready") == 0
    assert await world.value("SELECT state FROM run WHERE job = $1", job) == State.BLOCKED


async def test_an_edit_that_hangs_holds_up_its_own_schedule_and_no_other(world: World):
    await world.job_id(every="PT24H")
    hanging = await world.value("SELECT id FROM schedule")
    await world.job_id(every="PT12H")
    await world.sql("UPDATE schedule SET cursor = cursor - interval '3 days', next_at = date_trunc('second', now())")
    async with world.unfinished() as owner:
        await owner.run("lock_schedules", [hanging])
        await world.firer.run_once()
        assert await world.value("SELECT array_agg(id) FROM schedule WHERE cursor < now() - interval '1 day'") == [
            hanging
        ]
    await world.fire()
    assert await world.value("SELECT count(*) FROM schedule WHERE cursor < now() - interval '1 day'") == 0


async def test_firing_waits_for_its_turn_behind_an_edit(world: World):
    await world.job_id(every="PT24H")
    at = await world.next_at()
    async with world.unfinished() as owner:
        await owner.run("lock_schedules", [await world.value("SELECT id FROM schedule")])
        firing = asyncio.create_task(world.advance(at))
        await world.until_waiting()
    assert await firing == 1


async def test_a_deserted_schedule_goes_to_rest_and_the_next_job_wakes_it(world: World):
    job = await world.job_id(every="PT24H")
    at = await world.next_at()
    await world.control.cancel(world.tenant, job)
    await world.fire(at)
    assert await world.next_at() is None
    assert await world.count("run") == 0
    await world.job_id(every="PT24H")
    assert await world.next_at() == at + DAY  # never an instant that had its firing


async def test_a_job_that_subscribes_while_its_schedule_goes_to_rest_wakes_it(world: World):
    await world.control.cancel(world.tenant, await world.job_id(every="PT24H"))
    schedule = await world.value("SELECT id FROM schedule")
    async with world.unfinished() as line:
        await schedules.rest_schedules(await line.connection(), [schedule])
        creating = asyncio.create_task(world.job_id(every="PT24H"))
        await world.until_waiting()
    await creating
    assert await world.next_at() is not None


async def test_a_schedule_that_somebody_is_subscribing_to_does_not_go_to_rest(world: World):
    job = await world.job_id(every="PT24H")
    schedule = await world.value("SELECT id FROM schedule")
    await world.control.cancel(world.tenant, job)
    async with world.unfinished() as owner:
        await owner.run("lock_schedules", [schedule])
        async with world.unfinished() as line:
            await schedules.rest_schedules(await line.connection(), [schedule])
    assert await world.next_at() is not None
    async with world.unfinished() as line:
        await world.job_id(every="PT24H")
        await schedules.rest_schedules(await line.connection(), [schedule])
    assert await world.next_at() is not None
