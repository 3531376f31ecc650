"""What each mode of a wire does to a client of a real PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from chaos.protocol import ClientStream
from chaos.proxy import Mode, Wire
from world import PATIENCE

GONE = (OSError, asyncpg.PostgresConnectionError, asyncpg.InterfaceError)


class Way:
    """A wire to the test's database, and the address of its near end."""

    def __init__(self, wire: Wire, dsn: str, straight: str) -> None:
        self.wire = wire
        self._dsn = dsn
        self._straight = straight

    async def connect(self) -> asyncpg.Connection:
        return await asyncpg.connect(self._dsn, timeout=5)

    async def straight(self, query: str) -> object:
        connection = await asyncpg.connect(self._straight)
        try:
            return await connection.fetchval(query)
        finally:
            await connection.close()


@pytest.fixture
async def way(empty_dsn: str) -> AsyncIterator[Way]:
    parts = urlsplit(empty_dsn)
    wire = Wire(str(Path(parse_qs(parts.query)["host"][0]) / ".s.PGSQL.5432"))
    server = await asyncio.start_server(wire.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    account = f"{parts.username}:{parts.password}"
    way = Way(wire, f"postgresql://{account}@127.0.0.1:{port}{parts.path}?sslmode=disable", empty_dsn)
    await way.straight("CREATE TABLE job (n int)")
    yield way
    wire.set(Mode.RESET, 0.0)
    server.close()


async def test_a_wire_in_order_carries_everything(way: Way):
    connection = await way.connect()
    big = "x" * 3_000_000
    assert await connection.fetchval("SELECT $1::text", big) == big
    await connection.close()


async def test_delay_makes_every_answer_late(way: Way):
    connection = await way.connect()
    way.wire.set(Mode.DELAY, 0.15)
    began = asyncio.get_running_loop().time()
    assert await connection.fetchval("SELECT 1") == 1
    assert asyncio.get_running_loop().time() - began >= 0.3
    connection.terminate()


async def test_stall_holds_everything_back_and_loses_nothing(way: Way):
    connection = await way.connect()
    way.wire.set(Mode.STALL, 0.0)
    asking = asyncio.create_task(connection.fetchval("SELECT 7"))
    await asyncio.wait([asking], timeout=0.3)
    assert not asking.done()
    way.wire.set(Mode.PASS, 0.0)
    assert await asking == 7
    connection.terminate()


async def test_a_write_that_a_stall_held_back_arrives_and_is_counted(way: Way):
    connection = await way.connect()
    way.wire.set(Mode.STALL, 0.0)
    writing = asyncio.create_task(connection.execute("INSERT INTO job VALUES (1)"))
    await asyncio.wait([writing], timeout=0.3)
    assert way.wire.held == 0
    way.wire.set(Mode.PASS, 0.0)
    await writing
    assert await connection.fetchval("SELECT count(*) FROM job") == 1
    assert way.wire.held == 1
    connection.terminate()


async def test_hold_begins_with_a_commit(way: Way):
    connection = await way.connect()
    way.wire.set(Mode.HOLD, 0.0)
    assert await connection.fetchval("SELECT count(*) FROM job") == 0
    writing = asyncio.create_task(connection.execute("INSERT INTO job VALUES (1)"))
    await asyncio.wait([writing], timeout=0.3)
    assert not writing.done()
    assert await way.straight("SELECT count(*) FROM job") == 0
    way.wire.set(Mode.PASS, 0.0)
    await writing
    assert way.wire.held == 1
    connection.terminate()


async def test_reset_breaks_what_is_open_and_welcomes_what_is_new(way: Way):
    connection = await way.connect()
    asking = asyncio.create_task(connection.fetchval("SELECT pg_sleep(5)"))
    while not await way.straight("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep')"):
        pass
    way.wire.set(Mode.RESET, 0.0)
    with pytest.raises(GONE):
        await asking
    again = await way.connect()
    assert await again.fetchval("SELECT 1") == 1
    again.terminate()


async def test_half_open_lets_the_server_hear_and_the_client_wait(way: Way):
    connection = await way.connect()
    way.wire.set(Mode.HALF_OPEN, 0.0)
    with pytest.raises(TimeoutError):
        await connection.execute("INSERT INTO job VALUES (1)", timeout=0.5)
    async with asyncio.timeout(PATIENCE):
        while not await way.straight("SELECT count(*) FROM job"):
            pass
    way.wire.set(Mode.PASS, 0.0)
    assert connection.is_closed() or await _is_broken(connection)


async def test_in_the_dark_nothing_arrives_and_the_end_of_it_ends_old_connections(way: Way):
    connection = await way.connect()
    way.wire.set(Mode.DARK, 0.0)
    asking = asyncio.create_task(connection.execute("INSERT INTO job VALUES (1)"))
    await asyncio.wait([asking], timeout=0.3)
    assert not asking.done()
    way.wire.set(Mode.PASS, 0.0)
    with pytest.raises(GONE):
        await asking
    assert await way.straight("SELECT count(*) FROM job") == 0


async def test_cut_before_a_commit_means_that_nothing_happened(way: Way):
    connection = await way.connect()
    assert await connection.fetchval("SELECT 1") == 1
    way.wire.set(Mode.CUT_BEFORE, 0.0)
    assert await connection.fetchval("SELECT count(*) FROM job") == 0  # a read is let through
    with pytest.raises(GONE):
        await connection.execute("INSERT INTO job VALUES ($1)", 1)
    assert await way.straight("SELECT count(*) FROM job") == 0
    assert (way.wire.cuts, way.wire.mode) == (1, Mode.PASS)


async def test_cut_after_a_commit_means_that_it_happened_and_nobody_was_told(way: Way):
    connection = await way.connect()
    statement = await connection.prepare("INSERT INTO job VALUES ($1)")
    await statement.fetch(1)
    way.wire.set(Mode.CUT_AFTER, 0.0)
    with pytest.raises(GONE):
        await statement.fetch(2)
    assert await way.straight("SELECT count(*) FROM job") == 2
    assert way.wire.cuts == 1


@pytest.mark.parametrize(("mode", "kept"), [(Mode.CUT_BEFORE, 0), (Mode.CUT_AFTER, 1)])
async def test_in_a_transaction_it_is_the_commit_that_is_cut(way: Way, mode: Mode, kept: int):
    connection = await way.connect()
    transaction = connection.transaction()
    await transaction.start()
    way.wire.set(mode, 0.0)
    await connection.execute("INSERT INTO job VALUES ($1)", 1)
    assert way.wire.cuts == 0
    with pytest.raises(GONE):
        await transaction.commit()
    assert await way.straight("SELECT count(*) FROM job") == kept
    assert way.wire.cuts == 1


def test_messages_come_out_whole_however_they_went_in():
    startup = (8).to_bytes(4, "big") + (196608).to_bytes(4, "big")
    query = b"Q" + (4 + 9 + 1).to_bytes(4, "big") + b"SELECT 11"[:9] + b"\0"
    stream = ClientStream()
    out = [message for byte in startup + query for message, _ in stream.feed(bytes([byte]))]
    assert out == [startup, query]


async def _is_broken(connection: asyncpg.Connection) -> bool:
    try:
        await connection.fetchval("SELECT 1", timeout=1)
    except (*GONE, TimeoutError, asyncpg.InternalClientError):
        return True
    return False
