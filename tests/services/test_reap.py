"""Dead workers: what they held is taken over, and nobody is declared dead too soon."""

import asyncio
from datetime import timedelta

import pytest

from burying import replay
from foliot.domain.outcome import Ending, Outcome
from foliot.domain.states import State
from foliot.domain.suspicion import CRASHES_ALLOWED, Manner, manner
from foliot.services import reap
from foliot.services.reap import Reaper
from foliot.store import fleet
from foliot.store.fleet import ALL_CLAIMS, DEATHS_ALLOWED, LEASE, Reaped
from world import World

SILENCE = "UPDATE worker SET seen_at = clock_timestamp() - interval '1 minute'"


async def test_runs_of_a_dead_worker_that_had_not_begun_return_and_spend_no_attempt(world: World):
    ids = await world.submit(3)
    dead = await world.worker()
    await dead.claim()
    await dead.die()
    assert await fleet.reap(dead.line) == Reaped(claims=1, returned=3, dead=0)
    again = await (await world.worker()).claim()
    assert sorted(run.id for run in again) == ids
    assert {(run.attempt, run.deaths) for run in again} == {(0, -1)}, "one of them may be to blame"
    assert await world.count("history") == 0


async def test_a_run_that_had_begun_counts_a_lost_attempt_and_a_death(world: World):
    (run,) = await world.submit()
    dead = await world.worker()
    taken = await dead.claim()
    await dead.note_started(taken)
    await dead.die()
    await fleet.reap(dead.line)
    (again,) = await (await world.worker()).claim()
    assert (again.attempt, again.deaths) == (1, 1)
    (row,) = await world.sql("SELECT run, attempt, ending, state, worker, fence FROM history")
    assert tuple(row) == (run, 1, Ending.LOST, State.READY, dead.id, taken[0].fence)


async def test_a_mark_that_was_only_a_guess_gives_way_to_a_death_and_a_death_stays(world: World):
    await world.submit()
    marks = []
    for begins in (False, False, True, False, True):
        worker = await world.worker()
        taken = await worker.claim()
        if begins:
            await worker.note_started(taken)
        await worker.die()
        await fleet.reap(worker.line)
        marks.append(await world.value("SELECT deaths FROM run WHERE id > 0"))
    assert marks == [-1, -1, 1, 1, 2]
    assert await world.value("SELECT attempt FROM run WHERE id > 0") == 2


async def test_a_run_that_kills_its_own_process_is_quarantined_the_third_time(world: World):
    await world.submit()
    worker = await world.worker()
    for crashes in range(1, CRASHES_ALLOWED + 1):
        taken = await worker.claim()
        assert [run.deaths for run in taken] == [crashes - 1]
        lost = Outcome.again(Ending.LOST, "its process was killed by SIGSEGV", timedelta())
        assert await worker.conclude(taken, lost) == 1
        await world.promoter.run_once()
    (letter,) = await world.sql("SELECT id, attempt, error, error_class FROM dead_letter")
    assert letter["attempt"] == CRASHES_ALLOWED
    said = "it killed its process 3 times while running alone; the last time, its process was killed by SIGSEGV"
    assert letter["error"] == f"quarantined: {said}"
    assert letter["error_class"] == "quarantined"
    endings = await world.sql("SELECT ending, state FROM history ORDER BY attempt")
    assert [tuple(row) for row in endings] == [
        (Ending.LOST, State.SCHEDULED),
        (Ending.LOST, State.SCHEDULED),
        (Ending.LOST, State.DEAD),
    ]
    assert await world.count("run") == 0
    await replay(world, letter["id"])
    (again,) = await worker.claim()
    assert (manner(again.deaths), again.failures) == (Manner.ALONE, 0), "it goes on where it was, with all its retries"


async def test_a_run_under_which_too_many_workers_died_becomes_a_dead_letter(world: World):
    job = await world.job_id(scheduleAt="2026-01-01T00:00:00Z")
    await world.promoter.run_once()
    for _ in range(DEATHS_ALLOWED):
        worker = await world.worker()
        taken = await worker.claim()
        assert len(taken) == 1
        await worker.note_started(taken)
        await worker.die()
        reaped = await fleet.reap(worker.line)
    assert reaped == Reaped(claims=1, returned=0, dead=1)
    assert await world.value("SELECT attempt FROM dead_letter") == DEATHS_ALLOWED
    assert await world.count("run") == await world.count("ready") == 0
    assert await world.status(job) == "failed"
    endings = [row["ending"] for row in await world.sql("SELECT ending FROM history")]
    assert endings == [Ending.LOST] * DEATHS_ALLOWED


