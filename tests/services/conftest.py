"""A world whose time is told by the test."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

import clocked
from conftest import _database, with_name
from foliot.kit.postgres import PostgresServer
from foliot.store import database as databases
from foliot.store.database import Database
from services.remotes import Hire, Remote
from world import World


@pytest.fixture(scope="session")
def clocked_template(server: PostgresServer) -> str:
    async def make() -> None:
        connection = await asyncpg.connect(server.dsn)
        await connection.execute("CREATE DATABASE clocked_template")
        await connection.close()
        await clocked.make(with_name(server.dsn, "clocked_template"))

    asyncio.run(make())
    return "clocked_template"


@pytest.fixture
async def clocked_dsn(server: PostgresServer, clocked_template: str) -> AsyncIterator[str]:
    async for dsn in _database(server, clocked_template):
        yield dsn


@pytest.fixture
async def time(clocked_dsn: str) -> AsyncIterator[clocked.Time]:
    connection = await asyncpg.connect(clocked_dsn)
    yield clocked.Time(connection)
    await connection.close()


@pytest.fixture
async def clocked_world(clocked_dsn: str, time: clocked.Time, monkeypatch) -> AsyncIterator[World]:
    """As `world`, but `time` says what the database's clock shows."""
    monkeypatch.setattr(databases, "_SESSION", clocked.SESSION)
    await time.server_started(ago=3_600)
    database = await Database.open(clocked_dsn)
    async with World.begin(database) as begun:
        yield begun
    await database.close()


@pytest.fixture
def remote(world: World) -> Hire:
    numbers = iter(range(1, 100))

    async def hire(*queues: str) -> Remote:
        return await Remote(world, next(numbers)).register(*queues)

    return hire
