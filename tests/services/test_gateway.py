"""The gateway: what many workers ask is done at once, fairly, and nothing is left behind when one of them hangs up."""

import asyncio
from collections import Counter
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from foliot.domain.errors import Forbidden, NotFound, Unavailable
from foliot.domain.ids import decode, encode
from foliot.domain.outcome import Ending, Outcome
from foliot.kit.signals import READY
from foliot.kit.telemetry import GATEWAY_CLAIMS
from foliot.services.gateway import Bearer, claims, desks
from foliot.store.gateway import NOBODY, disown
from foliot.wire.work import (
    ClaimBody,
    Heartbeat,
    SettleBody,
    Succeeded,
)
from services.remotes import MINE, Hire, Remote, stays, waiting
from world import NOOP, PATIENCE, World


def statements() -> float:
    return GATEWAY_CLAIMS._value.get()  # type: ignore[no-any-return]


async def test_polls_that_wait_are_served_by_one_claim_and_share_what_it_finds(
    world: World, remote: Hire, monkeypatch: pytest.MonkeyPatch
):
    for name in ("SHORTEST_REST", "LONGEST_REST"):
        monkeypatch.setattr(desks, name, 60.0)  # nobody looks by himself
    workers = [await remote() for _ in range(5)]
    polls = [asyncio.ensure_future(each.claim(wait=20.0)) for each in workers]
    await waiting(world, 5)
    before = statements()
    ids = await world.submit(12)
    world.gateway.wake()
    answers = await asyncio.gather(*polls)
    assert statements() == before + 1
    assert sorted(len(answer.runs.run_id) for answer in answers) == [2, 2, 2, 3, 3]
    assert Counter(run for answer in answers for run in answer.runs.run_id) == Counter(
        encode("run", id_) for id_ in ids
    )
    assert len({fence for answer in answers for fence in answer.runs.fence}) == 5
    rows = await world.sql("SELECT worker, cardinality(runs) AS runs FROM claim")
    assert sorted(row["runs"] for row in rows) == [2, 2, 2, 3, 3]
    assert {row["worker"] for row in rows} == {decode("wrk", each.id) for each in workers}


async def test_each_gets_the_lowest_ranks_first_and_those_who_came_first_get_the_odd_one(world: World, remote: Hire):
    first, second = await remote(), await remote()
    polls = []
    for count, each in enumerate((first, second), 1):
        polls.append(asyncio.ensure_future(each.claim(wait=20.0)))
        await waiting(world, count)
    ids = [encode("run", id_) for id_ in await world.submit(3)]
    world.gateway.wake()
    one, two = await asyncio.gather(*polls)
    assert (one.runs.run_id, two.runs.run_id) == ([ids[0], ids[2]], [ids[1]])
    assert one.runs.position == [1, 2]


async def test_a_poll_that_finds_nothing_is_answered_empty_in_time(world: World, remote: Hire):
    worker = await remote()
    assert (await worker.claim(wait=0.02)).runs.run_id == []
    assert world.gateway._claims._polls == {}


async def test_work_is_found_without_any_hint(world: World, remote: Hire):
    worker = await remote()
    poll = asyncio.ensure_future(worker.claim(wait=20.0))
    await waiting(world, 1)
    await world.submit()
    assert len((await poll).runs.run_id) == 1


async def hand_in_apart(world: World) -> int:
    """A run as it comes out of a caller's own transaction, with a spec that is new."""
    (run,) = await world.submit(1, msgspec.structs.replace(NOOP, max_retries=7), delay=timedelta(hours=1))
    await world.sql("DELETE FROM run WHERE id = $1", run)
    await world.sql("DELETE FROM timer WHERE id = $1", run)
    row = "INSERT INTO outbox (id, tenant, body, due_at, payload) SELECT $1, $2, body, now(), '{}' FROM spec"
    await world.sql(f"{row} ORDER BY id DESC LIMIT 1", run, world.tenant)
    return run


async def test_retries_delayed_runs_and_those_of_a_callers_transaction_start_without_any_scheduler(
    world: World, remote: Hire
):
    failing = await world.worker()
    (retried,) = await world.submit()
    taken = await failing.claim()
    assert await failing.conclude(taken, Outcome.again(Ending.FAILED, "boom", timedelta())) == 1
    await world.job_id(scheduleAt="2026-01-01T00:00:00Z")
    (delayed,) = await world.submit(delay=timedelta(milliseconds=1))
    apart = await hand_in_apart(world)
    assert await world.count("ready") == 0
    worker, found = await remote(), set[int]()
    async with asyncio.timeout(PATIENCE):
        while len(found) < 4:
            found |= {decode("run", run) for run in (await worker.claim(wait=20.0)).runs.run_id}
    assert {retried, delayed, apart} < found


