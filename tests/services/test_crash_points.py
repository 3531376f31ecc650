"""Every process may be killed at any point: the crash points of the way from submission to result, 25 times each.

A process that is killed leaves either a statement that was never sent or one whose answer nobody hears; one that the
server itself breaks off leaves nothing. (C3 to C5 are the scheduler's: see test_fire_races and test_fire_shards. C6 and
C8 once more at the gateway, and C11, where owners meet workers, are in files of their own.)
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import msgspec
import pytest

from brittle import BrittleDatabase, BrittleLine, Scissors
from foliot.domain.errors import Unavailable
from foliot.domain.ids import decode
from foliot.domain.outcome import SUCCEEDED, Ending, Outcome
from foliot.domain.spec import Spec
from foliot.domain.states import State
from foliot.domain.suspicion import deaths
from foliot.services.control import Control
from foliot.services.insights.jobs import job_view
from foliot.services.submit import Accepted, Key, Submitter
from foliot.store import dispatch, fleet
from foliot.store.database import Line
from foliot.store.dispatch import Claimed, Settlement
from foliot.store.specs import SpecBook
from foliot.store.submission import NewRun
from foliot.wire.jobs import JobBody, draft_of
from foliot.worker.carrier import SqlCarrier
from world import NOOP, PATIENCE, Hand, World

REPEATS = 25
ONCE = msgspec.structs.replace(NOOP, delivery="atMostOnce", max_retries=0)
AGAIN = Outcome.again(Ending.FAILED, "boom", timedelta(hours=1))
DEAD = Outcome.dead(Ending.FAILED, "boom")
BREAK_OFF = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock' AND state = 'active'"
)


async def insist(call: Callable[[], Awaitable[Any]]) -> Any:
    """As a client does: until there is an answer. Who came before may still be on its way out."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await call()
            except Unavailable:
                await asyncio.sleep(0.001)


# C1 and C2: the API, before and after its commit.


class Desk:
    """A submitter whose connections can be cut, and calls that carry a key."""

    def __init__(self, world: World, database: BrittleDatabase) -> None:
        self.world = world
        self.submitter = Submitter(database, lambda _: None)

    async def submit(self, key: str) -> Accepted:
        def answer(ids: Any) -> bytes:
            return msgspec.json.encode(list(ids))

        ref = await self.world.specs.intern(self.world.tenant, NOOP)
        return await self.submitter.submit([NewRun(ref, b"{}")] * 2, Key(key, self.world.tenant, b"same", answer))


@pytest.fixture
async def desk(world: World, brittle: BrittleDatabase) -> AsyncIterator[Desk]:
    desk = Desk(world, brittle)
    task = asyncio.create_task(desk.submitter.run())
    yield desk
    task.cancel()
    await asyncio.wait([task])


async def test_c1_a_submission_that_was_cut_off_before_its_commit_is_made_once_when_repeated(
    world: World, desk: Desk, scissors: Scissors
):
    points = [("BEGIN", True), ("remember", False), ("remember", True), ("enqueue", True), ("COMMIT", False)]
    for number, (statement, after) in zip(range(REPEATS), itertools.cycle(points), strict=False):
        scissors.cut(statement, after=after)
        with pytest.raises(Unavailable):
            await desk.submit(f"key {number}")
        assert scissors.is_done
        assert await world.count("run") == 2 * number
        ids = (await insist(partial(desk.submit, f"key {number}"))).ids
        assert len(ids) == 2
        assert msgspec.json.decode((await desk.submit(f"key {number}")).repeated) == ids
        assert await world.count("run") == await world.count("ready") == 2 * (number + 1)


async def test_c2_a_submission_whose_answer_was_lost_is_recognised_when_repeated(
    world: World, desk: Desk, scissors: Scissors
):
    for number in range(REPEATS):
        scissors.cut("COMMIT", after=True)
        with pytest.raises(Unavailable):
            await desk.submit(f"key {number}")
        made = [row["id"] for row in await world.sql("SELECT id FROM run WHERE id > 0 ORDER BY id DESC LIMIT 2")]
        assert sorted(made) == msgspec.json.decode((await desk.submit(f"key {number}")).repeated)
        assert await world.count("run") == await world.count("ready") == 2 * (number + 1)


