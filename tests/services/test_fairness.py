"""Who gets how much: tenants and priorities by weight under permanent overload, and nobody waits for a backlog."""

import asyncio
from collections import Counter
from datetime import timedelta

import msgspec
import pytest

from foliot.domain.errors import InvalidField, NotFound
from foliot.domain.fairness import Priority
from foliot.domain.marks import Marks
from foliot.domain.outcome import Ending, Outcome
from foliot.services.tenants import Tenants
from foliot.store import dispatch
from foliot.store.dispatch import LARGEST_CLAIM
from foliot.store.specs import TENANTS_REMEMBERED, SpecBook
from foliot.worker.shares import Shares
from ranking import claim_and_publish, per_tenant, waiting, weigh
from worker.making import function_spec
from world import NOOP, World

BACKLOG = 20_000
FAILED = Outcome.again(Ending.FAILED, "not yet", timedelta())
SNOOZED = Outcome.snoozed(timedelta(), "too early")


def of(priority: Priority):
    return msgspec.structs.replace(NOOP, priority=priority)


async def test_tenants_share_by_weight_while_both_have_more_than_can_be_done(world: World):
    globex = await world.another_tenant()
    await weigh(world, 3)
    worker, taken = await world.worker(), Counter()
    for _ in range(40):
        await asyncio.gather(world.submit(60), world.submit(60, tenant=globex))
        taken += per_tenant(await claim_and_publish(worker, 40))
    assert taken[world.tenant] == pytest.approx(1200, rel=0.1)
    assert taken[globex] == pytest.approx(400, rel=0.1)


async def test_every_priority_progresses_by_its_weight_under_permanent_overload(world: World):
    specs = {(await world.specs.intern(world.tenant, of(priority))).id: priority for priority in Priority}
    worker, taken = await world.worker(), Counter()
    for turn in range(60):
        await asyncio.gather(*(world.submit(32, of(priority)) for priority in Priority))
        batch = await (claim_and_publish(worker, 31) if turn % 3 else worker.claim(31))
        taken += Counter(specs[run.spec] for run in batch)
    for priority in Priority:
        assert taken[priority] == pytest.approx(60 * priority.weight, rel=0.1)


async def test_a_tenant_that_was_alone_owes_nothing_and_one_that_was_idle_is_owed_nothing(world: World):
    globex, worker = await world.another_tenant(), await world.worker()
    await world.submit(1, tenant=globex)
    await world.submit(600)
    for _ in range(5):
        await claim_and_publish(worker, 100)
    await world.submit(200, tenant=globex)
    await world.submit(200)
    assert per_tenant(await worker.claim(100))[globex] == pytest.approx(50, abs=2)


async def test_one_run_beside_a_large_backlog_is_in_the_next_claim(world: World):
    globex, worker = await world.another_tenant(), await world.worker()
    await world.submit(BACKLOG)
    await claim_and_publish(worker, 500)
    (only,) = await world.submit(tenant=globex)
    assert only in [run.id for run in await worker.claim(10)]


@pytest.mark.parametrize("limited", [False, True], ids=["free", "limited"])
@pytest.mark.parametrize("outcome", [FAILED, SNOOZED], ids=["retries", "snoozes"])
async def test_one_run_beside_many_that_come_again_is_in_the_next_claim(
    world: World, monkeypatch: pytest.MonkeyPatch, outcome: Outcome, *, limited: bool
):
    """However many batches they become ready in, while nothing is claimed and V stays where it is."""
    monkeypatch.setattr("foliot.store.waiting.BATCH", 300)
    globex, worker = await world.another_tenant(), await world.worker()
    if limited:
        await Tenants(world.database).set_limit("acme", BACKLOG)
        world.specs = SpecBook(world.database)
    await world.submit(2 * LARGEST_CLAIM)
    for _ in range(2):
        taken = await claim_and_publish(worker, LARGEST_CLAIM)
        assert await worker.conclude(taken, outcome) == LARGEST_CLAIM
    while await world.promoter.run_once():
        pass
    assert await world.count("ready") == 2 * LARGEST_CLAIM
    (only,) = await world.submit(tenant=globex)
    assert only in [run.id for run in await worker.claim(10)]


