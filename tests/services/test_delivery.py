"""At most once against the reaper, and results that come too late: nothing runs twice, nothing goes unsaid."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from time import monotonic
from typing import Any

import asyncpg
import msgspec
import pytest

from foliot.cli.serve_scheduler import repeat
from foliot.domain.outcome import SUCCEEDED, Ending, Outcome
from foliot.domain.spec import Spec
from foliot.domain.states import State
from foliot.domain.suspicion import deaths
from foliot.sdk import Context
from foliot.services.reap import Reaper
from foliot.services.upkeep import Housekeeper
from foliot.store import database as databases
from foliot.store import fleet
from foliot.store.database import Line
from foliot.store.dispatch import Claimed, Settlement
from foliot.store.fleet import Reaped
from foliot.worker.carrier import SqlCarrier
from worker.crew import Crew
from worker.making import event
from world import NOOP, Hand, World

ONCE = msgspec.structs.replace(NOOP, delivery="atMostOnce", max_retries=0, on_disconnect="stop")


async def _claimed(world: World, spec: Spec = ONCE) -> tuple[Hand, list[Claimed]]:
    await world.submit(1, spec)
    worker = await world.worker()
    return worker, await worker.claim()


async def _history(world: World) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await world.sql("SELECT ending, state FROM history ORDER BY fence")]


@pytest.mark.parametrize("gate", ["open", "paused", "cancelled"])
async def test_an_at_most_once_run_that_had_begun_is_not_run_again_whatever_its_job_says(world: World, gate: str):
    job = await world.job_id(scheduleAt="2026-01-01T00:00:00Z", delivery="atMostOnce")
    await world.promoter.run_once()
    worker = await world.worker()
    taken = await worker.claim()
    await worker.note_started(taken)
    if gate != "open":
        await (world.control.pause if gate == "paused" else world.control.cancel)(world.tenant, job)
    await worker.die()
    assert await fleet.reap(worker.line) == Reaped(claims=1, returned=0, dead=0, unknown=1)
    assert await _history(world) == [(Ending.UNKNOWN, State.UNKNOWN)]
    assert await world.count("run") == await world.count("ready") == await world.count("dead_letter") == 0
    assert await world.status(job) == ("cancelled" if gate == "cancelled" else "failed")


async def test_an_at_most_once_run_that_had_not_begun_comes_back_untouched(world: World):
    worker, taken = await _claimed(world)
    await worker.die()
    assert await fleet.reap(worker.line) == Reaped(claims=1, returned=1, dead=0)
    (again,) = await (await world.worker()).claim()
    assert (again.id, again.attempt, deaths(again.deaths)) == (taken[0].id, 0, 0)
    assert await world.count("history") == 0


async def test_a_start_that_waits_for_the_reaper_is_none(world: World):
    late, runs = await _claimed(world)
    await late.die()
    async with world.unfinished() as reaper:
        assert (await fleet.reap(reaper)).returned == 1
        marking = asyncio.create_task(late.note_started(runs))
        await world.until_waiting()
    assert await marking == set()


async def test_a_reaper_that_waits_for_a_start_sees_it(world: World):
    late, runs = await _claimed(world)
    await late.die()
    async with world.unfinished() as starting:
        assert len(await late.on(starting).note_started(runs)) == 1
        reaping = asyncio.create_task(fleet.reap(late.line))
        await world.until_waiting()
    assert await reaping == Reaped(claims=1, returned=0, dead=0, unknown=1)
    assert await world.count("ready") == 0


async def test_a_start_that_waits_for_a_hand_back_is_none(world: World):
    """Told to end, a worker hands back what it is about to begin: the mark may still be on its way."""
    worker, runs = await _claimed(world)
    async with world.unfinished() as line:
        assert await worker.on(line).conclude(runs, Outcome.released()) == 1
        marking = asyncio.create_task(worker.note_started(runs))
        await world.until_waiting()
    assert await marking == set()
    assert await world.value("SELECT started_at FROM run WHERE id > 0") is None


async def test_a_hand_back_takes_the_mark_of_a_start_away(world: World):
    worker, runs = await _claimed(world)
    await worker.note_started(runs)
    await worker.conclude(runs, Outcome.released())
    await worker.die()
    await fleet.reap(worker.line)
    (again,) = await (await world.worker()).claim()
    assert (again.id, again.attempt) == (runs[0].id, 0)


class Late:
    """A worker whose runs were taken from it, and its carrier."""

    def __init__(self, world: World, dsn: str) -> None:
        self.world = world
        self.carrier = SqlCarrier(partial(Line, dsn), 77, "late")

    async def claim(self, spec: Spec) -> list[Claimed]:
        await self.world.submit(1, spec)
        lanes = list(await self.carrier.register(["default"], ["fn:noop"]))
        return await self.carrier.claim(1, lanes, [0], 10, [10])

    async def lose(self) -> None:
        await self.carrier.leave()
        reaper = Reaper(self.world.database)
        await reaper.run_once()
        await reaper.close()

    async def say(self, runs: list[Claimed], outcome: Outcome) -> list[Settlement]:
        return await self.carrier.settle([Settlement(run, datetime.now(UTC), outcome) for run in runs])


@pytest.fixture
async def late(world: World, dsn: str) -> AsyncIterator[Late]:
    late = Late(world, dsn)
    yield late
    await late.carrier.close()


@pytest.mark.parametrize(
    ("spec", "began", "status"),
    [(NOOP, True, "lost"), (NOOP, False, "lost"), (ONCE, True, "unknown")],
    ids=["lost", "lost before anybody knew that it had begun", "unknown"],
)
@pytest.mark.parametrize("outcome", [SUCCEEDED, Outcome.again(Ending.FAILED, "boom", timedelta())])
async def test_a_late_result_is_kept_with_its_attempt_and_changes_nothing(
    world: World, late: Late, *, spec: Spec, began: bool, status: str, outcome: Outcome
):
    runs = await late.claim(spec)
    if began:
        await late.carrier.note_started([(run, datetime.now(UTC)) for run in runs])
    await late.lose()
    before = await world.sql("SELECT * FROM run WHERE id > 0")
    for _ in range(2):  # the answer may have been lost
        assert [each.run for each in await late.say(runs, outcome)] == runs
    assert await world.sql("SELECT * FROM run WHERE id > 0") == before
    page = await world.insights.attempts(world.tenant, run=runs[0].id, limit=5, cursor=None)
    (attempt,) = page.items
    assert (attempt.status, attempt.attempt, attempt.fence) == (status, 1, runs[0].fence)
    assert attempt.late_result is not None
    assert (attempt.late_result.status, attempt.late_result.error_message) == (outcome.ending.word, outcome.error)


async def test_what_tells_nothing_of_the_handlers_end_is_not_kept(world: World, late: Late):
    runs = await late.claim(ONCE)
    await late.lose()
    for outcome in (Outcome.released(), Outcome.unknown("stopped")):
        assert await late.say(runs, outcome) != []
    assert await world.count("late_result") == 0


async def test_late_results_are_removed_after_a_month(world: World, late: Late):
    runs = await late.claim(NOOP)
    await late.lose()
    await late.say(runs, SUCCEEDED)
    housekeeper = Housekeeper(world.database)
    await housekeeper.run_once()
    assert await world.count("late_result") == 1
    await world.sql("UPDATE late_result SET recorded_at = recorded_at - interval '31 days'")
    await housekeeper.run_once()
    assert await world.count("late_result") == 0
    await housekeeper.close()


async def test_a_worker_runs_at_most_once_runs_like_any_and_ends_what_overstays_as_unknown(world: World, dsn: str):
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def noop(ctx: Context, payload: Any) -> None:
        begun.set()
        await may_end.wait()

    async with Crew(dsn).work({"noop": noop}, grace=timedelta()) as hired:
        (first,) = await world.submit(1, ONCE)
        await event(begun)
        assert await world.value("SELECT started_at IS NOT NULL FROM run WHERE id = $1", first)
        may_end.set()
        await world.until("SELECT count(*) = 1 FROM history")
        begun.clear()
        may_end.clear()
        await world.submit(1, ONCE)
        await event(begun)
        await hired.leave()
    assert await _history(world) == [(Ending.COMPLETED, State.SUCCEEDED), (Ending.UNKNOWN, State.UNKNOWN)]
    assert await world.value("SELECT error FROM history ORDER BY fence DESC LIMIT 1") == (
        "stopped before it ended: its worker had to end"
    )
    assert await world.count("run") == await world.count("claim") == 0


LEASE = timedelta(seconds=2)


@pytest.fixture
def outage(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[timedelta], Awaitable[None]]:
    """For so long whoever was connected is not, and nobody can connect."""

    async def refuse(*_: Any, **__: Any) -> None:
        raise ConnectionRefusedError

    async def begin_and_end(lasting: timedelta) -> None:
        connection = await asyncpg.connect(dsn)
        with monkeypatch.context() as patch:
            patch.setattr(databases, "connect", refuse)
            until = monotonic() + lasting.total_seconds()
            while monotonic() < until:  # again and again: one may have been on its way when the door was shut
                await connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND application_name = 'foliot'"
                )
                await asyncio.sleep(0.05)
        await connection.close()

    return begin_and_end


async def test_through_an_outage_of_two_leases_every_handler_goes_on_and_none_runs_twice(
    world: World, dsn: str, outage: Callable[[timedelta], Awaitable[None]]
):
    begun: list[str] = []
    may_end = asyncio.Event()

    async def noop(ctx: Context, payload: Any) -> None:
        begun.append(ctx.run)
        await may_end.wait()

    reaper, stop = Reaper(world.database, LEASE, pause=LEASE / 10), asyncio.Event()

    async with Crew(dsn).work({"noop": noop}, lease=LEASE, heartbeat=LEASE / 6) as hired, asyncio.TaskGroup() as group:
        ids = await world.submit(3)
        await world.until("SELECT count(*) = 3 FROM run WHERE started_at IS NOT NULL")
        group.create_task(repeat(reaper, stop, asyncio.Event(), lambda: None, lambda: 0.0))
        await outage(2 * LEASE)
        may_end.set()
        await world.until("SELECT count(*) = 3 FROM history")
        stop.set()
        assert not hired.task.done()
    assert len(begun) == len(ids)
    assert set(await _history(world)) == {(Ending.COMPLETED, State.SUCCEEDED)}