async def test_what_was_settled_before_the_death_stays_settled(world: World):
    await world.submit(3)
    dead = await world.worker()
    taken = await dead.claim()
    await dead.settle(taken[:2])
    await dead.die()
    assert await fleet.reap(dead.line) == Reaped(claims=1, returned=1, dead=0)
    assert await world.count("history") == 2


async def test_a_living_worker_keeps_its_claims(world: World):
    await world.submit()
    worker = await world.worker()
    taken = await worker.claim()
    assert await fleet.bury(worker.line) == []
    assert await fleet.reap(worker.line) == Reaped(0, 0, 0)
    assert await worker.settle(taken) == 1


async def test_a_claim_of_an_unknown_worker_is_taken_back(world: World):
    await world.submit()
    worker = await world.worker()
    await worker.claim()
    await world.sql("DELETE FROM worker")
    assert (await fleet.reap(worker.line)).returned == 1


async def test_a_claim_that_commits_after_its_worker_was_buried_is_taken_back(world: World):
    await world.submit()
    worker = await world.worker()
    async with world.unfinished() as line:
        await worker.on(line).claim()
        await worker.die()
        assert (await fleet.reap(worker.line)).claims == 0
    assert (await fleet.reap(worker.line)).returned == 1


async def test_a_heartbeat_that_comes_first_keeps_the_worker_alive(world: World):
    worker = await world.worker()
    await world.sql(SILENCE)
    async with world.unfinished() as line:
        assert await fleet.beat(line, worker.id)
        burying = asyncio.create_task(fleet.bury(worker.line))
        await world.until_waiting()
    assert await burying == []
    assert await fleet.beat(worker.line, worker.id)


async def test_a_heartbeat_that_comes_second_learns_that_it_is_too_late(world: World):
    worker = await world.worker()
    await world.sql(SILENCE)
    async with world.unfinished() as line:
        assert await fleet.bury(line) == [worker.id]
        beating = asyncio.create_task(fleet.beat(worker.line, worker.id))
        await world.until_waiting()
    assert not await beating
    await fleet.register(worker.line, worker.id, "risen")
    assert not await fleet.beat(worker.line, worker.id)


async def test_two_reapers_at_once_return_each_run_once(world: World):
    await world.submit(5)
    dead = await world.worker()
    await dead.claim()
    await dead.die()
    async with world.unfinished() as line:
        assert (await fleet.reap(line)).returned == 5
        assert (await fleet.reap(dead.line)).claims == 0
    assert await world.count("ready") == 5


async def test_what_a_reaper_looks_at_are_the_oldest_claims_and_all_that_are_young(world: World):
    worker = await world.worker()
    assert await fleet.standing_claims(worker.line) == ([], ALL_CLAIMS.above)
    await world.submit(3)
    (old,), (older,) = await worker.claim(1), await worker.claim(1)
    await world.sql("SELECT setval('fence', 1000000)")
    (young,) = await worker.claim(1)
    looked_at = await fleet.standing_claims(worker.line)
    assert looked_at.these == [old.fence, older.fence]
    assert older.fence < looked_at.above < young.fence
    await worker.die()
    assert await fleet.reap(worker.line, looked_at) == Reaped(claims=3, returned=3, dead=0)


async def test_of_very_many_claims_those_that_are_not_named_are_above(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fleet, "_MOST_NAMED", 2)
    await world.submit(4)
    worker = await world.worker()
    fences = [(await worker.claim(1))[0].fence for _ in range(4)]
    await world.sql("SELECT setval('fence', 1000000)")
    looked_at = await fleet.standing_claims(worker.line)
    assert looked_at == (fences[:2], fences[1])
    await worker.die()
    assert (await fleet.reap(worker.line, looked_at)).claims == 4