async def test_one_high_run_behind_many_normal_ones_is_in_the_next_claim_though_v_is_old(world: World):
    """V is told every 200 ms: what is ranked by an old one lies below what was claimed since, and is still found."""
    worker = await world.worker()
    (lane,) = worker.lanes
    await world.submit(BACKLOG)
    marks, now = Marks([lane]), 0.0
    for number in range(1, 11):  # 8,000 runs between two tellings: 40,000 a second
        now += 0.02
        start = marks.next_scan(now, [lane])
        taken = await dispatch.claim(worker.line, worker.id, number, [lane], start, 800)
        marks.saw(lane, [run.rank for run in taken], now)
        if number == 1:
            await dispatch.publish(worker.line, marks.to_publish(now))
    (high,) = await world.submit(spec=of(Priority.HIGH))
    taken = await dispatch.claim(worker.line, worker.id, 11, [lane], marks.next_scan(now + 0.02, [lane]), 100)
    assert high in [run.id for run in taken]


async def test_queues_of_one_worker_share_its_claims_by_weight(world: World):
    await world.submit(900, function_spec(queue="fast"))
    await world.submit(900, function_spec(queue="bulk"))
    rows = await world.sql("SELECT id, queue FROM lane WHERE queue IN ('fast', 'bulk')")
    lanes = {row["id"]: row["queue"] for row in rows}
    queue_of = {row["spec"]: row["queue"] for row in await world.sql(
        "SELECT spec.id AS spec, lane.queue FROM spec JOIN lane ON lane.id = spec.lane"
    )}  # fmt: skip
    shares, worker, taken = Shares(lanes, {"fast": 3, "bulk": 1}), await world.worker(), Counter()
    for number, room in enumerate([100, 7, 1, 300, 92, 100], 1):
        asked = shares.divide(room)
        found = await dispatch.claim(
            worker.line, worker.id, number, [each.lane for each in asked], [0, 0], room, [each.most for each in asked]
        )
        assert len(found) == room
        counts = Counter(queue_of[run.spec] for run in found)
        shares.took({lane: counts[queue] for lane, queue in lanes.items()})
        taken += counts
    assert taken["fast"] == pytest.approx(450, abs=10)


async def test_a_weight_is_believed_for_two_seconds_by_those_who_accept_runs(world: World):
    now = 100.0
    book = SpecBook(world.database, lambda: now)
    assert (await book.intern(world.tenant, NOOP)).weight == 1
    await Tenants(world.database).set_weight("acme", 7)
    now += TENANTS_REMEMBERED - 0.001
    assert (await book.intern(world.tenant, NOOP)).weight == 1
    now += 0.001
    assert (await book.intern(world.tenant, NOOP)).weight == 7
    assert TENANTS_REMEMBERED <= 2.0


@pytest.mark.parametrize("weight", [0, -1, 1001])
async def test_a_weight_out_of_range_is_refused(world: World, weight: int):
    with pytest.raises(InvalidField, match="from 1 to 1000"):
        await Tenants(world.database).set_weight("acme", weight)


async def test_the_weight_of_nobody_cannot_be_set(world: World):
    for call in (Tenants(world.database).set_weight("nobody", 2), Tenants(world.database).weight("nobody")):
        with pytest.raises(NotFound, match="foliot tenant create"):
            await call


async def test_a_tenant_without_a_backlog_has_nothing_to_move(world: World):
    await world.submit(3)
    await claim_and_publish(await world.worker(), 3)
    found = await Tenants(world.database).set_weight("acme", 5)
    assert found == (5, False)
    assert await waiting(world) == []
