"""A whole worker against a real database: submit, claim, run, settle, stop, die."""

import asyncio
import sys
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web

from foliot.domain.ids import encode
from foliot.domain.retry import Backoff
from foliot.domain.spec import Spec
from foliot.sdk import Context, Permanent
from foliot.worker.process import LeaseLost
from worker.conftest import Serve
from worker.crew import Crew
from worker.making import PATIENCE, call, event, eventually, function_spec
from world import World

AT_ONCE = Backoff(initial=timedelta(0), max=timedelta(0))


@pytest.fixture
def crew(dsn: str) -> Crew:
    return Crew(dsn)


async def over(world: World, count: int) -> None:
    """Return when that many runs have come to their end."""
    await world.until("SELECT count(*) >= $1 FROM history WHERE state > 3", count)


async def test_five_hundred_runs_are_settled_once_each_by_two_workers(world: World, crew: Crew):
    ran: Counter[str] = Counter()

    async def noop(ctx: Context, payload: Any) -> None:
        ran[ctx.run] += 1

    async with crew.work({"noop": noop}, concurrency=20), crew.work({"noop": noop}, concurrency=20):
        ids = await world.submit(500)
        await over(world, 500)
    assert ran == Counter(encode("run", number) for number in ids)
    assert await world.count("run") == await world.count("ready") == await world.count("claim") == 0
    rows = await world.sql("SELECT run, count(*) AS count, min(attempt) AS attempt FROM history GROUP BY run")
    assert {row["run"] for row in rows} == set(ids)
    assert {(row["count"], row["attempt"]) for row in rows} == {(1, 1)}


async def test_queues_with_weights_get_their_shares_of_the_handlers(world: World, crew: Crew):
    begun: Counter[str] = Counter()
    opened = asyncio.Event()

    async def work(ctx: Context, payload: Any) -> None:
        begun[ctx.name] += 1
        await opened.wait()

    for queue in ("fast", "bulk"):
        await world.submit(100, function_spec(queue, queue=queue))
    async with crew.work({"fast": work, "bulk": work}, queues={"fast": 3, "bulk": 1}, concurrency=40):
        await eventually(lambda: begun.total() == 40)
        assert begun["fast"] == pytest.approx(30, abs=2)
        opened.set()
        await over(world, 200)


async def test_failures_are_retried_and_then_die(world: World, crew: Crew):
    tries: Counter[str] = Counter()

    async def flaky(ctx: Context, payload: Any) -> None:
        tries["flaky"] += 1
        if ctx.attempt < 3:
            raise ValueError(f"try {ctx.attempt}")

    def hopeless(ctx: Context, payload: Any) -> None:
        raise ValueError("never")

    async def final(ctx: Context, payload: Any) -> None:
        raise Permanent("no use")

    async with crew.work({"flaky": flaky, "hopeless": hopeless, "final": final}):
        (good,) = await world.submit(1, function_spec("flaky", backoff=AT_ONCE))
        (bad,) = await world.submit(1, function_spec("hopeless", backoff=AT_ONCE, max_retries=1))
        (final_,) = await world.submit(1, function_spec("final", backoff=AT_ONCE))
        async with asyncio.timeout(PATIENCE):
            while await world.value("SELECT count(*) FROM history WHERE state > 3") < 3:
                await world.promoter.run_once()
                await asyncio.sleep(0.01)
    assert tries["flaky"] == 3
    states = {
        row["run"]: (row["state"], row["attempt"]) for row in await world.sql("SELECT * FROM history WHERE state > 3")
    }
    assert states == {good: (4, 3), bad: (5, 2), final_: (5, 1)}
    assert await world.value("SELECT error FROM dead_letter WHERE id = $1", final_) == "no use"


async def test_an_address_is_called_and_a_time_out_is_told(world: World, crew: Crew, serve: Serve):
    called = asyncio.Event()

    async def hang(_: web.Request) -> web.Response:
        called.set()
        await asyncio.Event().wait()
        return web.Response()

    async with crew.work({}):
        spec = Spec(handler=call(await serve(hang)).handler, timeout=timedelta(seconds=1), max_retries=0)
        (run,) = await world.submit(1, spec)
        await event(called)
        await over(world, 1)
    view = await world.insights.attempts(world.tenant, run=run, limit=5, cursor=None)
    assert [(each.status, each.error_message) for each in view.items] == [("timed_out", "timed out after 1 s")]