async def test_what_sits_behind_a_lock_does_not_hold_up_claims(world: World, remote: Hire):
    worker, job = await remote(), await world.job_id(scheduleAt="2026-01-01T00:00:00Z")
    await world.promoter.run_once()
    hand = await world.worker()
    assert await hand.conclude(await hand.claim(), Outcome.again(Ending.FAILED, "boom", timedelta())) == 1
    async with world.unfinished() as owner:
        await owner.execute("SELECT FROM job WHERE id = $1 FOR UPDATE", job)
        poll = asyncio.ensure_future(worker.claim(wait=20.0))
        await world.until_waiting()
        (run,) = await world.submit()
        world.gateway.wake()
        assert (await poll).runs.run_id == [encode("run", run)]
    assert len((await worker.claim(wait=20.0)).runs.run_id) == 1


async def test_who_hangs_up_while_waiting_takes_nothing(world: World, remote: Hire):
    worker, hung_up = await remote(), asyncio.Event()

    async def gone() -> None:
        await hung_up.wait()

    poll = asyncio.ensure_future(worker.claim(wait=20.0, gone=gone))
    await waiting(world, 1)
    hung_up.set()
    await poll
    await world.submit()
    world.gateway.wake()
    assert world.gateway._claims._polls == {}
    assert await world.count("ready") == 1


async def test_what_was_taken_for_one_who_hung_up_is_ready_again_at_once(world: World, remote: Hire):
    worker, other, hung_up = await remote(), await remote(), asyncio.Event()

    async def gone() -> None:
        await hung_up.wait()

    await world.submit(3)
    async with world.unfinished() as rival:
        # The statement waits for a rival, and its worker hangs up meanwhile.
        await rival.execute("LOCK TABLE claim IN ACCESS EXCLUSIVE MODE")
        poll = asyncio.ensure_future(worker.claim(wait=20.0, gone=gone))
        await world.until_waiting()
        hung_up.set()
    assert (await poll).runs.run_id == []
    assert await world.count("claim") == 0
    assert await world.count("ready") == 3
    assert READY in world.hints
    assert len((await other.claim(wait=20.0)).runs.run_id) == 3
    (untouched,) = await world.sql("SELECT max(attempt), min(deaths), max(deaths) FROM run WHERE id > 0")
    assert tuple(untouched) == (0, 0, 0)  # no worker died with them


async def test_what_was_fetched_again_is_not_handed_back_by_whoever_answered_first(world: World, remote: Hire):
    """One gateway holds an answer for a connection that broke; the worker has asked another gateway meanwhile."""
    worker, line = await remote(), world.database.line()
    await world.submit(2)
    await worker.claim(number=1)
    (row,) = await world.sql("SELECT id, worker, claimed_at FROM claim")
    again = await worker.claim(number=1)
    assert len(again.runs.run_id) == 2
    assert not await disown(line, row["worker"], row["id"], row["claimed_at"])
    known = await world.gateway.claim(MINE, ClaimBody(worker.id, known=[]), stays)
    assert known.runs.run_id == again.runs.run_id
    assert (await world.sql("SELECT worker FROM claim"))[0]["worker"] == row["worker"]
    await line.close()


async def test_one_answer_that_was_lost_does_not_hold_up_the_others(world: World, remote: Hire):
    first, second = await remote(), await remote()
    await world.submit(2)
    taken = await first.claim(most=1, number=9)
    world.gateway._claims._answered.clear()  # it was another gateway that answered
    polls = [asyncio.ensure_future(each.claim(wait=20.0, number=9)) for each in (first, second)]
    again, other = await asyncio.gather(*polls)
    assert again.runs == taken.runs
    assert len(other.runs.run_id) == 1
    assert other.runs.run_id != taken.runs.run_id


async def test_a_worker_that_asks_again_gives_up_what_it_asked_before(world: World, remote: Hire):
    worker = await remote()
    before = asyncio.ensure_future(worker.claim(wait=20.0))
    await waiting(world, 1)
    after = asyncio.ensure_future(worker.claim(wait=20.0))
    assert (await before).runs.run_id == []
    await world.submit()
    world.gateway.wake()
    assert len((await after).runs.run_id) == 1


