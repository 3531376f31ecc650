"""ctx.transaction() in a plain function: the same promise from a thread, which waits where a coroutine awaits."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from foliot import AsyncFoliot, Context, FenceLost, Foliot
from foliot.domain.errors import Conflict, InvalidField
from foliot.domain.outcome import Ending
from foliot.domain.retry import Backoff
from foliot.domain.states import State
from worker.crew import Crew
from worker.making import PATIENCE, function_spec
from world import World

AT_ONCE = Backoff(initial=timedelta(0), max=timedelta(0))
ADD = "INSERT INTO receipt (run) VALUES ($1)"
NO_RETRY = function_spec("noop", max_retries=0)


async def receipts(shop: World) -> list[int]:
    return [row["run"] for row in await shop.sql("SELECT run FROM public.receipt ORDER BY run")]


async def endings(shop: World) -> list[Ending]:
    return [Ending(row["ending"]) for row in await shop.sql("SELECT ending FROM history ORDER BY started_at")]


async def test_the_writes_and_the_settlement_are_one_commit(shop: World, dsn: str):
    seen: list[Any] = []

    def charge(ctx: Context, payload: Any) -> None:
        with ctx.transaction() as connection:
            seen.append(connection.execute(ADD, 1))
            connection.executemany(ADD, [(2,), (3,)])
            seen.append([row["run"] for row in connection.fetch("SELECT run FROM receipt ORDER BY run")])
            seen.append(tuple(connection.fetchrow("SELECT min(run), max(run) FROM receipt")))
            seen.append(connection.fetchval("SELECT min(run), max(run) FROM receipt", column=1))
            seen.append(connection.fetchrow("SELECT run FROM receipt WHERE run > 3"))
        with pytest.raises(Conflict):
            ctx.transaction()
        raise ValueError("too late")

    async with Crew(dsn).work({"noop": charge}) as hired:
        await shop.submit(1)
        await shop.until("SELECT count(*) = 1 FROM history")
        await hired.leave()
    assert seen == ["INSERT 0 1", [1, 2, 3], (1, 3), 3, None]
    assert await receipts(shop) == [1, 2, 3]
    assert await shop.value("SELECT state FROM history") == State.SUCCEEDED
    assert await shop.count("run") == await shop.count("claim") == await shop.count("dead_letter") == 0


async def test_a_retry_writes_once(shop: World, dsn: str):
    def flaky(ctx: Context, payload: Any) -> None:
        with ctx.transaction() as connection:
            connection.execute(ADD, ctx.attempt)
            if ctx.attempt < 3:
                raise ValueError("not yet")

    async with Crew(dsn).work({"noop": flaky}):
        await shop.submit(1, function_spec("noop", backoff=AT_ONCE))
        await shop.until("SELECT count(*) = 1 FROM history WHERE state = 4")
    assert await receipts(shop) == [3]
    assert await endings(shop) == [Ending.FAILED, Ending.FAILED, Ending.COMPLETED]


async def test_a_savepoint_is_taken_back_alone(shop: World, dsn: str):
    def careful(ctx: Context, payload: Any) -> None:
        with ctx.transaction() as connection:
            connection.execute(ADD, 1)
            with suppress(ZeroDivisionError), connection.transaction():
                connection.execute(ADD, 2)
                raise ZeroDivisionError
            with connection.transaction():
                connection.execute(ADD, 3)

    async with Crew(dsn).work({"noop": careful}):
        await shop.submit(1)
        await shop.until("SELECT count(*) = 1 FROM history")
    assert await receipts(shop) == [1, 3]


async def test_who_has_lost_its_fence_writes_nothing(shop: World, dsn: str):
    """Somebody else declares the worker dead between the write and the end of the block."""
    written, lost = threading.Event(), threading.Event()
    raised: list[BaseException] = []

    def slow(ctx: Context, payload: Any) -> None:
        try:
            with ctx.transaction() as connection:
                connection.execute(ADD, 1)
                written.set()
                lost.wait(PATIENCE)
        except FenceLost as error:
            raised.append(error)
            raise

    async with Crew(dsn).work({"noop": slow}) as hired:
        await shop.submit(1)
        await asyncio.to_thread(written.wait, PATIENCE)
        await shop.sql("DELETE FROM claim")
        lost.set()
        await hired.leave()
    assert len(raised) == 1
    assert await receipts(shop) == []


@pytest.mark.parametrize("leaves", [True, False])
async def test_a_statement_that_outlasts_the_attempt_is_ended(shop: World, dsn: str, *, leaves: bool):
    """A lock that never comes: the time is up, the thread hears of it, and the connection is free for the next."""
    heard: list[BaseException] = []

    def stuck(ctx: Context, payload: Any) -> None:
        with ctx.transaction() as connection:
            connection.execute(ADD, ctx.attempt)
            try:
                connection.execute("SELECT pg_advisory_xact_lock(77)")
            except BaseException as error:
                heard.append(error)
                if leaves:
                    raise
                raise ValueError("in its own words") from None

    rival = await asyncpg.connect(dsn)
    await rival.execute("SELECT pg_advisory_lock(77)")
    async with Crew(dsn).work({"noop": stuck}):
        await shop.submit(1, function_spec("noop", max_retries=0, timeout=timedelta(seconds=1)))
        await shop.until("SELECT count(*) = 1 FROM history")
        await shop.until("SELECT count(*) = 0 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    await rival.close()
    assert [type(error) for error in heard] == [asyncio.CancelledError]
    assert await receipts(shop) == []
    assert await endings(shop) == [Ending.TIMED_OUT]


async def test_work_that_follows_goes_out_with_the_same_commit(shop: World, dsn: str):
    client = Foliot("http://127.0.0.1:1", shop.key)
    refused: list[str] = []

    def order(ctx: Context, payload: Any) -> None:
        with ctx.transaction() as connection:
            client.submit("follow", {"of": ctx.attempt}, connection=connection)
            with pytest.raises(InvalidField) as caught:
                asyncio.run(AsyncFoliot("http://127.0.0.1:1", shop.key).submit("follow", connection=connection))
            refused.append(str(caught.value))
            if ctx.attempt == 1:
                raise ValueError("not yet")

    async with Crew(dsn).work({"noop": order}):
        await shop.submit(1, function_spec("noop", backoff=AT_ONCE))
        await shop.until("SELECT count(*) = 1 FROM history WHERE state = 4")
    rows = await shop.sql("SELECT payload FROM outbox UNION ALL SELECT payload FROM run WHERE payload <> ''")
    assert [row["payload"] for row in rows] == [b'{"of":2}']
    assert all("not an asynchronous one" in said for said in refused)


def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(ctx: Context, payload: Any) -> Any:
        return function(ctx, payload)

    return call


async def test_a_coroutine_behind_a_plain_decorator_has_one_as_well(shop: World, dsn: str):
    @decorated
    async def charge(ctx: Context, payload: Any) -> None:
        with pytest.raises(TypeError, match="async with"), ctx.transaction():
            raise AssertionError
        async with ctx.transaction() as connection:
            await connection.execute(ADD, 1)

    async with Crew(dsn).work({"noop": charge}):
        await shop.submit(1, NO_RETRY)
        await shop.until("SELECT count(*) = 1 FROM history")
    assert await endings(shop) == [Ending.COMPLETED]
    assert await receipts(shop) == [1]