async def test_no_handler_can_stop_the_worker(world: World, crew: Crew):
    """Errors that the database cannot keep, exits, odd exceptions: each ends its own attempt only."""

    class Odd(BaseException):
        pass

    async def nasty(ctx: Context, payload: Any) -> None:
        raise ValueError("NUL \0 and half a pair \udcff")

    async def leaving(ctx: Context, payload: Any) -> None:
        sys.exit(2)

    def odd(ctx: Context, payload: Any) -> None:
        raise Odd

    def stop(ctx: Context, payload: Any) -> None:
        raise StopIteration

    async def cancelling(ctx: Context, payload: Any) -> None:
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    handlers = {"nasty": nasty, "leaving": leaving, "odd": odd, "stop": stop, "cancelling": cancelling}
    async with crew.work(handlers) as hired:
        for name in handlers:
            await world.submit(2, function_spec(name, max_retries=0))
        await over(world, 2 * len(handlers))
        assert not hired.task.done()
    assert await world.count("dead_letter") == 2 * len(handlers)
    assert "NUL" in await world.value("SELECT error FROM dead_letter WHERE error LIKE '%NUL%' LIMIT 1")


async def test_a_stopping_worker_finishes_what_runs_and_hands_back_the_rest(world: World, crew: Crew):
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def slow(ctx: Context, payload: Any) -> None:
        begun.set()
        await may_end.wait()

    async with crew.work({"noop": slow}, concurrency=1) as hired:
        await world.submit(5)
        await event(begun)
        hired.stop.set()
        may_end.set()
        await hired.leave()
    finished = await world.value("SELECT count(*) FROM history WHERE state = 4")
    assert 1 <= finished < 5  # a claim may have been under way when it was told to stop
    assert await world.count("run") == await world.count("ready") == 5 - finished
    assert await world.count("claim") == 0
    assert await world.value("SELECT state FROM worker WHERE id = $1", hired.id) == 2
    assert await world.value("SELECT count(*) FROM run WHERE id > 0 AND attempt > 0") == 0


async def test_what_overstays_the_grace_period_is_handed_back_unspent(world: World, crew: Crew):
    begun = asyncio.Event()

    async def hang(ctx: Context, payload: Any) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with crew.work({"noop": hang}, grace=timedelta(milliseconds=10)) as hired:
        (run,) = await world.submit()
        await event(begun)
        await hired.leave()
    assert await world.value("SELECT run FROM ready WHERE lane > 0") == run
    assert await world.value("SELECT attempt FROM run WHERE id = $1", run) == 0


async def test_a_worker_that_was_declared_dead_stops_its_handlers_and_says_so(world: World, crew: Crew):
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def hang(ctx: Context, payload: Any) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with crew.work({"noop": hang}, heartbeat=timedelta(milliseconds=10)) as hired:
        await world.submit()
        await event(begun)
        await world.sql("UPDATE worker SET state = 2 WHERE id = $1", hired.id)
        with pytest.raises(LeaseLost):
            await asyncio.wait_for(hired.task, PATIENCE)
        await event(cancelled)
    assert await world.count("history") == 0
    assert await world.count("run") == 1  # the reaper's business now


async def test_what_a_worker_does_not_serve_stays_untouched(world: World, crew: Crew):
    async def noop(ctx: Context, payload: Any) -> None:
        pass

    async with crew.work({"noop": noop}):
        await world.submit(2, function_spec("theirs"))
        await world.submit(1)
        await over(world, 1)
        assert await world.count("ready") == 2
        assert await world.value("SELECT count(*) FROM run WHERE id > 0 AND fence = 0") == 2


async def test_a_late_result_changes_nothing(world: World, crew: Crew):
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def slow(ctx: Context, payload: Any) -> None:
        begun.set()
        await may_end.wait()

    async with crew.work({"noop": slow}) as hired:
        (run,) = await world.submit()
        await event(begun)
        await world.sql("UPDATE run SET fence = 1000000 WHERE id = $1", run)  # somebody newer holds it
        may_end.set()
        await hired.leave()
    assert await world.count("history") == 0
    assert await world.value("SELECT count(*) FROM run WHERE id = $1", run) == 1
