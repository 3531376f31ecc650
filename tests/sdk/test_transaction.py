"""Handing work in on the caller's own connection, with each of the libraries that people use."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import psycopg
import pytest
import sqlalchemy
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from foliot.domain.errors import InvalidField
from foliot.domain.ids import decode, encode
from foliot.domain.states import State
from foliot.sdk import calls
from foliot.sdk.protocol import Request
from foliot.sdk.transaction import _PARAMETERS, values_of
from sdk.serving import Served
from world import NOOP, PATIENCE, World

Ends = Callable[[], Any]
Opened = tuple[Any, Ends, Ends]
"""A connection in a transaction, and how to commit it and to take it back."""


def _url(dsn: str, dialect: str) -> str:
    return dsn.replace(urlsplit(dsn).scheme, f"postgresql+{dialect}", 1)


@asynccontextmanager
async def _asyncpg(dsn: str) -> AsyncIterator[Opened]:
    connection = await asyncpg.connect(dsn)
    transaction = connection.transaction()
    await transaction.start()
    yield connection, transaction.commit, transaction.rollback
    await connection.close()


@asynccontextmanager
async def _asyncpg_pool(dsn: str) -> AsyncIterator[Opened]:
    async with asyncpg.create_pool(dsn, min_size=1) as pool, pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        yield connection, transaction.commit, transaction.rollback


@asynccontextmanager
async def _psycopg(dsn: str) -> AsyncIterator[Opened]:
    with psycopg.connect(dsn) as connection:
        yield connection, connection.commit, connection.rollback


@asynccontextmanager
async def _psycopg_of_dicts(dsn: str) -> AsyncIterator[Opened]:
    with psycopg.connect(dsn, row_factory=dict_row) as connection:
        yield connection, connection.commit, connection.rollback


@asynccontextmanager
async def _psycopg_async(dsn: str) -> AsyncIterator[Opened]:
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        yield connection, connection.commit, connection.rollback


@asynccontextmanager
async def _sqlalchemy(dsn: str) -> AsyncIterator[Opened]:
    engine = sqlalchemy.create_engine(_url(dsn, "psycopg"))
    with engine.connect() as connection:
        yield connection, connection.commit, connection.rollback
    engine.dispose()


@asynccontextmanager
async def _session(dsn: str) -> AsyncIterator[Opened]:
    engine = sqlalchemy.create_engine(_url(dsn, "psycopg"))
    with Session(engine) as session:
        yield session, session.commit, session.rollback
    engine.dispose()


@asynccontextmanager
async def _sqlalchemy_async(dsn: str) -> AsyncIterator[Opened]:
    engine = create_async_engine(_url(dsn, "asyncpg"))
    async with engine.connect() as connection:
        yield connection, connection.commit, connection.rollback
    await engine.dispose()


@asynccontextmanager
async def _session_async(dsn: str) -> AsyncIterator[Opened]:
    engine = create_async_engine(_url(dsn, "psycopg"))
    async with AsyncSession(engine) as session:
        yield session, session.commit, session.rollback
    await engine.dispose()


BLOCKING = [_psycopg, _psycopg_of_dicts, _sqlalchemy, _session]
AWAITED = [_asyncpg, _asyncpg_pool, _psycopg_async, _sqlalchemy_async, _session_async]


async def _done(value: Any) -> Any:
    return await value if isinstance(value, Awaitable) else value


async def _there(world: World, run: Any) -> tuple[str, Any] | None:
    """The table that a run stands in for all to see, and its row."""
    for table in ("run", "timer", "outbox"):
        if rows := await world.sql(f"SELECT * FROM {table} WHERE id = $1", decode("run", run.id)):
            return table, rows[0]
    return None


async def test_a_run_is_there_when_the_caller_commits_and_never_was_when_not(foliot: Served, world: World, dsn: str):
    await world.specs.intern(world.tenant, NOOP)
    async with foliot.aio() as aio:
        for library in (*BLOCKING, *AWAITED):
            client = foliot.client() if library in BLOCKING else aio
            async with library(dsn) as (connection, _, roll_back):
                taken_back = await _done(client.submit("noop", {"n": 1}, connection=connection))
                await _done(roll_back())
            assert await _there(world, taken_back) is None, library
            async with library(dsn) as (connection, commit, _):
                await _hand_in(world, client, connection, commit)


async def _hand_in(world: World, client: Any, connection: Any, commit: Ends) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=30)
    now = await _done(client.submit("noop", {"n": "ü"}, connection=connection))
    later = await _done(client.submit("noop", connection=connection, delay="PT1H0.5S"))
    fixed = await _done(client.submit("https://example.com/x", connection=connection, at=soon))
    assert [await _there(world, run) for run in (now, later, fixed)] == [None] * 3
    await _done(commit())
    table, row = await _there(world, now)
    assert (table, row["state"], row["payload"]) == ("run", State.SCHEDULED, b'{"n":"\xc3\xbc"}')
    assert row["due_at"] < soon
    table, row = await _there(world, later)
    assert table == "timer"
    assert timedelta(minutes=59) < row["due_at"] - datetime.now(UTC) < timedelta(hours=1, seconds=0.5)
    table, row = await _there(world, fixed)
    assert (table, row["due_at"], row["target"]) == ("outbox", soon, b'{"url":"https://example.com/x"}')


async def test_what_came_out_of_a_transaction_is_ranked_and_run(foliot: Served, world: World, dsn: str):
    async with foliot.aio() as client, _asyncpg(dsn) as (connection, commit, _):
        run = await client.submit("noop", connection=connection, priority="high")
        await commit()
        assert (await run.refresh()).status == "pending"
        assert await world.promoter.run_once() == 1
        (claimed,) = await (await world.worker()).claim()
    assert encode("run", claimed.id) == run.id
    assert await world.count("outbox") == 0


async def test_a_new_spec_in_a_long_transaction_holds_up_nobody(foliot: Served, world: World, dsn: str):
    async with foliot.aio() as client, _asyncpg(dsn) as (connection, commit, _):
        mine = await client.submit("brand_new", connection=connection)
        async with asyncio.timeout(PATIENCE):
            theirs = await client.submit("brand_new")
            await world.promoter.run_once()
        await commit()
    assert await world.promoter.run_once() == 1
    claimed = await (await world.worker("brand_new")).claim()
    assert [encode("run", run.id) for run in claimed] == [theirs.id, mine.id]
    assert len({run.spec for run in claimed}) == 1


async def test_two_who_empty_the_outbox_send_each_run_once(foliot: Served, world: World, dsn: str):
    async with foliot.aio() as client, _asyncpg(dsn) as (connection, commit, _):
        for name, delay in (("one", None), ("two", None), ("three", "PT1H")):
            await client.submit(name, connection=connection, delay=delay)
        await commit()
    rival = type(world.promoter)(world.database)
    assert sum(await asyncio.gather(world.promoter.run_once(), rival.run_once())) == 2
    await rival.close()
    assert (await world.count("run"), await world.count("timer"), await world.count("outbox")) == (2, 1, 0)


@pytest.mark.parametrize("spec", [b"junk", b'{"handler":{"type":"function","name":"noop"},"from":"the future"}'])
async def test_a_spec_that_no_worker_could_read_is_put_by_and_holds_up_nobody(
    foliot: Served, world: World, dsn: str, spec: bytes
):
    async with foliot.aio() as client, _asyncpg(dsn) as (connection, commit, _):
        bad = await connection.fetchval(_SUBMIT, *{**values_of(client._access, _request()), "spec": spec}.values())
        await client.submit("noop", connection=connection)
        await commit()
    assert await world.promoter.run_once() == 1
    assert await world.value("SELECT refused FROM outbox WHERE id = $1", decode("run", bad)) is not None


async def test_the_spec_of_an_older_client_is_the_same_spec(foliot: Served, world: World, dsn: str):
    async with foliot.aio() as client, _asyncpg(dsn) as (connection, commit, _):
        old = {**values_of(client._access, _request()), "spec": b'{"handler":{"type":"function","name":"noop"}}'}
        await connection.fetchval(_SUBMIT, *old.values())
        await commit()
    await world.submit()
    assert await world.promoter.run_once() == 1
    assert len({run.spec for run in await (await world.worker()).claim()}) == 1


_SUBMIT = "SELECT foliot.submit($1, $2, $3, $4, $5, $6, $7, $8, $9)"


def _request() -> Request:
    return calls.submit("noop", None, None, None, None, {})


def test_what_is_told_stands_in_the_order_of_the_parameters(foliot: Served):
    assert [*values_of(foliot.client()._access, _request())] == [name for name, _ in _PARAMETERS]


async def test_a_key_makes_one_run_inside_transactions_and_through_the_api(foliot: Served, world: World, dsn: str):
    again = {"idempotency_key": "once"}
    async with foliot.aio() as client:
        async with _asyncpg(dsn) as (connection, _, roll_back):
            await client.submit("noop", {"n": 1}, connection=connection, **again)
            await roll_back()
        async with _asyncpg(dsn) as (connection, commit, _):
            first = await client.submit("noop", {"n": 1}, connection=connection, **again)
            assert (await client.submit("noop", {"n": 1}, connection=connection, **again)).id == first.id
            await commit()
        assert (await client.submit("noop", {"n": 1}, **again)).id == first.id
        by_api = await client.submit("noop", {"n": 2}, idempotency_key="other")
        async with _asyncpg(dsn) as (connection, commit, _):
            repeated = await client.submit("noop", {"n": 2}, connection=connection, idempotency_key="other")
            assert repeated.id == by_api.id
            with pytest.raises(asyncpg.InvalidParameterValueError, match="different request"):
                await client.submit("noop", {"n": 3}, connection=connection, **again)
    assert await world.count("outbox") + await world.count("run") == 2


async def test_a_rival_with_the_same_key_waits_for_the_end_of_the_transaction(foliot: Served, world: World, dsn: str):
    async with foliot.aio() as client, _asyncpg(dsn) as (one, commit, _), _asyncpg(dsn) as (two, commit_two, _):
        first = await client.submit("noop", connection=one, idempotency_key="once")
        second = asyncio.ensure_future(client.submit("noop", connection=two, idempotency_key="once"))
        await world.until_waiting()
        await commit()
        assert (await second).id == first.id
        await commit_two()
    assert await world.count("outbox") == 1


async def test_a_role_needs_no_right_but_to_call(foliot: Served, world: World, dsn: str):
    await world.sql("CREATE ROLE shopkeeper")
    name = "foliot.submit(text, bytea, bytea, bytea, bytea, timestamptz, interval, text, bytea)"
    try:
        await world.sql("GRANT USAGE ON SCHEMA foliot TO shopkeeper")
        async with foliot.aio() as client, _asyncpg(dsn) as (connection, _, roll_back):
            await connection.execute("SET ROLE shopkeeper")
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await client.submit("noop", connection=connection)
            await roll_back()
            await world.sql(f"GRANT EXECUTE ON FUNCTION {name} TO shopkeeper")
            await connection.execute("SET ROLE shopkeeper")
            await client.submit("noop", connection=connection, idempotency_key="once")
        assert await world.count("outbox") == 1
    finally:
        await world.sql("DROP OWNED BY shopkeeper")
        await world.sql("DROP ROLE shopkeeper")


async def test_a_key_that_is_unknown_or_revoked_is_refused(foliot: Served, world: World, dsn: str):
    async with _asyncpg(dsn) as (connection, _, roll_back):
        stranger = Served(foliot.url, foliot.key[:-1] + ("A" if foliot.key[-1] != "A" else "B"))
        async with stranger.aio() as client:
            with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError, match="not known here"):
                await client.submit("noop", connection=connection)
        await roll_back()
        await world.sql("UPDATE api_key SET revoked_at = now()")
        async with foliot.aio() as client:
            with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError):
                await client.submit("noop", connection=connection)


async def test_what_cannot_carry_a_run_is_told(foliot: Served, world: World, dsn: str):
    client = foliot.client()
    async with foliot.aio() as aio, asyncpg.create_pool(dsn, min_size=1) as pool:
        with pytest.raises(InvalidField, match="pool"):
            await aio.submit("noop", connection=pool)
        async with _asyncpg(dsn) as (connection, *_):
            with pytest.raises(InvalidField, match="AsyncFoliot"):
                client.submit("noop", connection=connection)
            with pytest.raises(InvalidField, match="maxRetries"):
                await aio.submit("noop", connection=connection, max_retries=-1)
        async with _psycopg(dsn) as (connection, *_):
            with pytest.raises(InvalidField, match="without await"):
                await aio.submit("noop", connection=connection)
        with pytest.raises(InvalidField, match="cannot carry"):
            client.submit("noop", connection=object())


async def test_the_database_writes_ids_as_people_read_them(world: World):
    for number in (0, 1, 5 << 22, 2**63 - 1, 0x0123_4567_89AB_CDEF):
        assert await world.value("SELECT 'run_' || id_text($1)", number) == encode("run", number)
