"""Cancelling a run against everything that may happen to it at the same moment: one wins, and it is told which."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest

from foliot.domain.ids import decode
from foliot.domain.limits import Concurrency
from foliot.domain.outcome import Ending, Outcome
from foliot.domain.spec import FunctionHandler, Spec
from foliot.domain.states import State
from foliot.kit.signals import FLEET, READY, recall_channel
from foliot.store import fleet, reading, stopping
from foliot.store.database import Database
from foliot.store.dispatch import Claimed
from foliot.store.fleet import LEASE, STOPPED_WITHIN
from foliot.store.submission import NewRun
from foliot.store.waiting import fetch_due, promote
from world import Hand, World

AGAIN = Outcome.again(Ending.FAILED, "boom", timedelta())
LAST = Outcome.dead(Ending.FAILED, "boom")
HOUR = timedelta(hours=1)


async def _cancel(world: World, run: int) -> str:
    """Ask for the end of a run; how it stands then."""
    await world.canceller.cancel(world.tenant, run)
    return (await world.insights.run(world.tenant, run)).state


async def test_another_tenants_run_is_left_alone(world: World):
    rival = await world.another_tenant("rival")
    for fields in ({}, {"delay": HOUR}):
        (run,) = await world.submit(**fields)
        await world.canceller.cancel(rival, run)
        assert (await world.insights.run(world.tenant, run)).state != "cancelled"
        assert await _cancel(world, run) == "cancelled"


async def _held(world: World) -> tuple[int, Hand, list[Claimed]]:
    (run,) = await world.submit()
    worker = await world.worker()
    return run, worker, await worker.claim()


async def _ends(world: World) -> list[tuple[int, int]]:
    return [tuple(row) for row in await world.sql("SELECT ending, state FROM history ORDER BY finished_at")]


async def _is_empty(world: World) -> bool:
    return not any([await world.count(table) for table in ("run", "ready", "timer", "dead_letter")])


async def _nothing_more(world: World, worker: Hand) -> bool:
    """Whether nothing of it is left that anybody could start."""
    await world.promoter.run_once()
    return await _is_empty(world) and not await worker.claim()


async def _waiting(world: World) -> int:
    (run,) = await world.submit(due=datetime.now(UTC) + timedelta(seconds=30))
    return run


async def _far(world: World) -> int:
    (run,) = await world.submit(due=datetime.now(UTC) + HOUR)
    return run


async def _ready(world: World) -> int:
    (run,) = await world.submit()
    return run


async def _blocked(world: World) -> int:
    job = await world.job(scheduleAt="2026-01-01T00:00:00Z")
    await world.control.pause(world.tenant, decode("job", job.job_id))
    return await world.value("SELECT run FROM job")  # type: ignore[no-any-return]


@pytest.mark.parametrize("make", [_waiting, _far, _ready, _blocked])
async def test_what_waits_ends_at_once(world: World, make: Callable[[World], Awaitable[int]]):
    run = await make(world)
    assert await _cancel(world, run) == "cancelled"
    assert await _ends(world) == [(Ending.NONE, State.CANCELLED)]
    assert await _nothing_more(world, await world.worker())
    assert await _cancel(world, run) == "cancelled"  # once more changes nothing
    assert len(await _ends(world)) == 1


async def test_what_was_handed_in_inside_a_transaction_a_moment_ago_can_be_cancelled(world: World):
    (run,) = await world.submit()
    row = "INSERT INTO outbox (id, tenant, body, due_at, payload) SELECT r.id, r.tenant, s.body, r.due_at, r.payload"
    await world.sql(f"{row} FROM run r JOIN spec s ON s.id = r.spec WHERE r.id = $1", run)
    await world.sql("DELETE FROM run WHERE id > 0")
    await world.sql("DELETE FROM ready WHERE lane > 0")
    assert await _cancel(world, run) == "cancelled"
    assert await _is_empty(world)


async def test_what_a_worker_holds_is_asked_to_stop_and_the_answer_says_by_when(world: World):
    run, worker, taken = await _held(world)
    await worker.note_started(taken)
    assert await _cancel(world, run) == "running"
    seen = await world.insights.run(world.tenant, run)
    assert seen.cancel_requested_at is not None
    assert seen.stops_by == seen.cancel_requested_at + STOPPED_WITHIN
    assert world.hints[-1] == recall_channel(worker.id)
    standing = await fleet.beat(worker.line, worker.id, worker.lanes)
    assert standing is not None
    assert (standing.stop, standing.recalled) == ({run}, frozenset())
    assert await _cancel(world, run) == "running"  # the first word counts
    assert (await world.insights.run(world.tenant, run)).stops_by == seen.stops_by
    assert await worker.conclude(taken, Outcome.cancelled()) == 1
    assert await _ends(world) == [(Ending.CANCELLED, State.CANCELLED)]
    (attempt,) = (await world.insights.attempts(world.tenant, run=run, limit=5, cursor=None)).items
    assert (attempt.status, attempt.attempt, attempt.error_message) == ("cancelled", 1, "cancelled on request")
    assert await _nothing_more(world, worker)


async def test_what_ends_while_it_is_looked_at_is_not_shown_as_running_with_nobody_asking(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    run, worker, taken = await _held(world)
    await worker.note_started(taken)
    await world.canceller.cancel(world.tenant, run)
    find = reading.find_run

    async def find_before_it_ends(database: Database, tenant: int, run: int, most: int) -> reading.RunRow | None:
        found = await find(database, tenant, run, most)
        await worker.conclude(taken, Outcome.cancelled())
        return found

    monkeypatch.setattr(reading, "find_run", find_before_it_ends)
    seen = await world.insights.run(world.tenant, run)
    assert seen.state == "running"
    assert seen.cancel_requested_at is not None


@pytest.mark.parametrize(
    ("outcome", "ending"),
    [(AGAIN, Ending.FAILED), (LAST, Ending.FAILED), (Outcome.snoozed(HOUR), Ending.SNOOZED)],
)
async def test_whatever_its_worker_wants_a_run_that_was_asked_to_stop_is_not_tried_again(
    world: World, outcome: Outcome, ending: Ending
):
    run, worker, taken = await _held(world)
    await _cancel(world, run)
    assert await worker.conclude(taken, outcome) == 1
    assert await _ends(world) == [(ending, State.CANCELLED)]
    assert await _nothing_more(world, worker)


async def test_a_run_that_was_taken_and_never_begun_ends_without_an_attempt(world: World):
    run, worker, taken = await _held(world)
    await _cancel(world, run)
    assert await worker.conclude(taken, Outcome.released()) == 1
    assert await _ends(world) == [(Ending.NONE, State.CANCELLED)]


async def test_a_success_on_record_first_wins_and_the_answer_says_so(world: World):
    run, worker, taken = await _held(world)
    async with world.unfinished() as line:
        assert await worker.on(line).settle(taken) == 1
        cancelling = asyncio.create_task(_cancel(world, run))
        await world.until_waiting()
    assert await cancelling == "succeeded"
    assert await _ends(world) == [(Ending.COMPLETED, State.SUCCEEDED)]


async def test_a_success_that_comes_after_the_cancel_still_counts(world: World):
    run, worker, taken = await _held(world)
    async with world.unfinished() as owner:
        await stopping.stop(await owner.connection(), [run], "by the test")
        settling = asyncio.create_task(worker.settle(taken))
        await world.until_waiting()
    assert await settling == 1
    assert (await world.insights.run(world.tenant, run)).status == "completed"


async def test_a_claim_in_mid_flight_is_waited_for_and_then_asked(world: World):
    (run,) = await world.submit()
    worker = await world.worker()
    async with world.unfinished() as line:
        (taken,) = await worker.on(line).claim()
        cancelling = asyncio.create_task(_cancel(world, run))
        await world.until_waiting()
    assert await cancelling == "running"
    assert await worker.conclude([taken], AGAIN) == 1
    assert await _nothing_more(world, worker)


async def test_a_claim_takes_nothing_of_what_is_being_cancelled(world: World):
    (run,) = await world.submit()
    worker = await world.worker()
    async with world.unfinished() as owner:
        stopped = await stopping.stop(await owner.connection(), [run], "by the test")
        assert await worker.claim() == []
    assert stopped.ended == [run]
    assert await _nothing_more(world, worker)


async def test_a_retry_in_mid_flight_is_waited_for_and_then_ended(world: World):
    run, worker, taken = await _held(world)
    async with world.unfinished() as line:
        await worker.on(line).conclude(taken, AGAIN)
        cancelling = asyncio.create_task(_cancel(world, run))
        await world.until_waiting()
    assert await cancelling == "cancelled"
    assert await _ends(world) == [(Ending.FAILED, State.SCHEDULED), (Ending.NONE, State.CANCELLED)]
    assert await _nothing_more(world, worker)


async def test_a_hand_back_in_mid_flight_is_waited_for_and_then_ended(world: World):
    run, worker, taken = await _held(world)
    async with world.unfinished() as line:
        await worker.on(line).conclude(taken, Outcome.released())
        cancelling = asyncio.create_task(_cancel(world, run))
        await world.until_waiting()
    assert await cancelling == "cancelled"
    assert await _nothing_more(world, worker)


async def test_a_retry_waits_for_a_cancel_in_mid_flight_and_ends(world: World):
    run, worker, taken = await _held(world)
    async with world.unfinished() as owner:
        await stopping.stop(await owner.connection(), [run], "by the test")
        retrying = asyncio.create_task(worker.conclude(taken, AGAIN))
        await world.until_waiting()
    assert await retrying == 1
    assert await _ends(world) == [(Ending.FAILED, State.CANCELLED)]
    assert await _nothing_more(world, worker)


@pytest.mark.parametrize("began", [True, False])
async def test_a_run_that_was_asked_to_stop_ends_with_its_worker(world: World, *, began: bool):
    run, worker, taken = await _held(world)
    if began:
        await worker.note_started(taken)
    await _cancel(world, run)
    await worker.die()
    assert await fleet.reap(worker.line) == fleet.Reaped(claims=1, returned=0, dead=0)
    assert await _ends(world) == [(Ending.LOST if began else Ending.NONE, State.CANCELLED)]
    assert await worker.conclude(taken, Outcome.cancelled()) == 0  # too late


async def test_a_reap_in_mid_flight_is_waited_for_and_what_it_brings_back_is_ended(world: World):
    run, worker, taken = await _held(world)
    await worker.note_started(taken)
    await worker.die()
    async with world.unfinished() as line:
        assert (await fleet.reap(line)).returned == 1
        cancelling = asyncio.create_task(_cancel(world, run))
        await world.until_waiting()
    assert await cancelling == "cancelled"
    assert await _nothing_more(world, worker)


async def test_a_reap_waits_for_a_cancel_in_mid_flight_and_brings_nothing_back(world: World):
    run, worker, _ = await _held(world)
    await worker.die()
    async with world.unfinished() as owner:
        await stopping.stop(await owner.connection(), [run], "by the test")
        reaping = asyncio.create_task(fleet.reap(worker.line))
        await world.until_waiting()
    assert (await reaping).returned == 0
    assert await _nothing_more(world, await world.worker())


async def test_a_promotion_in_mid_flight_is_waited_for_and_what_it_made_ready_is_ended(world: World):
    run, now = await _waiting(world), datetime.now(UTC) + HOUR
    async with world.unfinished() as line:
        assert await promote(line, "runs", await fetch_due(line, "runs", 10, now), [1], now) == 1
        cancelling = asyncio.create_task(_cancel(world, run))
        await world.until_waiting()
    assert await cancelling == "cancelled"
    assert await _nothing_more(world, await world.worker())


async def test_a_promotion_waits_for_a_cancel_in_mid_flight_and_makes_nothing_ready(world: World):
    run, now = await _waiting(world), datetime.now(UTC) + HOUR
    line = world.database.line()
    due = await fetch_due(line, "runs", 10, now)
    async with world.unfinished() as owner:
        await stopping.stop(await owner.connection(), [run], "by the test")
        promoting = asyncio.create_task(promote(line, "runs", due, [1], now))
        await world.until_waiting()
    assert await promoting == 0
    assert await _is_empty(world)
    await line.close()


async def test_two_who_cancel_at_the_same_moment_get_one_end(world: World):
    (run,) = await world.submit()
    async with world.unfinished() as owner:
        await stopping.stop(await owner.connection(), [run], "by the test")
        second = asyncio.create_task(_cancel(world, run))
        await world.until_waiting()
    assert await second == "cancelled"
    assert len(await _ends(world)) == 1


async def test_many_are_asked_at_once_and_workers_are_told_together(world: World):
    runs = await world.submit(30)
    workers = [await world.worker() for _ in range(25)]
    for worker in workers:
        assert await worker.claim(1)
    async with world.database.transaction() as connection:
        stopped = await stopping.stop(connection, runs, "by the test")
    assert (sorted(stopped.asked), sorted(stopped.ended)) == (runs[:25], runs[25:])
    assert stopped.channels == {FLEET}


async def test_who_waits_for_the_place_of_a_cancelled_run_gets_it(world: World):
    spec = Spec(handler=FunctionHandler("noop"), concurrency=Concurrency(1, None))
    ref = await world.specs.intern(world.tenant, spec)
    first, second = (await world.submitter.submit([NewRun(ref, b"{}"), NewRun(ref, b"{}")])).ids
    worker = await world.worker()
    assert await _cancel(world, first) == "cancelled"
    assert world.hints[-1] == READY
    assert [run.id for run in await worker.claim()] == [second]


async def test_cancelling_a_job_asks_for_the_end_of_what_runs(world: World):
    job = await world.job_id(onDemand=True)
    spec = await world.specs.intern(world.tenant, Spec(handler=FunctionHandler("noop")))
    running, waiting = (await world.submitter.submit([NewRun(spec, b"{}", job=job) for _ in range(2)])).ids
    worker = await world.worker()
    taken = await worker.claim(1)
    await world.control.cancel(world.tenant, job)
    assert (await world.insights.run(world.tenant, waiting)).state == "cancelled"
    assert (await world.insights.run(world.tenant, running)).stops_by is not None
    assert world.hints[-1] == recall_channel(worker.id)
    assert await worker.conclude(taken, AGAIN) == 1
    assert await _nothing_more(world, worker)


async def test_a_pause_recalls_what_was_taken_and_not_begun_and_says_by_when_it_holds(world: World):
    job = await world.job_id(onDemand=True)
    spec = await world.specs.intern(world.tenant, Spec(handler=FunctionHandler("noop")))
    await world.submitter.submit([NewRun(spec, b"{}", job=job) for _ in range(2)])
    worker = await world.worker()
    begun, unbegun = await worker.claim()
    await worker.note_started([begun])
    row = await world.control.pause(world.tenant, job)
    assert (await world.insights.job(world.tenant, "acme", job)).holds_by == row.paused_at + LEASE
    standing = await fleet.beat(worker.line, worker.id, worker.lanes)
    assert standing is not None
    assert (standing.stop, standing.recalled) == (frozenset(), {unbegun.id})
    assert await worker.conclude([unbegun], Outcome.released()) == 1
    assert await world.value("SELECT state FROM run WHERE id = $1", unbegun.id) == State.BLOCKED
    standing = await fleet.beat(worker.line, worker.id, worker.lanes)
    assert standing is not None
    assert not standing.recalled
    assert await worker.settle([begun]) == 1


async def test_a_pause_waits_for_a_claim_in_mid_flight_and_recalls_it(world: World):
    job = await world.job_id(onDemand=True)
    spec = await world.specs.intern(world.tenant, Spec(handler=FunctionHandler("noop")))
    await world.submitter.submit([NewRun(spec, b"{}", job=job)])
    worker = await world.worker()
    async with world.unfinished() as line:
        (taken,) = await worker.on(line).claim()
        pausing = asyncio.create_task(world.control.pause(world.tenant, job))
        await world.until_waiting()
    await pausing
    standing = await fleet.beat(worker.line, worker.id, worker.lanes)
    assert standing is not None
    assert standing.recalled == {taken.id}


async def test_a_newer_run_of_a_job_that_wants_it_so_has_the_one_before_stopped(world: World):
    await world.job(every="PT1M", overlap="cancelPrevious")
    first = await world.next_at()
    await world.fire(first)
    worker = await world.worker()
    (taken,) = await worker.claim()
    await world.fire(first + timedelta(minutes=1))
    assert await worker.claim() == []  # it waits for the place
    standing = await fleet.beat(worker.line, worker.id, worker.lanes)
    assert standing is not None
    assert standing.stop == {taken.id}
    assert await worker.conclude([taken], Outcome.cancelled()) == 1
    (following,) = await worker.claim()
    assert following.id != taken.id
    assert await _ends(world) == [(Ending.CANCELLED, State.CANCELLED)]
