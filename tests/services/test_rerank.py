"""A backlog is ranked anew when its tenant's weight changes: in order, in pages, beside claims and arrivals."""

import asyncio
import random
from datetime import timedelta
from typing import Any

import pytest

from foliot.domain.fairness import Priority, step
from foliot.domain.marks import Marks
from foliot.services.rerank import Reranker
from foliot.services.tenants import Tenants
from foliot.store import dispatch, rerank
from foliot.store.flows import Flow, reserve
from foliot.store.submission import NewRun, enqueue
from ranking import claim_and_publish, per_tenant, rank_anew, reranker, waiting, weigh
from world import NOOP, PATIENCE, World

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(("before", "after", "share"), [(1, 3, 150), (4, 1, 100)], ids=["rises", "falls"])
async def test_a_weight_that_changes_takes_hold_of_what_waits(world: World, before: int, after: int, share: int):
    globex, worker = await world.another_tenant(), await world.worker()
    await weigh(world, before)
    await asyncio.gather(world.submit(400), world.submit(400, tenant=globex))
    await claim_and_publish(worker, 40)
    order = await waiting(world)
    await weigh(world, after)
    await rank_anew(world)
    assert await waiting(world) == order
    assert per_tenant(await worker.claim(200))[world.tenant] == pytest.approx(share, rel=0.1)


async def test_only_the_tenants_own_backlog_moves_and_never_below_v(world: World):
    globex, worker = await world.another_tenant(), await world.worker()
    await asyncio.gather(world.submit(200), world.submit(200, tenant=globex))
    await claim_and_publish(worker, 100)
    theirs = await _ranks(world, globex)
    await weigh(world, 1000)
    await rank_anew(world)
    v = await world.value("SELECT v FROM lane WHERE id = $1", worker.lanes[0])
    assert min((await _ranks(world)).values()) > v
    assert max((await _ranks(world)).values()) - v == pytest.approx(150 * step(1000, Priority.NORMAL), rel=0.03)
    assert await _ranks(world, globex) == theirs


async def test_what_was_drawn_to_the_head_is_in_the_next_claim_of_those_who_scan_from_a_mark(world: World):
    globex, worker = await world.another_tenant(), await world.worker()
    (lane,) = worker.lanes
    await asyncio.gather(world.submit(900), world.submit(900, tenant=globex))
    marks = Marks([lane])
    for number in (1, 2, 3):
        taken = await dispatch.claim(worker.line, worker.id, number, [lane], marks.next_scan(number / 50, [lane]), 200)
        marks.saw(lane, [run.rank for run in taken], number / 50)
        if number < 3:
            await dispatch.publish(worker.line, marks.to_publish(number / 50))  # the last one has not been told yet
    await weigh(world, 1000)
    await rank_anew(world)
    taken = await dispatch.claim(worker.line, worker.id, 4, [lane], marks.next_scan(4 / 50, [lane]), 200)
    assert per_tenant(taken)[world.tenant] > 190


@pytest.mark.parametrize("weights", [(1, 10), (10, 1)])
async def test_what_arrives_in_between_stays_behind(world: World, weights: tuple[int, int]):
    await weigh(world, weights[0])
    ids = await world.submit(120)
    await weigh(world, weights[1])
    ids += await world.submit(30)
    async with reranker(world, page=40) as duty:
        await duty.run_once()
        ids += await world.submit(30)
        await duty.run_once()
        ids += await world.submit(30)
    await rank_anew(world)
    ids += await world.submit(30)
    assert await waiting(world) == ids
    # And right behind: no hole is left in which the tenant would get nothing.
    ranks = sorted((await _ranks(world)).values())
    assert ranks[-30] - ranks[-31] == step(weights[1], Priority.NORMAL)


async def test_weights_that_change_while_a_backlog_is_on_the_move_are_followed_one_after_the_other(world: World):
    ids = await world.submit(120)
    async with reranker(world, page=50) as duty:
        for weight in (8, 2, 5, 1):
            await weigh(world, weight)
            await duty.run_once()
    assert (await Tenants(world.database).weight("acme")).is_moving
    await rank_anew(world)
    assert not (await Tenants(world.database).weight("acme")).is_moving
    assert await waiting(world) == ids
    ranks = sorted((await _ranks(world)).values())
    assert ranks[-1] == pytest.approx(120 * step(1, Priority.NORMAL), rel=0.05)