async def test_c1_and_c2_a_run_that_comes_alone_is_there_whole_or_not_at_all(
    world: World, desk: Desk, scissors: Scissors
):
    """It is written by a procedure that commits twice. Without a key nobody can tell the caller which it was."""
    run, made = NewRun(await world.specs.intern(world.tenant, NOOP), b"{}"), 0
    for number in range(REPEATS):
        after = number % 2 == 1
        scissors.cut("enqueue_alone", after=after)
        with pytest.raises(Unavailable, match="went away"):
            await desk.submitter.submit([run])
        assert scissors.is_done
        made += after
        assert await world.count("run") == await world.count("ready") == made
    assert len((await desk.submitter.submit([run])).ids) == 1
    taken = await (await world.worker()).claim()
    assert len({each.id for each in taken}) == made + 1


async def test_c1_and_c2_a_job_is_created_once_whenever_the_connection_breaks(
    world: World, brittle: BrittleDatabase, scissors: Scissors
):
    control = Control(brittle, SpecBook(brittle), lambda _: None)
    draft = draft_of(JobBody(name="report", handler="noop", every="PT1H"))

    def create(number: int) -> Awaitable[bytes]:
        return control.create(
            world.tenant,
            draft,
            key=f"key {number}",
            fingerprint=b"same",
            render=lambda row: msgspec.json.encode(job_view("acme", row)),
        )

    for number in range(REPEATS):
        after = number % 2 == 1
        scissors.cut("COMMIT", after=after)
        with pytest.raises(Unavailable):
            await create(number)
        assert await world.count("job") == number + after
        first = await insist(partial(create, number))
        assert await create(number) == first
        assert await world.value("SELECT max(id) FROM job") == decode("job", msgspec.json.decode(first)["jobId"])
        assert await world.count("job") == number + 1


# C6 to C9: the worker.


class Staff:
    """Workers that come and go on one line, and another line for what is said last: it can be cut."""

    def __init__(self, line: Line, lanes: Sequence[int], dsn: str, scissors: Scissors) -> None:
        self.line = line
        self.brittle = BrittleLine(dsn, scissors)
        self._lanes = lanes
        self._scissors = scissors
        self._numbers = itertools.count(100)

    async def hire(self) -> Hand:
        worker = Hand(self.line, next(self._numbers), self._lanes)
        await fleet.register(self.line, worker.id, "staff")
        return worker

    def last_words(self, worker: Hand, statement: str, *, after: bool) -> Hand:
        """The worker, speaking on a line that is cut under that statement."""
        self._scissors.cut(statement, after=after)
        return worker.on(self.brittle)

    async def bury(self, worker: Hand) -> fleet.Reaped:
        await worker.die()
        return await fleet.reap(self.line)


@pytest.fixture
async def staff(world: World, scissors: Scissors) -> AsyncIterator[Staff]:
    first = await world.worker()
    staff = Staff(first.line, first.lanes, world.database.dsn, scissors)
    yield staff
    await staff.brittle.close()


async def test_c6_what_was_claimed_by_a_worker_that_died_before_it_began_comes_back_untouched(
    world: World, staff: Staff
):
    for _ in range(REPEATS):
        (run,) = await world.submit()
        dead, successor = await staff.hire(), await staff.hire()
        with pytest.raises(ConnectionError):
            await staff.last_words(dead, "claim", after=True).claim()
        assert await world.count("claim") == 1
        assert (await staff.bury(dead)).returned == 1
        (again,) = await successor.claim()
        assert (again.id, again.attempt, deaths(again.deaths)) == (run, 0, 0)
        assert await dispatch.strays(staff.line, dead.id, []) == []
        assert await successor.settle([again]) == 1
        await dispatch.forget(staff.line, successor.id, [again.fence])
    assert await world.value("SELECT array_agg(DISTINCT attempt) FROM history") == [1]
    assert await world.count("run") == await world.count("claim") == 0


async def test_c6_a_worker_that_lives_finds_what_it_claimed_when_the_answer_was_lost(world: World, staff: Staff):
    for _ in range(REPEATS):
        (run,) = await world.submit()
        worker = await staff.hire()
        with pytest.raises(ConnectionError):
            await staff.last_words(worker, "claim", after=True).claim()
        (found,) = await dispatch.strays(staff.line, worker.id, [])
        assert found.id == run
        assert await worker.settle([found]) == 1
    assert await world.count("history") == REPEATS


