"""What is under a limit: whatever brings it, moves it or ends it goes by the same lines."""

from datetime import UTC, datetime, timedelta

import pytest
from asyncpg import FeatureNotSupportedError

from burying import bury, replay
from editing import changed
from filling import DAYS, begin, daily, finish
from foliot.domain.backfill import Reprocess
from foliot.domain.fairness import Priority
from foliot.domain.ids import encode
from foliot.domain.outcome import SUCCEEDED, Ending, Outcome
from foliot.domain.spec import FunctionHandler, Spec
from foliot.kit.signals import READY
from foliot.services.operate import Operator
from foliot.services.tenants import Tenants
from foliot.store.dispatch import Settlement
from foliot.store.effects import Effects
from foliot.wire.work import SettleBody
from operating import settle_down
from services.remotes import MINE, Hire, succeeded
from services.test_admission import AGAIN, SOON, left_behind, limited, promote
from world import World


async def test_a_limit_that_is_raised_lets_more_go_at_once(world: World):
    fields = {"onDemand": True, "concurrency": {"limit": 1}}
    job = await world.job_id(**fields)
    await world.submit(6, limited(1), job=job)
    assert await world.count("ready") == 1
    await world.control.change(world.tenant, job, changed(concurrency={"limit": 3}))
    await promote(world)
    assert await world.count("ready") == 3
    await world.control.change(world.tenant, job, changed(concurrency=None))
    await promote(world)
    assert await world.count("ready") == 6


async def test_a_limit_that_is_lowered_counts_as_seats_are_left(world: World):
    job = await world.job_id(onDemand=True, concurrency={"limit": 3})
    await world.submit(6, limited(3), job=job)
    hand = await world.worker()
    taken = await hand.claim()
    await world.control.change(world.tenant, job, changed(concurrency={"limit": 1}))
    await promote(world)
    for run, going in zip(taken, [0, 0, 1], strict=True):
        await hand.settle([run])
        assert await world.count("ready") == going
    assert await left_behind(world) == 0


async def test_a_tenants_limit_counts_over_all_its_jobs_and_follows_its_owner(world: World):
    tenants = Tenants(world.database)
    await tenants.set_limit("acme", 2)
    hand = await world.worker("noop", "other")
    await world.submit(2)
    await world.submit(2, Spec(handler=FunctionHandler("other"), priority=Priority.HIGH))
    await world.submit(1, tenant=await world.another_tenant())
    assert await world.count("ready") == 3
    await tenants.set_limit("acme", 3)
    await promote(world)
    assert await world.count("ready") == 4
    taken = [run for run in await hand.claim() if run.tenant == world.tenant]
    await tenants.set_limit("acme", 1)
    await hand.settle(taken[:2])
    assert await world.count("ready") == 0
    await hand.settle(taken[2:])
    assert await world.count("ready") == 1
    await tenants.set_limit("acme", None)
    await promote(world)
    assert await world.count("run") == await world.count("ready") + 1
    assert await left_behind(world) == 0


async def test_urgent_runs_go_first_in_a_tenants_line(world: World):
    await Tenants(world.database).set_limit("acme", 1)
    hand = await world.worker("noop", "urgent")
    await world.submit(2)
    (urgent,) = await world.submit(1, Spec(handler=FunctionHandler("urgent"), priority=Priority.CRITICAL))
    await hand.settle(await hand.claim())
    assert [run.id for run in await hand.claim()] == [urgent]


async def test_a_busy_line_counts_those_who_hold_it_whoever_came_first(world: World):
    """It remembers how far it has come: here those who came first are called last, and few at a time."""
    most = 20
    await Tenants(world.database).set_limit("acme", most)
    hand, urgent = await world.worker(), Spec(handler=FunctionHandler("noop"), priority=Priority.CRITICAL)
    for count, spec in ((most, urgent), (5, Spec(handler=FunctionHandler("noop"))), (2 * most, urgent)):
        await world.submit(count, spec)
    for _ in range(2):
        await hand.settle(await hand.claim())
    assert await world.value("SELECT marked_at FROM slot") is not None
    held = await hand.claim()
    for ending, coming in ((3, 10), (1, 0), (most, 5), (1, 0), (4, 0)):
        # However slow this machine is: what was noted is trusted for a tenth of a second.
        await world.sql("UPDATE foliot.slot SET marked_at = clock_timestamp() WHERE marked_at IS NOT NULL")
        await hand.settle(held[:ending])
        held = held[ending:] + await hand.claim()
        assert len(held) <= most
        assert await left_behind(world) == 0
        if coming:
            await world.submit(coming, urgent)
            held += await hand.claim()
            assert len(held) <= most


