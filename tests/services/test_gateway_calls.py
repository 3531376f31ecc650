"""What the calls of remote workers carry besides: endings with a claim, what a heartbeat tells, news for who waits."""

import asyncio

import pytest

from foliot.domain.errors import Conflict, InvalidField
from foliot.domain.ids import decode
from foliot.services.gateway import desks
from foliot.wire.work import Heartbeat, SettleAnswer, SettleBody
from services.remotes import MINE, Hire, succeeded, waiting
from world import PATIENCE, World


async def test_a_claim_may_tell_of_endings_and_is_answered_with_both(world: World, remote: Hire):
    worker = await remote()
    await world.submit(3)
    first = (await worker.claim(most=2)).runs
    answer = await worker.claim(ended=SettleBody(worker.id, succeeded(first), forget=[first.fence[0]]))
    assert (len(answer.runs.run_id), answer.settled) == (1, SettleAnswer())
    assert (await world.count("history"), await world.count("claim")) == (2, 1)


async def test_a_claim_that_tells_of_endings_waits_for_nobody_and_overtakes_nobody(
    world: World, remote: Hire, monkeypatch: pytest.MonkeyPatch
):
    for name in ("SHORTEST_REST", "LONGEST_REST"):
        monkeypatch.setattr(desks, name, 60.0)
    worker, other = await remote(), await remote()
    await world.submit()
    first = (await worker.claim()).runs
    poll = asyncio.ensure_future(other.claim(wait=20.0))
    world.gateway.wake()
    await waiting(world, 1)
    await world.submit()  # nobody was told
    answer = await worker.claim(wait=20.0, ended=SettleBody(worker.id, succeeded(first)))
    assert (answer.runs.run_id, answer.settled) == ([], SettleAnswer())
    world.gateway.wake()
    assert len((await poll).runs.run_id) == 1


async def test_a_claim_whose_endings_could_not_be_taken_is_answered_when_it_comes_again(world: World, remote: Hire):
    worker = await remote()
    await world.submit(2)
    first = (await worker.claim(most=1)).runs
    async with world.database.transaction() as rival:
        await rival.execute("SELECT FROM run WHERE id = $1 FOR UPDATE", decode("run", first.run_id[0]))
        with pytest.raises(Conflict):
            await worker.claim(number=5, ended=SettleBody(worker.id, succeeded(first)))
    again = (await worker.claim(number=5)).runs
    assert len(again.run_id) == 1
    assert again.run_id != first.run_id


async def test_nobody_tells_of_anothers_endings_with_its_claim(remote: Hire):
    worker, rival = await remote(), await remote()
    with pytest.raises(InvalidField, match="another than the one that claims"):
        await worker.claim(ended=SettleBody(rival.id, forget=[1]))


async def test_a_heartbeat_says_whether_claims_stand_that_its_worker_does_not_know(world: World, remote: Hire):
    worker, other = await remote(), await remote()
    await world.submit(2)
    fence = (await worker.claim(most=1)).runs.fence[0]
    await other.claim(most=1)

    async def is_astray(known: list[int] | None) -> bool:
        return (await world.gateway.heartbeat(MINE, Heartbeat(worker.id, known=known))).astray

    assert [await is_astray(known) for known in ([fence], [], None)] == [False, True, False]


async def test_who_waits_is_told_at_once_that_a_heartbeat_would_learn_something(world: World, remote: Hire):
    workers = [await remote() for _ in range(2)]
    world.gateway.hear()  # as when the process begins to listen
    async with asyncio.timeout(PATIENCE):
        while world.gateway._news._seen is None:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.001)
    polls = [asyncio.ensure_future(each.claim(wait=20.0)) for each in workers]
    await waiting(world, 2)
    await world.fleet.drain(decode("wrk", workers[0].id))
    world.gateway.hear()
    assert (await polls[0]).news
    assert not polls[1].done()
    await world.fleet.pause("default")
    world.gateway.hear()
    assert (await polls[1]).news


def test_the_more_comes_the_more_a_worker_gets_at_once():
    desk = desks.Desk(frozenset({1}))
    assert desk.together(0.0) == 1
    for tick in range(100):
        desk.served(tick / 100, found=100, wanted=2_000)
    assert desk.together(1.0) == pytest.approx(100, abs=10)
    assert desk.due == pytest.approx(0.99 + desks.BUSY_REST)
    assert desk.together(5.0) == 1