@pytest.mark.parametrize("weights", [(1, 10), (10, 1)])
async def test_whoever_dies_in_the_middle_leaves_a_valid_order_and_somebody_else_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch, weights: tuple[int, int]
):
    await weigh(world, weights[0])
    ids = await world.submit(150)
    await weigh(world, weights[1])
    async with reranker(world) as first:
        await first.run_once()
        before = await _ranks(world)
        monkeypatch.setattr(rerank, "note", _dies)
        with pytest.raises(ConnectionResetError):
            await first.run_once()
        monkeypatch.undo()
    assert await _ranks(world) == before  # the page and the note of it go together
    assert await waiting(world) == ids
    await rank_anew(world)
    assert await waiting(world) == ids
    assert await _ranks(world) != before


async def test_claims_pages_and_arrivals_in_any_sequence_keep_the_order(world: World):
    """By chance; each deed is committed before the next."""
    chance, worker, ids, taken = random.Random(7), await world.worker(), [], []
    async with reranker(world, page=9) as duty:
        for _ in range(12):
            await weigh(world, chance.choice([1, 2, 7, 100, 1000]))
            for _ in range(chance.randint(1, 4)):
                ids += await world.submit(chance.randint(1, 20))
                await duty.run_once()
                taken += [run.id for run in await claim_and_publish(worker, chance.randint(1, 15))]
                assert ids == taken + await waiting(world)
    await rank_anew(world)
    assert ids == taken + await waiting(world)


