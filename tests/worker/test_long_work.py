"""Long work: how far it is, what the next attempt is to know, and that nobody who has lost a run can say so."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from foliot.domain.errors import FenceLost, InvalidField
from foliot.domain.outcome import Ending, Outcome
from foliot.domain.report import LARGEST_CHECKPOINT, Progress
from foliot.sdk import Context
from foliot.store import reports
from foliot.store.reports import Report
from foliot.worker.alone import Alone
from foliot.worker.child.nursery import open_nursery
from foliot.worker.desk import WorkerDesk
from foliot.worker.port import Carrier
from worker.carrying import through_http, through_sql
from worker.crew import Crew
from worker.making import PATIENCE, MemoryCarrier, assignment, event, eventually, function_spec
from world import World

NOW = datetime.now(UTC)


@pytest.fixture
def crew(dsn: str) -> Crew:
    return Crew(dsn)


@pytest.fixture(params=["sql", "http"])
async def carrier(request: pytest.FixtureRequest, world: World, dsn: str) -> AsyncIterator[Carrier]:
    async with through_sql(dsn) if request.param == "sql" else through_http(world) as new:
        carrier = new(9)
        await carrier.register(["default"], ["fn:noop"])
        yield carrier


async def _claim(world: World, carrier: Carrier, number: int = 1) -> Any:
    lane = await world.value("SELECT id FROM lane WHERE handler_group = 'fn:noop'")
    (run,) = await carrier.claim(number, [lane], [0], 1, [1])
    return run


async def test_progress_is_seen_while_it_runs_and_kept_with_the_attempt(world: World, crew: Crew):
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def counting(ctx: Context, payload: Any) -> None:
        for done in range(100):
            ctx.progress(done=done, total=200, message=f"row {done}")
        begun.set()
        await may_end.wait()
        ctx.progress(1, "all of it")

    async with crew.work({"noop": counting}):
        (run,) = await world.submit()
        await event(begun)
        await world.until("SELECT count(*) > 0 FROM progress")
        seen = (await world.insights.run(world.tenant, run)).progress
        assert seen is not None
        assert (seen.fraction, seen.done, seen.total, seen.message) == (0.495, 99, 200, "row 99")
        may_end.set()
        await world.until("SELECT count(*) > 0 FROM history")
    (attempt,) = (await world.insights.attempts(world.tenant, run=run, limit=5, cursor=None)).items
    assert attempt.progress is not None
    assert (attempt.progress.fraction, attempt.progress.message) == (1, "all of it")  # its last word is not lost


@pytest.mark.parametrize("way", ["coroutine", "thread"])
async def test_a_retry_goes_on_from_the_checkpoint(world: World, crew: Crew, way: str):
    seen: list[Any] = []

    async def resuming(ctx: Context, payload: Any) -> None:
        state = await ctx.last_checkpoint()
        seen.append(state)
        if state is None:
            await ctx.checkpoint({"row": 7})
            raise ValueError("half way")

    def in_a_thread(ctx: Context, payload: Any) -> None:
        state = ctx.last_checkpoint()
        seen.append(state)
        if state is None:
            ctx.checkpoint({"row": 7})
            raise ValueError("half way")

    async with crew.work({"noop": resuming if way == "coroutine" else in_a_thread}):
        await world.submit()
        await world.until("SELECT count(*) = 1 FROM history WHERE state = 4")
    assert seen == [None, {"row": 7}]


async def test_what_was_saved_is_there_for_whoever_comes_next_on_either_way(world: World, carrier: Carrier):
    await world.submit()
    run = await _claim(world, carrier)
    assert await carrier.last_checkpoint(run) is None
    said = Progress(0.25, 1, 4, "first quarter")
    held = await carrier.report([Report(run.id, run.fence, said, NOW, b'{"n":1}')])
    assert held == {(run.id, run.fence)}
    assert await carrier.last_checkpoint(run) == b'{"n":1}'
    assert await carrier.report([Report(run.id, run.fence, None, NOW, b'{"n":2}')])
    row = await world.sql("SELECT fraction, done, total, message, at FROM progress")
    assert [tuple(each) for each in row] == [(0.25, 1, 4, "first quarter", NOW)]
    await world.sql("UPDATE run SET fence = $1 WHERE id = $2", run.fence, run.id)  # taken back
    lost = [Report(run.id, run.fence, Progress(0.5), NOW, b'{"n":3}')]
    assert await carrier.report(lost) == set()
    assert await carrier.last_checkpoint(run) is None
    assert await world.value("SELECT fraction FROM progress") == 0.25
    assert await world.value("SELECT state FROM checkpoint") == b'{"n":2}'


async def test_a_worker_cannot_speak_of_runs_that_its_claim_does_not_cover(world: World, carrier: Carrier):
    await world.submit(2)
    run = await _claim(world, carrier)
    other = await world.value("SELECT id FROM run WHERE id > 0 AND id <> $1", run.id)
    assert await carrier.report([Report(other, run.fence, Progress(0.5), NOW, b"1")]) == set()
    assert (await world.count("progress"), await world.count("checkpoint")) == (0, 0)


async def test_a_checkpoint_in_mid_flight_is_waited_for_by_whoever_takes_the_run_back(world: World):
    (run,) = await world.submit()
    worker = await world.worker()
    (taken,) = await worker.claim()
    async with world.unfinished() as line:
        assert await reports.report(line, worker.id, [Report(run, taken.fence, None, NOW, b"1")])
        ending = asyncio.create_task(worker.conclude([taken], Outcome.again(Ending.FAILED, "boom", timedelta())))
        await world.until_waiting()
    assert await ending == 1
    assert await reports.report(worker.line, worker.id, [Report(run, taken.fence, None, NOW, b"2")]) == set()
    assert await world.value("SELECT state FROM checkpoint") == b"1"


async def test_who_has_lost_the_run_hears_so_and_too_much_is_refused(world: World, crew: Crew):
    begun, lost, said = threading.Event(), threading.Event(), []

    def saving(ctx: Context, payload: Any) -> None:
        with pytest.raises(InvalidField, match="262,144 bytes"):
            ctx.checkpoint("x" * LARGEST_CHECKPOINT)
        with pytest.raises(InvalidField, match="JSON"):
            ctx.checkpoint(object())
        begun.set()
        assert lost.wait(PATIENCE)
        with pytest.raises(FenceLost):
            ctx.checkpoint({})
        said.append(ctx.run)

    async with crew.work({"noop": saving}):
        (run,) = await world.submit()
        await eventually(begun.is_set)
        await world.sql("UPDATE run SET fence = 1000000 WHERE id = $1", run)
        lost.set()
        await eventually(lambda: said)


@asynccontextmanager
async def _told(desk: WorkerDesk, carrier: MemoryCarrier) -> AsyncIterator[None]:
    """As a worker does it."""

    async def tell() -> None:
        while True:
            await desk.something.wait()
            await desk.tell(carrier)

    desk.open()
    telling = asyncio.ensure_future(tell())
    try:
        yield
    finally:
        telling.cancel()
        desk.close()


@pytest.mark.parametrize("name", ["report_plain", "report_on_loop"])
async def test_a_process_of_its_own_has_the_same_desk(name: str):
    desk, carrier = WorkerDesk(), MemoryCarrier()
    async with open_nursery() as nursery, _told(desk, carrier):
        alone = Alone(nursery, "worker.captive:worker", desk, spare=False)
        attempt = assignment(function_spec(name, timeout=timedelta(minutes=1)))
        ending = asyncio.ensure_future(alone.isolated(attempt))
        async with asyncio.timeout(PATIENCE):
            while not any(each.state for each in carrier.reports):  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
        desk.drain(NOW)
        async with asyncio.timeout(PATIENCE):
            assert await ending is None
        carrier.lost.add(attempt.run.id)
        alone.close()
    states = [each.state for each in carrier.reports if each.state]
    assert states == [b'{"row":1}', b'{"row":1,"drained":true}']
    fractions = [each.progress.fraction for each in carrier.reports if each.progress]
    assert fractions[-1] == 0.5
