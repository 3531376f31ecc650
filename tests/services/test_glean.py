"""Runs that every claimer has gone past come back to where claimers look, in their order."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from foliot.kit import telemetry
from foliot.services import glean
from foliot.services.glean import BETWEEN, GRACE, REST, Gleaner
from foliot.store import dispatch
from world import World

WAITING = "SELECT ready.run, ready.rank FROM ready WHERE lane > 0 ORDER BY ready.rank, ready.run"
UNLIKE = "SELECT count(*) FROM ready JOIN run ON run.id = ready.run WHERE lane > 0 AND ready.rank <> run.rank"


@asynccontextmanager
async def gleaner(world: World, pages: int = 16) -> AsyncIterator[Gleaner]:
    duty = Gleaner(world.database, pages)
    try:
        yield duty
    finally:
        await duty.close()


async def go_round(duty: Gleaner) -> int:
    """How many were moved in one round."""
    assert await duty.run_once() == 0
    while await duty.pause() != REST:
        if moved := await duty.run_once():
            return moved
    return 0


async def waiting(world: World) -> dict[int, int]:
    """Ranks by run, in the order in which they would be claimed."""
    assert await world.value(UNLIKE) == 0
    return {row["run"]: row["rank"] for row in await world.sql(WAITING)}


async def passed(world: World, runs: int) -> int:
    """So many runs of two tenants, all of them far below how far their lane is said to have been claimed: to here."""
    globex, worker = await world.another_tenant(), await world.worker()
    await world.submit(runs // 2)
    await world.submit(runs // 2, tenant=globex)
    head = 10**12
    await dispatch.publish(worker.line, {worker.lanes[0]: head})
    return head


async def test_what_was_passed_stands_just_before_the_head_and_in_its_order(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(glean, "CHUNK", 7)
    before = telemetry.REGISTRY.get_sample_value("foliot_runs_gleaned_total")
    head = await passed(world, 60)
    order = list(await waiting(world))
    async with gleaner(world) as duty:
        assert await go_round(duty) == 60
        lifted = await waiting(world)
        assert list(lifted.values()) == list(range(head - 60, head))
        flows = await world.sql(
            "SELECT tenant, array_agg(id ORDER BY rank) AS runs FROM run WHERE id > 0 GROUP BY tenant"
        )
        assert all(row["runs"] == [run for run in order if run in row["runs"]] for row in flows)
        assert await go_round(duty) == 0, "where they stand they are looked for"
    assert await waiting(world) == lifted
    assert telemetry.REGISTRY.get_sample_value("foliot_runs_gleaned_total") == before + 60


async def test_what_is_not_passed_stays_where_it_is(world: World):
    worker = await world.worker()
    await world.submit(30)
    ranks = await waiting(world)
    async with gleaner(world) as duty:
        assert await go_round(duty) == 0
        await dispatch.publish(worker.line, {worker.lanes[0]: min(ranks.values())})
        assert await go_round(duty) == 0
    assert await waiting(world) == ranks


async def test_what_comes_and_is_claimed_within_the_grace_is_nobodys_business(world: World):
    """How far claimers were is asked before the grace: below that, what is left afterwards was passed."""
    worker = await world.worker()
    async with gleaner(world) as duty:
        await duty.run_once()
        await world.submit(5)
        ranks = await waiting(world)
        await dispatch.publish(worker.line, {worker.lanes[0]: 10**12})
        while await duty.pause() != REST:
            await duty.run_once()
    assert await waiting(world) == ranks


async def test_what_a_claimer_has_hold_of_is_not_moved(world: World):
    await passed(world, 20)
    before = await waiting(world)
    sixth = list(before.values())[5]
    async with gleaner(world) as duty:
        async with world.unfinished() as rival:
            await rival.execute("SELECT FROM ready WHERE lane > 0 AND rank < $1 FOR UPDATE", sixth)
            moved = await go_round(duty)
        after = await waiting(world)
        stayed = {run for run, rank in before.items() if rank < sixth}
        assert {run for run, rank in after.items() if rank == before[run]} == stayed
        assert moved == 20 - len(stayed) < 20
        assert await go_round(duty) == len(stayed), "it was taken back, and is taken up the next time"


async def test_more_than_one_round_can_carry_are_taken_up_by_the_next_ones(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(glean, "MOST", 100)
    head = await passed(world, 1_000)
    async with gleaner(world, pages=2) as duty:
        rounds = 0
        while min((await waiting(world)).values()) < head - 1_000:
            await go_round(duty)
            rounds += 1
            assert rounds < 200
    assert rounds > 1


async def test_a_round_gives_claimers_time_and_rests_between_its_looks(world: World):
    async with gleaner(world) as duty:
        await duty.run_once()
        assert await duty.pause() == GRACE
        await duty.run_once()
        assert await duty.pause() == BETWEEN, "the ballast alone takes more than sixteen pages"
        while await duty.pause() == BETWEEN:
            await duty.run_once()
        assert await duty.pause() == REST
        await duty.run_once()
        assert await duty.pause() == GRACE