async def test_a_claim_passes_over_what_is_on_the_move_and_nothing_is_lost_or_doubled(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    ids, worker = await world.submit(60), await world.worker()
    await weigh(world, 2)
    page = Stopped(monkeypatch)
    async with reranker(world, page=20) as duty:
        moving = asyncio.create_task(duty.run_once())
        await page.reached()
        first = [run.id for run in await worker.claim(10)]
        assert first == ids[20:30]
        page.go()
        await moving
    await rank_anew(world)
    assert [run.id for run in await worker.claim()] == [*ids[:20], *ids[30:]]


async def test_what_a_claimer_is_taking_is_not_moved(world: World):
    ids, worker, other = await world.submit(60), await world.worker(), await world.worker()
    await weigh(world, 2)
    async with world.unfinished() as line:
        first = await worker.on(line).claim(10)
        await rank_anew(world)
    assert [run.id for run in first] == ids[:10]
    assert await other.settle(first) == 0
    assert await worker.settle(first) == 10
    assert [run.id for run in await other.claim()] == ids[10:]


async def test_a_job_that_is_paused_while_its_runs_are_on_the_move_is_paused(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    job = await world.job_id(onDemand=True)
    await world.submit(30, job=job)
    await weigh(world, 2)
    page = Stopped(monkeypatch)
    async with reranker(world) as duty:
        moving = asyncio.create_task(duty.run_once())
        await page.reached()
        pausing = asyncio.create_task(world.control.pause(world.tenant, job))
        await world.until_waiting()
        page.go()
        await asyncio.gather(moving, pausing)
    assert await world.count("ready") == 0
    assert await world.value("SELECT count(*) FROM run WHERE job = $1 AND state = 2", job) == 30


async def test_one_scheduler_moves_a_flow_while_another_moves_others(world: World, monkeypatch: pytest.MonkeyPatch):
    globex = await world.another_tenant()
    await world.submit(30)
    await world.submit(30, tenant=globex)
    await weigh(world, 2)
    page = Stopped(monkeypatch)
    async with reranker(world) as one, reranker(world) as other:
        moving = asyncio.create_task(one.run_once())
        await page.reached()
        assert await other.run_once() == 0
        await weigh(world, 2, "globex")
        assert await other.run_once() > 0
        page.go()
        await moving


async def test_nothing_moves_before_what_was_ranked_by_the_old_weight_must_have_come(world: World):
    flow = (await world.specs.intern(world.tenant, NOOP)).flow
    ids = await world.submit(20)
    line = world.database.line()
    ranks = await reserve(line, {flow: 1}, {}, 1)  # somebody is about to insert it
    await weigh(world, 50)
    async with reranker(world, landing=timedelta(hours=1)) as patient:
        assert await patient.run_once() == 0
    await _insert(world, line, ranks, flow)
    await rank_anew(world)
    assert await waiting(world) == [*ids, *ranks.ids]
    await line.close()


async def test_the_last_page_gives_arrivals_a_moment_and_leaves_a_straggler_where_it_is(world: World):
    flow = (await world.specs.intern(world.tenant, NOOP)).flow
    ids = await world.submit(20)
    line = world.database.line()
    await weigh(world, 50)
    ranks = await reserve(line, {flow: 1}, {world.tenant: 50}, 1)
    await rank_anew(world)
    await _insert(world, line, ranks, flow)
    later = await world.submit(5)
    assert await waiting(world) == [*ids, *later, *ranks.ids]
    assert [run.id for run in await (await world.worker()).claim()] == [*ids, *later, *ranks.ids]
    await line.close()


async def test_what_is_made_up_for_moves_with_the_bulk_flow_it_was_ranked_in(world: World):
    """Runs of late instants stay behind those of their job's own priority, whatever the weight."""
    await world.job_id(every="PT1H", scheduleAt=world.half_way(HOUR))
    await world.make_overdue(2 * HOUR)
    await world.fire()
    (late,) = await waiting(world)
    flows = await world.sql("SELECT priority FROM flow")
    assert [row["priority"] for row in flows] == [Priority.BULK]
    ids = await world.submit(3)
    assert (await waiting(world))[-1] == late
    await weigh(world, 2)
    await rank_anew(world)
    assert sorted(await waiting(world)) == sorted([*ids, late])
    assert (await _ranks(world))[late] == step(2, Priority.BULK)


async def test_a_race_of_claimers_arrivals_and_pages_loses_nothing_and_doubles_nothing(world: World):
    workers, ids, taken = [await world.worker(), await world.worker()], await world.submit(800), []
    over = asyncio.Event()

    async def arrive() -> None:
        for _ in range(20):
            ids.extend(await world.submit(20))

    async def claim(worker: Any) -> None:
        for _ in range(25):
            taken.extend(run.id for run in await claim_and_publish(worker, 11))

    async def change() -> None:
        for weight in (9, 1, 300, 2):
            await Tenants(world.database).set_weight("acme", weight)
            await asyncio.sleep(0)

    async def move(duty: Reranker) -> None:
        while not over.is_set():
            await duty.run_once()

    async with reranker(world, timedelta(milliseconds=250), page=40) as duty:
        moving = asyncio.create_task(move(duty))
        await asyncio.gather(arrive(), change(), *map(claim, workers))
        over.set()
        await moving
    left = await waiting(world)
    assert taken
    assert sorted(taken + left) == sorted(ids)  # each once
    assert left == sorted(left)  # ids rise with time
    await rank_anew(world)
    assert await waiting(world) == left


class Stopped:
    """Holds the first page at the point where it has moved its runs and has not committed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._is_there, self._may_go = asyncio.Event(), asyncio.Event()
        original = rerank.move

        async def move(*arguments: Any) -> int:
            moved = await original(*arguments)
            if not self._is_there.is_set():
                self._is_there.set()
                await self._may_go.wait()
            return moved

        monkeypatch.setattr(rerank, "move", move)

    async def reached(self) -> None:
        await asyncio.wait_for(self._is_there.wait(), PATIENCE)

    def go(self) -> None:
        self._may_go.set()


async def _dies(*_: Any, **__: Any) -> None:
    raise ConnectionResetError("killed in mid-transaction")


async def _ranks(world: World, tenant: int | None = None) -> dict[int, int]:
    rows = await world.sql(
        "SELECT ready.run, ready.rank FROM ready JOIN run ON run.id = ready.run WHERE run.tenant = $1",
        tenant or world.tenant,
    )
    return {row["run"]: row["rank"] for row in rows}


async def _insert(world: World, line: Any, ranks: Any, flow: Flow) -> None:
    ref = await world.specs.intern(world.tenant, NOOP)
    async with line.borrow(atomic=False) as connection:
        await enqueue(connection, [NewRun(ref, b"{}")], ranks.ids, [ranks.take(flow)])
