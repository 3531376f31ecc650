"""A world whose time is told by the test."""

from collections.abc import AsyncIterator, Callable, Iterator

import asyncpg
import pytest

import clocked
from brittle import BrittleDatabase, Scissors
from copies import Copies
from foliot.domain.portion import Portion
from foliot.store import database as databases
from foliot.store.database import Database
from services.remotes import Hire, Remote
from world import World

InChunks = Callable[[int], None]


@pytest.fixture
def in_chunks(monkeypatch) -> InChunks:
    """Has every transaction that fires take on so much at most, however slow this machine is at the moment."""

    def so_large(size: int) -> None:
        monkeypatch.setattr(Portion, "size", property(lambda _: size, lambda *_: None), raising=False)

    return so_large


@pytest.fixture(scope="session")
def clocked_template(copies: Copies) -> str:
    return copies.make("clocked_template", clocked.make)


@pytest.fixture
def clocked_dsn(copies: Copies, clocked_template: str) -> Iterator[str]:
    with copies.of(clocked_template) as dsn:
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
    numbers = iter(range(201, 300))  # others than those of the workers by hand

    async def hire(*queues: str) -> Remote:
        return await Remote(world, next(numbers)).register(*queues)

    return hire


@pytest.fixture
def scissors() -> Scissors:
    return Scissors()


@pytest.fixture
async def brittle(world: World, scissors: Scissors) -> BrittleDatabase:
    return BrittleDatabase(world.database, scissors)