async def test_a_run_that_waits_for_its_key_keeps_nobody_of_its_tenant_waiting(world: World):
    await Tenants(world.database).set_limit("acme", 2)
    await world.submit(5, limited(1), limit_key=1)
    await world.submit(1, limited(1), limit_key=2)
    assert await world.count("ready") == 2


@pytest.mark.parametrize("outcome", [AGAIN, Outcome.snoozed(SOON), Outcome.released()])
async def test_under_a_limit_of_one_nobody_overtakes_a_run_that_comes_back(world: World, outcome: Outcome):
    first, *_ = await world.submit(3, limited(1))
    hand, other = await world.worker(), await world.worker()
    await hand.conclude(await hand.claim(), outcome)
    await world.until("SELECT NOT EXISTS (SELECT FROM run WHERE state = 0 AND due_at > clock_timestamp())")
    await promote(world)
    assert [run.id for run in await other.claim()] == [first]


async def test_with_a_higher_limit_others_go_on_while_a_run_waits_to_be_tried_again(world: World):
    await world.submit(3, limited(2))
    hand = await world.worker()
    taken = await hand.claim()
    await hand.conclude(taken[:1], Outcome.again(Ending.FAILED, "boom", timedelta(hours=1)))
    assert await world.count("ready") == 1


async def test_a_paused_job_gives_up_its_tenants_seat_and_keeps_its_own(world: World):
    await Tenants(world.database).set_limit("acme", 1)
    job = await world.job_id(onDemand=True, concurrency={"limit": 1})
    first, *_ = await world.submit(2, limited(1), job=job)
    await world.submit(1)
    await world.control.pause(world.tenant, job)
    hand = await world.worker()
    (other,) = await hand.claim()
    assert other.job is None
    assert await left_behind(world) == 0
    await world.resume(job)
    await promote(world)
    assert await world.count("ready") == 0
    await hand.settle([other])
    assert [run.id for run in await hand.claim()] == [first]


async def test_a_backfill_a_timer_and_a_replay_come_in_by_the_same_door(world: World):
    await Tenants(world.database).set_limit("acme", 1)
    (letter,) = await bury(world)
    (holder,) = await world.submit(1)
    (timer,) = await world.submit(1, delay=timedelta(hours=1))
    await world.promoter.run_once(datetime.now(UTC) + timedelta(hours=2))
    await replay(world, letter)
    assert [row["id"] for row in await world.sql("SELECT id FROM run WHERE id > 0 AND state = 1")] == [holder]
    assert {row["run"] for row in await world.sql("SELECT run FROM seat WHERE state = 1")} == {timer, letter}
    assert await left_behind(world) == 0


async def test_a_backfill_goes_by_the_limit_of_its_job(world: World):
    job = await daily(world, concurrency={"limit": 2})
    operation, operator = await begin(world, job, concurrency=6), Operator(world.database)
    await settle_down(operator)
    assert (await world.count("run"), await world.count("ready")) == (6, 2)
    await world.operations.cancel(world.tenant, operation)
    assert await world.count("run") == await world.count("seat") == 0
    await begin(world, job, reprocess=Reprocess.ALL)
    assert len(await finish(world, operator)) == len(DAYS)
    await operator.close()


async def test_a_handlers_own_transaction_hands_its_seat_over_too(world: World):
    _, second = await world.submit(2, limited(1))
    hand = await world.worker()
    (run,) = await hand.claim()
    effects = Effects(world.database.dsn, hand.id, 1)
    settlement = Settlement(run, datetime.now(UTC), SUCCEEDED)
    with pytest.raises(FeatureNotSupportedError, match="isolation level"):
        async with effects.transaction(settlement, SOON * 1000, "serializable"):
            pass
    assert await world.count("run") == 2
    async with effects.transaction(settlement, SOON * 1000):
        pass
    assert [run.id for run in await hand.claim()] == [second]
    await effects.close()


async def test_a_remote_worker_hands_seats_over_too(world: World, remote: Hire):
    ids = await world.submit(3, limited(1))
    worker = await remote()
    for id_ in ids:
        answer = await worker.claim()
        assert answer.runs.run_id == [encode("run", id_)]
        told = await world.gateway.settle(MINE, SettleBody(worker.id, succeeded=succeeded(answer.runs)))
        assert told.uncovered == []
    assert await world.count("run") == await world.count("seat") == 0
    assert READY in world.hints