async def test_a_claim_that_still_covers_a_run_cannot_be_forgotten(world: World, remote: Hire):
    worker = await remote()
    await world.submit(2)
    taken = (await worker.claim()).runs
    done = Succeeded(taken.fence[0], taken.run_id[:1], taken.position[:1], taken.scheduled_at[:1])
    await world.gateway.settle(MINE, SettleBody(worker.id, [done], forget=[taken.fence[0]]))
    assert await world.count("claim") == 1
    left = Succeeded(taken.fence[1], taken.run_id[1:], taken.position[1:], taken.scheduled_at[1:])
    await world.gateway.settle(MINE, SettleBody(worker.id, [left], forget=[taken.fence[0]]))
    assert await world.count("claim") == await world.count("run") == 0


async def test_settlements_of_many_workers_are_one_statement_and_each_is_told_its_own(world: World, remote: Hire):
    workers = [await remote() for _ in range(4)]
    await world.submit(8)
    taken = [(await each.claim(most=2)).runs for each in workers]
    lost = taken[2].run_id[1]
    await world.sql("UPDATE run SET fence = 1000000 WHERE id = $1", decode("run", lost))

    def settle(worker: Remote, runs: Any) -> Awaitable[Any]:
        part = Succeeded(runs.fence[0], runs.run_id, runs.position, runs.scheduled_at)
        return world.gateway.settle(MINE, SettleBody(worker.id, [part], forget=[runs.fence[0]]))

    answers = await asyncio.gather(*map(settle, workers, taken))
    assert [[each.run_id for each in answer.uncovered] for answer in answers] == [[], [], [lost], []]
    written = await world.sql("SELECT worker, count(*) AS count FROM history GROUP BY worker")
    assert sorted(row["count"] for row in written) == [1, 2, 2, 2]
    assert await world.count("claim") == 0  # the one of the lost run covers nothing any more


async def test_a_key_serves_only_the_queues_that_it_names(world: World, remote: Hire):
    worker = await remote("mail")
    limited = Bearer(MINE.key, ["default"])
    with pytest.raises(Forbidden, match="mail"):
        await world.gateway.claim(limited, ClaimBody(worker.id, 1, worker.lanes, most=1, wait=0), stays)
    with pytest.raises(Forbidden, match="mail"):
        await Remote(world, 50).register("default", "mail", bearer=limited)
    with pytest.raises(Forbidden):
        await Remote(world, 51).register(bearer=Bearer("other", []))
    assert await world.value("SELECT count(*) FROM worker WHERE id IN (50, 51)") == 0


async def test_a_worker_belongs_to_the_key_that_registered_it(world: World, remote: Hire):
    worker, thief = await remote(), Bearer("another", ["*"])
    direct = await world.worker()
    for number in (decode("wrk", worker.id), direct.id + 1_000):
        stolen = Remote(world, number)
        with pytest.raises(NotFound):
            await world.gateway.claim(thief, ClaimBody(stolen.id, 1, worker.lanes, most=1, wait=0), stays)
        with pytest.raises(NotFound):
            await world.gateway.settle(thief, SettleBody(stolen.id))
        with pytest.raises(NotFound):
            await world.gateway.heartbeat(thief, Heartbeat(stolen.id, leaving=True))
    with pytest.raises(NotFound):
        await Remote(world, decode("wrk", worker.id)).register(bearer=thief)


async def test_nobody_speaks_for_a_worker_that_speaks_to_the_database(world: World):
    direct = await world.worker()
    with pytest.raises(NotFound):
        await Remote(world, direct.id).register()
    with pytest.raises(NotFound):
        await world.gateway.settle(MINE, SettleBody(encode("wrk", direct.id)))


async def test_nobody_can_come_in_the_name_of_nobody(world: World):
    """In whose name a claim stands that was given up: who had it would have the runs of every queue."""
    with pytest.raises(NotFound):
        await Remote(world, NOBODY).register()
    assert await world.count("worker") == 0


async def test_only_so_many_may_wait(world: World, remote: Hire, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(claims, "MOST_WAITING", 1)
    first, second = await remote(), await remote()
    poll = asyncio.ensure_future(first.claim(wait=20.0))
    await waiting(world, 1)
    with pytest.raises(Unavailable, match="too many"):
        await second.claim(wait=20.0)
    world.gateway.dismiss()
    assert (await poll).runs.run_id == []
    assert (await second.claim(wait=20.0)).runs.run_id == []


async def test_how_far_lanes_were_claimed_is_published(world: World, remote: Hire):
    worker = await remote()
    await world.submit(3)
    await worker.claim(wait=20.0)
    await world.until("SELECT v > 0 FROM lane WHERE id = $1", worker.lanes[0])
