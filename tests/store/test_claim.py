"""Claims: in the order of the ranks, fair between flows, and never the same run twice."""

import asyncio
from collections import Counter
from collections.abc import Awaitable
from datetime import timedelta

import msgspec

from foliot.domain.fairness import Priority
from foliot.store import dispatch
from foliot.store.dispatch import Claimed
from foliot.store.statements import SQL
from world import NOOP, PATIENCE, Hand, World

BULK = msgspec.structs.replace(NOOP, priority=Priority.BULK)
CRITICAL = msgspec.structs.replace(NOOP, priority=Priority.CRITICAL)


async def test_runs_of_one_flow_are_claimed_first_in_first_out(world: World):
    ids = [*await world.submit(3), *await world.submit(2)]
    worker = await world.worker()
    assert [run.id for run in await worker.claim()] == ids
    assert await worker.claim() == []


async def test_a_tenant_with_a_backlog_does_not_keep_another_one_waiting(world: World):
    globex = await world.another_tenant()
    await world.submit(500)
    await world.submit(50, tenant=globex)
    worker = await world.worker()
    first = Counter(run.tenant for run in await worker.claim(100))
    assert first == {world.tenant: 50, globex: 50}


async def test_priorities_share_by_weight_and_none_starves(world: World):
    await world.submit(300, spec=BULK)
    await world.submit(300, spec=CRITICAL)
    worker = await world.worker()
    ranked = [run.spec for run in await worker.claim(170)]
    bulk = await world.specs.intern(world.tenant, BULK)
    critical = await world.specs.intern(world.tenant, CRITICAL)
    assert Counter(ranked) == {critical.id: 160, bulk.id: 10}


async def test_an_idle_tenant_saves_no_credit(world: World):
    """A newcomer starts where the others are, not where they were."""
    globex = await world.another_tenant()
    await world.submit(200)
    worker = await world.worker()
    taken = await worker.claim(100)
    await dispatch.publish(worker.line, {worker.lanes[0]: max(run.rank for run in taken)})
    await world.submit(100, tenant=globex)
    following = Counter(run.tenant for run in await worker.claim(100))
    assert following == {world.tenant: 50, globex: 50}


def _patient(worker: Hand, patience: float, mark: int = 0) -> Awaitable[list[Claimed]]:
    within = timedelta(seconds=patience)
    return dispatch.claim(worker.line, worker.id, 1, worker.lanes, [mark], 100, patience=within)


async def test_a_claim_that_waits_takes_what_is_committed_meanwhile(world: World):
    worker = await world.worker()
    claiming = asyncio.ensure_future(_patient(worker, PATIENCE))
    await world.until(
        "SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"
    )
    ids = await world.submit()
    taken = await claiming
    assert [run.id for run in taken] == ids
    assert await worker.settle(taken) == 1


async def test_a_claim_waits_no_longer_than_it_may_whatever_it_may_not_take(world: World):
    worker = await world.worker()
    await world.submit()
    assert await _patient(worker, 0.001, mark=await world.value("SELECT max(rank) + 1 FROM ready")) == []
    await world.fleet.pause("default")
    assert await _patient(worker, 0.001) == []
    await world.fleet.resume("default")
    async with world.unfinished() as rival:
        await rival.execute("SELECT FROM ready WHERE lane > 0 FOR UPDATE")
        assert await _patient(worker, PATIENCE) == []  # seen, and locked: no reason to wait in here
    assert len(await _patient(worker, 0.001)) == 1


async def test_a_claim_that_waits_and_whose_reply_was_lost_is_fetched_again(world: World):
    worker = await world.worker()
    await world.submit()
    taken = await _patient(worker, 0.001)
    assert await _patient(worker, 0.001) == []
    await world.submit()
    assert await _patient(worker, 0.001) == taken


async def test_a_claim_that_waits_claims_like_one_that_does_not(world: World):
    source = await world.value("SELECT prosrc FROM pg_proc WHERE proname = 'claim_when_ready'")
    claim = "\n".join(line for line in SQL["claim"].splitlines() if not line.startswith("--"))
    assert claim in source


async def test_v_never_goes_back(world: World):
    worker = await world.worker()
    lane = worker.lanes[0]
    await dispatch.publish(worker.line, {lane: 700})
    await dispatch.publish(worker.line, {lane: 500})
    assert await world.value("SELECT v FROM lane WHERE id = $1", lane) == 700


async def test_a_second_claimer_skips_what_the_first_is_taking(world: World):
    ids = await world.submit(10)
    one, other = await world.worker(), await world.worker()
    async with world.unfinished() as line:
        first = await one.on(line).claim(4)
        second = await other.claim(100)  # must not wait for the first to commit
    assert [run.id for run in first] == ids[:4]
    assert [run.id for run in second] == ids[4:]


async def test_many_claimers_at_once_share_without_overlap(world: World):
    ids = await world.submit(1_000)
    workers = [await world.worker() for _ in range(4)]

    async def drain(worker):
        taken = []
        while batch := await worker.claim(37):
            taken += [run.id for run in batch]
        return taken

    taken = [run for runs in await asyncio.gather(*map(drain, workers)) for run in runs]
    assert sorted(taken) == ids


async def test_a_claim_that_failed_leaves_everything_ready(world: World):
    await world.submit(3)
    worker = await world.worker()
    async with worker.line.borrow(atomic=False) as connection:
        transaction = connection.transaction()
        await transaction.start()
    assert len(await worker.claim()) == 3
    await transaction.rollback()
    assert len(await worker.claim()) == 3


async def test_a_claim_whose_reply_was_lost_is_fetched_again_by_its_number(world: World):
    await world.submit(5)
    worker = await world.worker()
    taken = await dispatch.claim(worker.line, worker.id, 7, worker.lanes, [0], 3)
    again = await dispatch.reclaim(worker.line, worker.id, 7)
    assert again == taken
    assert await dispatch.reclaim(worker.line, worker.id, 8) == []


async def test_the_same_number_claims_once(world: World):
    await world.submit(5)
    worker = await world.worker()
    taken = await dispatch.claim(worker.line, worker.id, 7, worker.lanes, [0], 3)
    again = await dispatch.claim(worker.line, worker.id, 7, worker.lanes, [0], 3)
    assert again == taken
    assert await world.count("ready") == 2


async def test_what_has_been_settled_is_not_fetched_again(world: World):
    await world.submit(3)
    worker = await world.worker()
    taken = await dispatch.claim(worker.line, worker.id, 7, worker.lanes, [0], 3)
    await worker.settle(taken[:2])
    assert await dispatch.reclaim(worker.line, worker.id, 7) == taken[2:]


async def test_a_claim_without_runs_leaves_no_trace(world: World):
    worker = await world.worker()
    assert await worker.claim() == []
    assert await world.count("claim") == 0


async def test_no_claim_is_larger_than_settle_can_look_into(world: World):
    await world.submit(1_000)
    worker = await world.worker()
    assert len(await worker.claim(1_000)) == dispatch.LARGEST_CLAIM


async def test_a_claim_covers_only_the_lanes_it_asks_for(world: World):
    await world.submit(2)
    assert await (await world.worker("other")).claim() == []
    assert len(await (await world.worker("other", "noop")).claim()) == 2


async def test_lanes_are_made_while_somebody_publishes(world: World):
    """A worker that starts must not wait for, or deadlock with, those that tell how far they are."""
    worker = await world.worker("a", "b")
    async with world.unfinished() as line:
        await dispatch.publish(line, dict.fromkeys(worker.lanes, 99))
        late = await world.worker("b", "a")
    assert late.lanes == worker.lanes
