"""Back-fills in company: two who hand out, owners who cancel, pause and edit meanwhile, deaths between statements."""

import asyncio

import asyncpg
import pytest

from filling import DAYS, FIRST, asked, begin, daily, finish, recount
from foliot.domain.errors import Conflict
from foliot.domain.outcome import Ending, Outcome
from foliot.services.operate import Operator
from foliot.store import operations
from foliot.store.flows import reserve
from operating import look, operator, settle_down
from world import PATIENCE, World


async def test_two_who_hand_out_side_by_side_make_every_run_once(world: World):
    jobs = [await daily(world) for _ in range(4)]
    for job in jobs:
        await begin(world, job, concurrency=2)
    duties = [Operator(world.database) for _ in range(3)]
    workers = [await world.worker() for _ in range(2)]

    async def work(number: int) -> None:
        while await world.value("SELECT count(*) FROM operation WHERE finished_at IS NULL"):
            await duties[number].run_once()
            if number < 2:
                await workers[number].settle(await workers[number].claim(3))
            await recount(world)

    await asyncio.gather(*(work(number) for number in range(3)))
    ran = await world.sql("SELECT job, scheduled_at FROM history")
    assert len(ran) == len({tuple(row) for row in ran}) == 40
    for duty in duties:
        await duty.close()


async def test_an_operation_that_another_one_serves_is_left_to_it(world: World):
    operation = await begin(world, await daily(world))
    async with operator(world) as duty, world.database.transaction() as rival:
        assert await operations.lock_unfinished(rival, 0, 10) == [operation]
        assert await asyncio.wait_for(duty.run_once(), PATIENCE) == 0  # neither waits nor feeds
        assert await world.count("run") == 0


async def test_one_that_was_fed_by_another_since_is_fed_for_what_room_is_left(world: World):
    await begin(world, await daily(world), concurrency=4)
    async with operator(world) as first, operator(world) as second:
        seen = await operations.hungry(second._line, [await world.value("SELECT id FROM operation")])
        assert seen[0].room == 4
        await first.run_once()
        counts = {seen[0].flow: 4}
        ranks = await reserve(second._ranks, counts, {}, 4)
        async with world.database.transaction() as connection:
            held = await operations.lock_to_feed(connection, [seen[0].id])
            assert held == {seen[0].id}
            assert await operations.feed(connection, seen, ranks, counts) == (0, 0)
    assert await world.count("run") == 4


@pytest.mark.parametrize("table", ["run", "ready", "operation_item", "operation"])
async def test_a_death_while_handing_out_leaves_nothing_behind(world: World, table: str):
    """Whatever of the transaction fails, it all has not been."""
    operation = await begin(world, await daily(world))
    await world.sql("CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'killed'; END $$;")
    await world.sql(f"CREATE TRIGGER die AFTER INSERT OR UPDATE ON {table} EXECUTE FUNCTION die()")
    async with operator(world) as duty:
        with pytest.raises(asyncpg.RaiseError):
            await duty.run_once()
        assert await world.count("run") == await world.count("ready") == 0
        assert (await look(world, operation)).progress.submitted == 0
        await world.sql(f"DROP TRIGGER die ON {table}")
        assert await finish(world, duty) == DAYS


@pytest.mark.parametrize("table", ["operation_item", "operation"])
async def test_a_death_while_counting_counts_nothing_twice(world: World, table: str):
    operation = await begin(world, await daily(world))
    worker = await world.worker()
    async with operator(world) as duty:
        await settle_down(duty)
        await worker.settle(await worker.claim())
        await world.sql("CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'killed'; END $$;")
        await world.sql(f"CREATE TRIGGER die AFTER UPDATE ON {table} EXECUTE FUNCTION die()")
        with pytest.raises(asyncpg.RaiseError):
            await duty.run_once()
        assert (await look(world, operation)).progress.succeeded == 0
        await world.sql(f"DROP TRIGGER die ON {table}")
        assert await finish(world, duty) == DAYS[3:]
    assert (await look(world, operation)).progress.succeeded == 10


async def test_a_successor_goes_on_where_a_dead_one_stopped(world: World):
    await begin(world, await daily(world))
    async with operator(world) as first:
        await first.run_once()
    async with operator(world) as successor:
        assert await finish(world, successor) == DAYS


async def test_a_cancel_waits_for_a_feed_in_mid_flight_and_ends_what_it_made(world: World):
    operation = await begin(world, await daily(world))
    async with operator(world) as duty:
        wanted = await operations.hungry(duty._line, [operation])
        counts = {wanted[0].flow: 3}
        ranks = await reserve(duty._ranks, counts, {}, 3)
        async with world.database.transaction() as connection:
            await operations.lock_to_feed(connection, [operation])
            assert (await operations.feed(connection, wanted, ranks, counts)).made == 3
            cancelling = asyncio.create_task(world.operations.cancel(world.tenant, operation))
            await world.until_waiting()
        over = await cancelling
        assert (over.status, over.progress.cancelled, over.progress.running) == ("cancelled", 3, 0)
        assert over.finished_at is not None
        assert await duty.run_once() == 0
    assert await world.count("run") == await world.count("ready") == 0
    assert await world.value("SELECT array_agg(DISTINCT error) FROM history") == ["the back-fill was cancelled"]