@pytest.mark.parametrize("spec", [NOOP, ONCE], ids=["at least once", "at most once"])
async def test_c7_what_had_begun_when_its_worker_died_is_run_again_or_never(world: World, staff: Staff, spec: Spec):
    for _ in range(REPEATS):
        (run,) = await world.submit(1, spec)
        dead, successor = await staff.hire(), await staff.hire()
        taken = await dead.claim()
        assert await dead.note_started(taken) == {(run, taken[0].fence)}
        with pytest.raises(ConnectionError):  # the handler has done its work, and the worker is killed
            await staff.last_words(dead, "settle", after=False).settle(taken)
        reaped = await staff.bury(dead)
        again = await successor.claim()
        if spec is ONCE:
            assert (reaped.returned, reaped.unknown, again) == (0, 1, [])
            ((*row,),) = await world.sql("SELECT ending, state, attempt, fence FROM history WHERE run = $1", run)
            assert row == [Ending.UNKNOWN, State.UNKNOWN, 1, taken[0].fence]
        else:
            assert (reaped.returned, reaped.unknown, again[0].id) == (1, 0, run)
            assert (again[0].attempt, again[0].deaths) == (1, 1)
            assert again[0].fence > taken[0].fence
            assert await successor.settle(again) == 1
    assert await world.count("run") == await world.count("ready") == await world.count("dead_letter") == 0


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_c7_an_at_most_once_start_that_was_cut_off_is_never_followed_by_a_second(
    world: World, staff: Staff, *, after: bool
):
    """Whether the mark was written decides; in neither case may a handler have begun."""
    for _ in range(REPEATS):
        (run,) = await world.submit(1, ONCE)
        dead, successor = await staff.hire(), await staff.hire()
        taken = await dead.claim()
        with pytest.raises(ConnectionError):
            await staff.last_words(dead, "note_started", after=after).note_started(taken)
        await staff.bury(dead)
        again = await successor.claim()
        assert [each.id for each in again] == ([] if after else [run])
        assert await successor.settle(again) == len(again)
    assert await world.count("run") == 0
    assert await world.value("SELECT array_agg(DISTINCT ending) FROM history") == [
        Ending.UNKNOWN if after else Ending.COMPLETED
    ]


def endings() -> Iterator[tuple[str, Outcome]]:
    unknown = Outcome.unknown("stopped")
    return itertools.cycle([("settle", SUCCEEDED), ("conclude", AGAIN), ("conclude", DEAD), ("conclude", unknown)])


async def test_c8_a_result_whose_answer_was_lost_is_a_success_when_it_is_sent_again(world: World, scissors: Scissors):
    carrier = SqlCarrier(partial(BrittleLine, world.database.dsn, scissors), 77, "test")
    lanes = list(await carrier.register(["default"], ["fn:noop"]))
    for number, (statement, outcome) in zip(range(REPEATS), endings(), strict=False):
        await world.submit()
        taken = await carrier.claim(number, lanes, [0], 10, [10])
        batch = [Settlement(run, datetime.now(UTC), outcome) for run in taken]
        scissors.cut(statement, after=True)
        with pytest.raises(ConnectionError):
            await carrier.settle(batch)
        before = await _all_of(world)
        assert await carrier.settle(batch) == []  # nothing is lost
        assert await _all_of(world) == before
        assert await world.count("history") == number + 1
    assert await world.count("late_result") == 0
    await carrier.close()


async def test_c9_a_result_is_written_whole_or_not_at_all(world: World, staff: Staff):
    """The server breaks the statement off in the middle: nothing of it stays, and it can be said again."""
    worker = await staff.hire()
    for number, (_, outcome) in zip(range(REPEATS), endings(), strict=False):
        await world.submit()
        taken = await worker.claim()
        before = await _all_of(world)

        def say(hand: Hand, outcome: Outcome = outcome, taken: list[Claimed] = taken) -> Awaitable[int]:
            return hand.settle(taken) if outcome is SUCCEEDED else hand.conclude(taken, outcome)

        async with world.unfinished() as rival:
            await rival.execute("SELECT FROM run WHERE id = $1 FOR UPDATE", taken[0].id)
            saying = asyncio.ensure_future(say(worker.on(staff.brittle)))
            await world.until_waiting()
            assert await world.value(BREAK_OFF) == 1
            await asyncio.wait([saying])
        assert saying.exception() is not None
        assert await _all_of(world) == before
        assert await say(worker) == 1
        assert await world.count("history") == number + 1


async def _all_of(world: World) -> list[tuple[Any, ...]]:
    """Everything that a worker's word could change."""
    tables = ("run WHERE id > 0", "ready WHERE lane > 0", "claim", "history", "dead_letter", "late_result")
    return [tuple(row) for table in tables for row in await world.sql(f"SELECT * FROM {table} ORDER BY 1, 2")]


# C10: the reaper.


