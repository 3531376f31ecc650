"""C6 and C8 at the gateway: its own statements are cut off, or their answers lost, 25 times each."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from brittle import BrittleDatabase, Scissors
from foliot.domain.errors import Unauthorised, Unavailable
from foliot.domain.ids import decode, encode
from foliot.domain.outcome import SUCCEEDED, Ending, Outcome
from foliot.services.gateway import Bearer, Gateway
from foliot.store import fleet
from foliot.store.dispatch import Settlement
from foliot.store.gateway import NOBODY
from foliot.wire.work import ClaimBody, RunColumns, SettleAnswer, SettleBody
from foliot.worker.gateway.columns import claimed, in_columns, in_full
from services.remotes import MINE, Hire, Remote, stays, succeeded
from world import World

REPEATS = 25


@pytest.fixture(autouse=True)
async def gateway(world: World, brittle: BrittleDatabase) -> AsyncIterator[Gateway]:
    """In the place of the world's own: one whose connections can be cut."""
    world.gateway = Gateway(brittle, world.hints.append)
    serving = asyncio.ensure_future(world.gateway.run())
    yield world.gateway
    serving.cancel()
    await asyncio.wait([serving])


async def taken_over(world: World, dead: Remote) -> None:
    """What is left of the worker's claims is taken back."""
    await fleet.leave(world.promoter._line, decode("wrk", dead.id))
    while (await fleet.reap(world.promoter._line)).claims:
        pass


async def done(world: World, worker: Remote, runs: RunColumns) -> None:
    ended = SettleBody(worker.id, succeeded(runs), forget=runs.fence)
    assert await world.gateway.settle(MINE, ended) == SettleAnswer()


async def test_c6_a_claim_whose_answer_was_lost_is_answered_with_the_same_when_it_is_repeated(
    world: World, remote: Hire, scissors: Scissors
):
    """Also if that answer is lost too; and anew, if the claim never came to pass."""
    worker, numbers = await remote(), itertools.count(1)
    points = [[("claim_for_many", False)], [("claim_for_many", True)]]
    points += [[("claim_for_many", True), ("fetch_again", after)] for after in (False, True)]
    for _, cuts in zip(range(REPEATS), itertools.cycle(points), strict=False):
        (run,), number = await world.submit(), next(numbers)
        for statement, after in cuts:
            scissors.cut(statement, after=after)
            with pytest.raises(Unavailable):
                await worker.claim(most=1, number=number)
            assert scissors.is_done
            (other,) = await world.submit()
        runs = (await worker.claim(most=1, number=number)).runs
        assert runs.run_id == [encode("run", run)]
        assert (await worker.claim(most=1, number=number)).runs == runs
        assert await world.count("claim") == 1
        others = (await worker.claim(number=next(numbers))).runs
        assert others.run_id[-1] == encode("run", other)
        for each in (runs, others):
            await done(world, worker, each)
    assert await world.count("run") == await world.count("claim") == 0
    assert await world.value("SELECT array_agg(DISTINCT attempt) FROM history") == [1]


async def test_c6_who_asks_for_what_it_does_not_know_of_is_told_until_it_knows(
    world: World, remote: Hire, scissors: Scissors
):
    worker = await remote()
    for number in range(REPEATS):
        (run,) = await world.submit()
        scissors.cut("claim_for_many", after=True)
        with pytest.raises(Unavailable):
            await worker.claim()
        asked = ClaimBody(worker.id, known=[])
        scissors.cut("strays_for_many", after=number % 2 == 0)
        with pytest.raises(Unavailable):
            await world.gateway.claim(MINE, asked, stays)
        assert scissors.is_done
        runs = (await world.gateway.claim(MINE, asked, stays)).runs
        assert runs.run_id == [encode("run", run)]
        await done(world, worker, runs)
    assert await world.count("run") == await world.count("claim") == 0