async def test_a_feed_after_a_cancel_hands_out_nothing(world: World):
    operation = await begin(world, await daily(world))
    async with operator(world) as duty:
        assert (await operations.hungry(duty._line, [operation]))[0].room == 3
        await world.operations.cancel(world.tenant, operation)
        async with world.database.transaction() as connection:
            assert await operations.lock_to_feed(connection, [operation]) == set()


async def test_what_runs_goes_on_after_a_cancel_but_is_not_tried_again(world: World):
    operation = await begin(world, await daily(world))
    worker = await world.worker()
    async with operator(world) as duty:
        await settle_down(duty)
        first, second = await worker.claim(2)
        stopped = await world.operations.cancel(world.tenant, operation)
        assert (stopped.status, stopped.finished_at) == ("cancelled", None)
        assert (stopped.progress.running, stopped.progress.cancelled) == (2, 1)
        assert (await world.operations.cancel(world.tenant, operation)).progress == stopped.progress
        await worker.settle([first])
        await worker.conclude([second], Outcome.again(Ending.FAILED, "once more", delay=DAYS[1] - FIRST))
        await settle_down(duty)
    over = await look(world, operation)
    assert over.finished_at is not None
    assert (over.progress.succeeded, over.progress.cancelled, over.progress.running) == (1, 2, 0)
    assert await world.count("run") == 0
    await recount(world)


async def test_a_cancel_waits_for_a_claim_in_mid_flight_and_leaves_it_the_run(world: World):
    operation = await begin(world, await daily(world))
    worker = await world.worker()
    async with operator(world) as duty:
        await settle_down(duty)
        async with world.unfinished() as line:
            (taken,) = await worker.on(line).claim(1)
            cancelling = asyncio.create_task(world.operations.cancel(world.tenant, operation))
            await world.until_waiting()
        stopped = await cancelling
        assert (stopped.progress.running, stopped.progress.cancelled, stopped.finished_at) == (1, 2, None)
        assert await worker.settle([taken]) == 1
        await settle_down(duty)
    assert (await look(world, operation)).progress.succeeded == 1


async def test_a_pause_in_mid_feed_waits_and_holds_what_was_made(world: World):
    job = await daily(world)
    operation = await begin(world, job)
    async with operator(world) as duty:
        wanted = await operations.hungry(duty._line, [operation])
        counts = {wanted[0].flow: 3}
        ranks = await reserve(duty._ranks, counts, {}, 3)
        async with world.database.transaction() as connection:
            await operations.lock_to_feed(connection, [operation])
            await operations.feed(connection, wanted, ranks, counts)
            pausing = asyncio.create_task(world.control.pause(world.tenant, job))
            await world.until_waiting()
        await pausing
    assert await world.value("SELECT array_agg(DISTINCT state) FROM run WHERE id > 0") == [2]
    assert await world.count("ready") == 0


@pytest.mark.parametrize("verb", ["pause", "cancel"])
async def test_a_job_in_mid_edit_is_left_for_later_and_others_are_fed(world: World, verb: str):
    busy, free = await daily(world), await daily(world)
    for job in (busy, free):
        await begin(world, job)
    async with operator(world) as duty, world.database.transaction() as owner:
        await owner.fetch("SELECT FROM job WHERE id = $1 FOR UPDATE", busy)
        await asyncio.wait_for(duty.run_once(), PATIENCE)
        assert {row["job"] for row in await world.sql("SELECT job FROM run WHERE id > 0")} == {free}
    await getattr(world.control, verb)(world.tenant, busy)
    async with operator(world) as duty:
        await settle_down(duty)
    assert await world.value("SELECT count(*) FROM run WHERE job = $1", busy) == 0


async def test_of_two_backfills_of_the_same_instants_asked_for_at_once_one_is_refused(world: World):
    job = await daily(world)
    answers = await asyncio.gather(
        *(world.operations.backfill(world.tenant, job, asked()) for _ in range(3)), return_exceptions=True
    )
    assert sum(isinstance(answer, Conflict) for answer in answers) == 2
    assert await world.count("operation") == 1


async def test_the_same_key_at_once_makes_one_backfill(world: World):
    job = await daily(world)
    answers = await asyncio.gather(
        *(world.operations.backfill(world.tenant, job, asked(), key="k", fingerprint=b"f") for _ in range(3))
    )
    assert len(set(answers)) == 1
    assert await world.count("operation") == 1
