"""ctx.transaction(): what a handler writes and the end of its run are on disk together, or not at all."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from asyncpg.transaction import Transaction

from foliot import Context, FenceLost
from foliot.domain.errors import Conflict
from foliot.domain.outcome import SUCCEEDED, Ending, Outcome
from foliot.domain.retry import Backoff
from foliot.domain.states import State
from foliot.sdk.settling import NotHere
from foliot.store.dispatch import Claimed, Settlement
from foliot.store.effects import Effects
from foliot.store.fleet import reap
from foliot.store.recovery import _GONE
from foliot.worker.functions import function_executors
from foliot.worker.underway import BLINK
from worker.crew import Crew
from worker.making import NOW, PATIENCE, assignment, function_spec
from world import Hand, World

MINUTE = timedelta(minutes=1)
AT_ONCE = Backoff(initial=timedelta(0), max=timedelta(0))
ADD = "INSERT INTO receipt (run) VALUES ($1)"


class Attempt:
    """One run in the hands of a worker, and its transactions."""

    def __init__(self, world: World, hand: Hand, run: Claimed, effects: Effects) -> None:
        self.world = world
        self.hand = hand
        self.run = run
        self.effects = effects

    def transaction(self, **more: Any) -> Any:
        return self.effects.transaction(Settlement(self.run, NOW, SUCCEEDED), MINUTE, **more)

    async def write(self, then: Callable[[Any], Awaitable[Any]] | None = None, **more: Any) -> None:
        """What a handler does: write, do something else, come to the end of the block."""
        async with self.transaction(**more) as connection:
            await connection.execute(ADD, self.run.id)
            if then is not None:
                await then(connection)

    async def standing(self) -> tuple[int, int, int]:
        """Receipts, runs, successes on record."""
        receipts = await self.world.value("SELECT count(*) FROM public.receipt")
        successes = await self.world.value("SELECT count(*) FROM history WHERE state = 4")
        return receipts, await self.world.count("run"), successes


@pytest.fixture
async def attempt(shop: World, dsn: str) -> AsyncIterator[Attempt]:
    await shop.submit()
    hand = await shop.worker()
    (run,) = await hand.claim()
    effects = Effects(dsn, hand.id, 2)
    yield Attempt(shop, hand, run, effects)
    await effects.close()


NOTHING, ALL = (0, 1, 0), (1, 0, 1)


async def test_the_writes_and_the_settlement_are_one_commit(attempt: Attempt):
    async def look(_: Any) -> None:
        assert await attempt.standing() == NOTHING

    await attempt.write(look)
    assert await attempt.standing() == ALL
    assert await attempt.hand.settle([attempt.run]) == 0


async def test_an_exception_leaves_neither(attempt: Attempt):
    async def fail(_: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await attempt.write(fail)
    assert await attempt.standing() == NOTHING
    await attempt.write()
    assert await attempt.standing() == ALL


@pytest.mark.parametrize("isolation", [None, "repeatable_read", "serializable"])
async def test_who_has_lost_its_fence_writes_nothing(attempt: Attempt, isolation: str | None):
    async def lose(_: Any) -> None:
        await attempt.hand.conclude([attempt.run], Outcome.released())  # the run goes to somebody else

    with pytest.raises((FenceLost, asyncpg.SerializationError)):
        await attempt.write(lose, isolation=isolation)
    assert await attempt.standing() == NOTHING
    (again,) = await attempt.hand.claim()
    assert again.fence > attempt.run.fence


async def test_who_is_killed_between_its_write_and_the_commit_leaves_neither(attempt: Attempt):
    async def kill(connection: Any) -> None:
        await attempt.world.sql("SELECT pg_terminate_backend($1)", connection.get_server_pid())

    with pytest.raises(_GONE):
        await attempt.write(kill)
    assert await attempt.standing() == NOTHING
    assert await attempt.hand.settle([attempt.run]) == 1


@pytest.mark.parametrize("happened", [True, False])
async def test_a_commit_whose_reply_was_lost_is_looked_up(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch, *, happened: bool
):
    commit = Transaction.commit

    async def commit_unheard(self: Any) -> None:
        await (commit(self) if happened else self.rollback())
        raise ConnectionResetError("the reply was lost")

    monkeypatch.setattr(Transaction, "commit", commit_unheard)
    with nullcontext() if happened else pytest.raises(ConnectionResetError):
        await attempt.write()
    assert await attempt.standing() == (ALL if happened else NOTHING)


async def test_who_is_cut_off_before_its_commit_keeps_its_claim_from_nobody(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch
):
    """With the claim all that was claimed with it would wait, for as long as an attempt may take: here, a minute."""
    monkeypatch.setattr("foliot.store.effects.IDLE", "50ms")

    async def go_nowhere(_: Any) -> None:
        await attempt.hand.die()
        async with asyncio.timeout(20):
            while not (await reap(attempt.hand.line)).claims:
                pass
        raise ConnectionResetError("no reply came")

    monkeypatch.setattr(Transaction, "commit", go_nowhere)
    with pytest.raises(ConnectionResetError):
        await attempt.write()
    assert await attempt.standing() == NOTHING
    assert await attempt.world.count("ready") == 1


async def test_what_the_commit_refuses_leaves_neither(attempt: Attempt):
    """A constraint that waits for the commit, and finds the search path of the handler there."""
    await attempt.world.sql(
        "CREATE FUNCTION public.check_receipts() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN IF (SELECT count(*) FROM receipt) > 1 THEN RAISE 'one is enough'; END IF; RETURN NULL; END $$"
    )
    await attempt.world.sql(
        "CREATE CONSTRAINT TRIGGER once AFTER INSERT ON public.receipt INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION public.check_receipts()"
    )
    with pytest.raises(asyncpg.RaiseError):
        async with attempt.transaction() as connection:
            await connection.executemany(ADD, [(1,), (2,)])
    assert await attempt.standing() == NOTHING
    async with attempt.transaction() as connection:
        await connection.execute(ADD, 1)
    assert await attempt.standing() == ALL


async def test_a_handler_that_commits_by_itself_is_told(attempt: Attempt):
    with pytest.raises(Conflict, match="itself"):
        async with attempt.transaction() as connection:
            await connection.execute("COMMIT")
    assert await attempt.standing() == NOTHING


async def test_no_more_handlers_than_allowed_have_a_connection(attempt: Attempt):
    async with attempt.effects._connection(), attempt.effects._connection():
        third = asyncio.ensure_future(attempt.effects._connection().__aenter__())
        done, _ = await asyncio.wait([third], timeout=0.05)
        assert not done
    await asyncio.wait_for(third, PATIENCE)


async def test_a_worker_settles_once_what_its_handler_has_settled(shop: World, dsn: str):
    """Whatever the handler does after the block, the run has succeeded."""
    after: list[str] = []

    async def charge(ctx: Context, payload: Any) -> None:
        async with ctx.transaction() as connection:
            await connection.execute(ADD, ctx.attempt)
        with pytest.raises(Conflict):
            ctx.transaction()
        after.append(ctx.run)
        raise ValueError("too late")

    async with Crew(dsn).work({"noop": charge}) as hired:
        await shop.submit(3)
        await shop.until("SELECT count(*) >= 3 FROM history")
        await hired.leave()
    assert len(set(after)) == 3
    rows = await shop.sql("SELECT state, count(*) AS count FROM history GROUP BY state")
    assert [tuple(row) for row in rows] == [(State.SUCCEEDED, 3)]
    assert await shop.value("SELECT count(*) FROM public.receipt") == 3
    assert await shop.count("run") == await shop.count("claim") == await shop.count("dead_letter") == 0


async def test_a_handler_that_has_settled_its_run_comes_to_its_end(shop: World, dsn: str):
    through: list[str] = []

    async def charge(ctx: Context, payload: Any) -> None:
        async with ctx.transaction() as connection:
            await connection.execute(ADD, ctx.attempt)
        await asyncio.sleep(3 * BLINK.total_seconds())  # longer than it takes to be noted as begun
        through.append(ctx.run)

    async with Crew(dsn).work({"noop": charge}) as hired:
        await shop.submit(1)
        await shop.until("SELECT count(*) = 1 FROM history")
        await hired.leave()
    assert len(through) == 1
    assert await shop.count("late_result") == 0


async def test_a_retry_writes_once(shop: World, dsn: str):
    async def flaky(ctx: Context, payload: Any) -> None:
        async with ctx.transaction() as connection:
            await connection.execute(ADD, ctx.attempt)
            if ctx.attempt < 3:
                raise ValueError("not yet")

    async with Crew(dsn).work({"noop": flaky}):
        await shop.submit(1, function_spec("noop", backoff=AT_ONCE))
        await shop.until("SELECT count(*) = 1 FROM history WHERE state = 4")  # no scheduler: idle workers promote
    assert [row["run"] for row in await shop.sql("SELECT run FROM public.receipt")] == [3]
    assert await shop.value("SELECT count(*) FROM history WHERE ending = $1", Ending.FAILED) == 2


async def test_where_there_can_be_no_transaction_the_handler_is_told_why():
    async def far(ctx: Context, payload: Any) -> None:
        async with ctx.transaction():
            raise AssertionError

    def plain(ctx: Context, payload: Any) -> None:
        with ctx.transaction():
            raise AssertionError

    with ThreadPoolExecutor(1) as threads:
        executors = function_executors({"far": far, "plain": plain}, threads)
        said = [(await executors[name](assignment(function_spec(name)))).error for name in executors]
    assert all(NotHere.__name__ in error and "FOLIOT_DATABASE_URL" in error for error in said)