async def test_c6_what_was_claimed_for_a_worker_that_never_heard_of_it_comes_back_untouched(
    world: World, remote: Hire, scissors: Scissors
):
    successor = await remote()
    for _ in range(REPEATS):
        (run,) = await world.submit()
        dead = await remote()
        scissors.cut("claim_for_many", after=True)
        with pytest.raises(Unavailable):
            await dead.claim()
        assert (await successor.claim()).runs.run_id == []
        await taken_over(world, dead)
        runs = (await successor.claim()).runs
        assert (runs.run_id, runs.attempt) == ([encode("run", run)], [0])
        await done(world, successor, runs)
    assert await world.count("run") == await world.count("claim") == 0


async def is_over() -> bool:
    return False


async def test_c6_a_hand_back_that_was_cut_off_anywhere_leaves_the_run_for_another(
    world: World, remote: Hire, scissors: Scissors
):
    """For a worker whose key has ended meanwhile. What the cut left in nobody's name the reaper takes back."""
    worker, successor = await remote(), await remote()
    ended = Bearer(MINE.key, MINE.serves, is_over)
    statements = itertools.product(("disown", "conclude", "forget"), (False, True))
    for number, (statement, after) in zip(range(1, REPEATS + 1), itertools.cycle(statements), strict=False):
        (run,) = await world.submit()
        scissors.cut(statement, after=after)
        with pytest.raises(Unavailable):
            await world.gateway.claim(ended, ClaimBody(worker.id, number, worker.lanes, most=1, wait=0), stays)
        assert scissors.is_done
        owners = [row["worker"] for row in await world.sql("SELECT worker FROM claim")]
        if (statement, after) == ("disown", False):
            assert owners == [decode("wrk", worker.id)]
            await taken_over(world, worker)
            worker = await remote()
        else:
            assert owners == ([] if (statement, after) == ("forget", True) else [NOBODY])
            assert (await fleet.reap(world.promoter._line)).claims == len(owners)
        runs = (await successor.claim()).runs
        assert (runs.run_id, runs.attempt) == ([encode("run", run)], [0])
        await done(world, successor, runs)
        assert await world.count("run") == await world.count("ready") == await world.count("claim") == 0
    await world.submit()
    with pytest.raises(Unauthorised):  # uncut
        await world.gateway.claim(ended, ClaimBody(worker.id, 99, worker.lanes, most=1, wait=0), stays)
    assert (await world.count("ready"), await world.count("claim")) == (1, 0)


async def test_c8_a_result_whose_answer_was_lost_is_a_success_when_it_is_sent_again(
    world: World, remote: Hire, scissors: Scissors
):
    worker = await remote()
    again, dead = (
        Outcome.again(Ending.FAILED, "boom", timedelta(hours=1)),
        Outcome.dead(Ending.FAILED, "boom"),
    )
    outcomes = [("settle_for_many", SUCCEEDED), ("conclude", again), ("forget_for_many", SUCCEEDED), ("conclude", dead)]
    points = itertools.cycle([(*each, after) for each in outcomes for after in (True, False)])
    for number, (statement, outcome, after) in zip(range(REPEATS), points, strict=False):
        await world.submit()
        runs = [Settlement(run, datetime.now(UTC), outcome) for run in claimed((await worker.claim()).runs)]
        told = {"succeeded": in_columns(runs)} if outcome is SUCCEEDED else {"ended": [in_full(each) for each in runs]}
        body = SettleBody(worker.id, **told, forget=[each.run.fence for each in runs])
        scissors.cut(statement, after=after)
        with pytest.raises(Unavailable):
            await world.gateway.settle(MINE, body)
        assert scissors.is_done
        answer = await world.gateway.settle(MINE, body)
        assert answer.lost == []
        if answer.uncovered:
            doubted = SettleBody(worker.id, doubted=[in_full(each) for each in runs])
            assert await world.gateway.settle(MINE, doubted) == SettleAnswer()
        assert bool(answer.uncovered) == (outcome is SUCCEEDED and (after or statement == "forget_for_many"))
        assert await world.count("history") == number + 1
        assert await world.count("claim") == 0
    assert await world.count("late_result") == 0