async def test_c10_a_heartbeat_between_the_look_and_the_burial_keeps_the_worker_alive(world: World):
    worker = await world.worker()
    for _ in range(REPEATS):
        await world.submit()
        taken = await worker.claim()
        await world.sql("UPDATE worker SET seen_at = clock_timestamp() - interval '1 minute'")
        async with world.unfinished() as beating:
            assert await fleet.beat(beating, worker.id)
            burying = asyncio.create_task(fleet.bury(worker.line))
            await world.until_waiting()
        assert await burying == []
        assert (await fleet.reap(worker.line)).claims == 0
        assert await worker.settle(taken) == 1


@pytest.mark.parametrize("how", ["before", "in the middle", "after"])
async def test_c10_what_a_killed_reaper_had_in_hand_is_taken_back_once(
    world: World, staff: Staff, scissors: Scissors, how: str
):
    for _ in range(REPEATS):
        (run,) = await world.submit()
        dead, successor = await staff.hire(), await staff.hire()
        await dead.note_started(await dead.claim())
        await dead.die()
        if how == "in the middle":
            async with world.unfinished() as rival:
                await rival.execute("SELECT FROM run WHERE id = $1 FOR UPDATE", run)
                reaping = asyncio.create_task(fleet.reap(staff.brittle))
                await world.until_waiting()
                assert await world.value(BREAK_OFF) == 1
                await asyncio.wait([reaping])
            assert reaping.exception() is not None
        else:
            scissors.cut("reap", after=how == "after")
            with pytest.raises(ConnectionError):
                await fleet.reap(staff.brittle)
        assert (await fleet.reap(staff.line)).returned == (how != "after")
        (again,) = await successor.claim()
        assert (again.id, again.attempt, again.deaths) == (run, 1, 1)
        assert await successor.settle([again]) == 1
    assert await world.count("history") == 2 * REPEATS  # a lost attempt and a good one each


async def test_c10_a_result_between_the_look_and_the_taking_back_stands(world: World, staff: Staff):
    """A claim that is being settled is locked, and one that was settled covers nothing any more."""
    for _ in range(REPEATS):
        await world.submit()
        dead = await staff.hire()
        taken = await dead.claim()
        await dead.note_started(taken)
        await dead.die()
        async with world.unfinished() as settling:
            assert await dead.on(settling).settle(taken) == 1
            assert (await fleet.reap(staff.line)).claims == 0
        assert await fleet.reap(staff.line) == fleet.Reaped(1, 0, 0)
    assert await world.value("SELECT array_agg(DISTINCT state) FROM history") == [State.SUCCEEDED]


@pytest.mark.parametrize("outcome", [SUCCEEDED, Outcome.released()], ids=["a result", "a hand-back"])
async def test_c10_what_a_worker_said_after_the_look_at_its_claim_is_not_said_again_by_the_reaper(
    world: World, staff: Staff, scissors: Scissors, outcome: Outcome
):
    for _ in range(REPEATS):
        (run,) = await world.submit()
        dead, successor = await staff.hire(), await staff.hire()
        taken = await dead.claim()
        await dead.die()
        say = dead.settle(taken) if outcome is SUCCEEDED else dead.conclude(taken, outcome)
        scissors.before("reap", partial(_same, say))
        assert await fleet.reap(staff.brittle) == fleet.Reaped(1, 0, 0)
        assert scissors.is_done
        again = await successor.claim()
        assert [each.id for each in again] == ([] if outcome is SUCCEEDED else [run])
        assert {(each.attempt, each.deaths) for each in again} <= {(0, 0)}
        assert await successor.settle(again) == len(again)
    assert await world.count("run") == await world.count("ready") == 0
    assert await world.value("SELECT array_agg(DISTINCT (state, attempt)::text) FROM history") == ["(4,1)"]


async def _same(said: Awaitable[int]) -> None:
    assert await said == 1


# The fence, however a run comes back.


async def test_a_dead_letter_that_is_replayed_goes_on_above_its_fence(world: World):
    """Whoever replays must keep the letter's fence: with a lower one the claim that it died under would cover it."""
    worker = await world.worker()
    for _ in range(REPEATS):
        await world.submit()
        taken = await worker.claim()
        assert await worker.conclude(taken, DEAD) == 1
        assert await world.value("SELECT fence FROM dead_letter") == taken[0].fence
        await world.dead_letters.replay(world.tenant, [taken[0].id])
        assert await world.count("dead_letter") == 0
        assert await worker.settle(taken) == 0
        (again,) = await worker.claim()
        assert again.fence > taken[0].fence
        assert await worker.settle(taken) == 0
        assert await worker.settle([again]) == 1