class Judge:
    """A reaper whose own clock and whose view of the server's stand in the test's hand."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = world
        self.now = 1_000.0
        self.up = timedelta(hours=1)
        self.reaper = Reaper(world.database, monotonic=lambda: self.now)
        monkeypatch.setattr(reap, "uptime", self._uptime)

    async def _uptime(self, line) -> timedelta:
        if self.up is None:
            raise ConnectionError
        return self.up

    async def look(self, seconds: float = 0, server: float | None = None) -> bool:
        """Let time pass and look once; whether the silent worker was declared dead."""
        self.now += seconds
        self.up += timedelta(seconds=seconds if server is None else server)
        await self.reaper.run_once()
        return await self.world.value("SELECT state = 2 FROM worker")

    async def watch(self, seconds: float) -> bool:
        """Look every second for so long."""
        return any([await self.look(1) for _ in range(int(seconds))])


@pytest.fixture
async def judge(world: World, monkeypatch: pytest.MonkeyPatch):
    await world.worker()
    await world.sql(SILENCE)
    judge = Judge(world, monkeypatch)
    yield judge
    await judge.reaper.close()


SECONDS = LEASE.total_seconds()


async def test_nobody_is_judged_within_a_lease_of_the_reapers_start(judge: Judge):
    assert not await judge.look()
    assert not await judge.watch(SECONDS - 1)
    assert await judge.look(1)


async def test_nobody_is_judged_within_a_lease_of_an_outage(judge: Judge):
    assert not await judge.watch(SECONDS - 1)
    up, judge.up = judge.up, None
    with pytest.raises(ConnectionError):
        await judge.reaper.run_once()
    judge.up = up
    assert not await judge.watch(SECONDS)
    assert await judge.look(1)


async def test_nobody_is_judged_within_a_lease_of_a_statement_that_failed(judge: Judge, monkeypatch):
    assert not await judge.watch(SECONDS)

    async def fail(*_):
        raise ConnectionError

    with monkeypatch.context() as patch:
        patch.setattr(reap, "bury", fail)
        with pytest.raises(ConnectionError):
            await judge.look(1)
    assert not await judge.watch(SECONDS)
    assert await judge.look(1)


async def test_nobody_is_judged_within_a_lease_of_the_reapers_own_suspension(judge: Judge):
    assert not await judge.watch(SECONDS)
    assert not await judge.look(SECONDS)
    assert not await judge.watch(SECONDS - 1)
    assert await judge.look(1)


async def test_nobody_is_judged_after_the_servers_clock_leapt(judge: Judge):
    """A machine that slept with everything on it: our own clock stood still meanwhile."""
    assert not await judge.watch(SECONDS)
    assert not await judge.look(1, server=3_600)
    assert not await judge.watch(SECONDS - 1)
    assert await judge.look(1)


async def test_nobody_is_judged_within_a_lease_of_the_servers_start(judge: Judge):
    judge.up = timedelta(seconds=-SECONDS)
    assert not await judge.watch(2 * SECONDS - 1)
    assert await judge.look(1)


async def test_claims_of_the_dead_are_taken_back_even_before_anybody_may_be_judged(world: World):
    await world.submit()
    worker = await world.worker()
    await worker.claim()
    await worker.die()
    reaper = Reaper(world.database)
    assert await reaper.run_once() == 1
    await reaper.close()


async def test_a_claim_that_commits_when_the_numbers_have_gone_far_beyond_it_is_found_by_the_next_whole_look(
    world: World,
):
    now = 0.0
    reaper = Reaper(world.database, monotonic=lambda: now)
    await world.submit()
    worker = await world.worker()
    async with world.unfinished() as line:
        await worker.on(line).claim()
        await worker.die()
        await world.sql("SELECT setval('fence', 1000000)")
        assert await reaper.run_once() == 0
    now = reap.WHOLE - 1
    assert await reaper.run_once() == 0
    now = reap.WHOLE
    assert await reaper.run_once() == 1
    assert await world.count("ready") == 1
    await reaper.close()


async def test_a_death_brings_the_next_whole_look_forward(world: World, monkeypatch: pytest.MonkeyPatch):
    judge = Judge(world, monkeypatch)
    await world.submit()
    worker = await world.worker()
    await world.sql(SILENCE)
    async with world.unfinished() as line:
        await worker.on(line).claim()
        await world.sql("SELECT setval('fence', 1000000)")
        assert not any([await judge.look(seconds) for seconds in (0, 4, 4, 4, 1)]), "the last of these looks at all"
    assert not await judge.look(1)
    assert await judge.look(1), "two seconds after it"
    assert await world.count("claim") == 0
    await judge.reaper.close()


async def test_a_claim_that_stood_at_the_last_whole_look_is_taken_back_at_once_when_its_worker_dies(world: World):
    now = 0.0
    reaper = Reaper(world.database, monotonic=lambda: now)
    await world.submit()
    worker = await world.worker()
    await worker.claim()
    await world.sql("SELECT setval('fence', 1000000)")
    assert await reaper.run_once() == 0
    await worker.die()
    now += 1
    assert await reaper.run_once() == 1
    await reaper.close()
