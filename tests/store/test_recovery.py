"""Lost connections: which errors mean one, and that lines and pools come back by themselves."""

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from foliot.domain.errors import Unavailable
from foliot.store.database import Database
from foliot.store.recovery import is_contended, is_gone, persist
from world import World

KILL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.ConnectionDoesNotExistError(),
        asyncpg.AdminShutdownError(),
        asyncpg.CannotConnectNowError(),
        asyncpg.CrashShutdownError(),
        asyncpg.ReadOnlySQLTransactionError(),
        asyncpg.TooManyConnectionsError(),
        asyncpg.InterfaceError("closed"),
        ConnectionResetError(),
        TimeoutError(),
        OSError(),
    ],
)
def test_an_error_of_the_connection_is_recognised(error: Exception):
    assert is_gone(error)


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.UniqueViolationError(),
        asyncpg.UndefinedTableError(),
        asyncpg.DeadlockDetectedError(),
        asyncpg.LockNotAvailableError(),
        asyncpg.exceptions._base.DataError("cannot encode"),
        asyncpg.ClientConfigurationError("odd address"),
        ValueError(),
    ],
)
def test_an_error_of_the_statement_is_not_mistaken_for_one(error: Exception):
    assert not is_gone(error)


def test_rivals_in_the_way_are_recognised():
    assert is_contended(asyncpg.LockNotAvailableError())
    assert is_contended(asyncpg.DeadlockDetectedError())
    assert not is_contended(asyncpg.UniqueViolationError())


async def test_a_line_that_was_cut_in_mid_statement_is_opened_again(world: World):
    line = world.database.line()
    async with world.unfinished() as rival:
        await rival.execute("LOCK TABLE worker")
        waiting = asyncio.create_task(line.fetch("beat", 1))
        await world.until_waiting()
        await world.sql(KILL)
        await asyncio.wait([waiting])
    assert is_gone(waiting.exception())
    assert await line.fetchval("sign_of_life") == 1
    await line.close()


async def test_a_line_left_in_mid_statement_is_not_used_again(world: World):
    line = world.database.line()
    async with world.unfinished() as rival:
        await rival.execute("LOCK TABLE worker")
        waiting = asyncio.create_task(line.fetch("beat", 1))
        await world.until_waiting()
        waiting.cancel()
        await asyncio.wait([waiting])
        assert await line.fetchval("sign_of_life") == 1
    await line.close()


async def test_a_pool_answers_unavailable_while_the_server_is_away_and_comes_back(world: World, dsn: str):
    opened = await Database.open(dsn, size=1)
    async with opened.connection() as connection:
        pid = connection.get_server_pid()
    with pytest.raises(Unavailable):
        await _cut_in_mid_use(world, opened, pid)
    assert await opened.fetchval("sign_of_life") == 1
    await opened.close()


async def _cut_in_mid_use(world: World, opened: Database, pid: int) -> None:
    async with opened.connection() as connection:
        await world.sql("SELECT pg_terminate_backend($1)", pid)
        await connection.fetchval("SELECT pg_sleep(10)")


async def test_a_step_is_repeated_through_an_outage_and_no_further():
    failures = [ConnectionError(), asyncpg.AdminShutdownError()]
    said = []

    async def step() -> int:
        if failures:
            raise failures.pop()
        return 7

    def say(error: BaseException, pause: timedelta) -> None:
        said.append((type(error), pause <= timedelta(seconds=2.1)))

    assert await persist(step, chance=lambda: 0.0, stop=asyncio.Event(), say=say) == 7
    assert said[0] == (asyncpg.AdminShutdownError, True)
    assert failures == []


async def test_an_error_that_waiting_does_not_mend_is_raised():
    async def step() -> int:
        raise asyncpg.UndefinedTableError

    with pytest.raises(asyncpg.UndefinedTableError):
        await persist(step, chance=lambda: 0.0, stop=asyncio.Event(), say=lambda *_: None)
