"""A real PostgreSQL per test process, a fresh database per test, and factories for what tests need in it."""

import asyncio
import io
import logging
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import structlog
from hypothesis import HealthCheck, settings

from beside import scheduler
from copies import Copies, let_in_quickly
from foliot.domain.access import AT_THE_DATABASE
from foliot.kit.postgres import PostgresServer, find_binaries
from foliot.kit.telemetry import start_logging
from foliot.store.database import Database
from foliot.store.migrate import migrate
from hours import shifted
from world import World

# Machines are shared and noisy: how long an example takes is not what these tests are about.
settings.register_profile("foliot", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("foliot")

_OWN = 16_384
"""The first number of a type that is not built in."""
_TYPES: dict[frozenset[int], Any] = {}
_introspect_types = asyncpg.Connection._introspect_types


async def _asked_once(connection: asyncpg.Connection, types: Any, timeout: float) -> Any:  # noqa: ASYNC109 - as asyncpg's
    """What arrays of numbers are is the same everywhere, and the driver asks in each of thousands of connections."""
    if max(types) >= _OWN:
        return await _introspect_types(connection, types, timeout)
    asked = frozenset(types)
    if asked not in _TYPES:
        _TYPES[asked] = await _introspect_types(connection, types, timeout)
    return _TYPES[asked]


asyncpg.Connection._introspect_types = _asked_once


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return scheduler(config, log)


_SMALL = {"shared_buffers": "128MB", "max_connections": "100", "max_wal_size": "1GB", "min_wal_size": "80MB"}
_ROOMY = 4 << 30
_HOUR = timedelta(hours=1)
_SOON = timedelta(seconds=3)


@pytest.fixture(autouse=True)
def _logging_stays_as_it_was() -> Iterator[None]:
    """Whatever a test does to it: those that come after it in its process rely on theirs."""
    configured, root = structlog.get_config(), logging.getLogger()
    handlers, level = [*root.handlers], root.level
    yield
    structlog.configure(**configured)
    root.handlers, root.level = handlers, level


@pytest.fixture
def written() -> io.StringIO:
    """What a worker writes to its log."""
    stream = io.StringIO()
    start_logging(process="worker", stream=stream)
    structlog.configure(cache_logger_on_first_use=False)  # or the loggers of modules would write there for ever
    return stream


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    home = Path(tempfile.mkdtemp(prefix="foliot-test-", dir=_in_memory()))
    home.chmod(0o755)  # so that the server's account gets there too
    # FOLIOT_POSTGRES_BIN runs the same tests on another version of the server.
    chosen = os.environ.get("FOLIOT_POSTGRES_BIN")
    binaries = find_binaries(Path(chosen)) if chosen else None
    with PostgresServer(home, settings=_SMALL, binaries=binaries, variables=shifted()) as running:
        let_in_quickly(running.dsn)
        yield running
    shutil.rmtree(home.joinpath("postgres").resolve(), ignore_errors=True)
    shutil.rmtree(home, ignore_errors=True)


def _in_memory() -> str | None:
    """A place where a disk that is slow to sync does not matter: every test copies a database, and drops it."""
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > _ROOMY else None


@pytest.fixture(scope="session")
def copies(server: PostgresServer) -> Iterator[Copies]:
    with Copies.on(server.dsn, in_memory=_in_memory() is not None) as copies:
        yield copies


@pytest.fixture(scope="session")
def template(copies: Copies) -> str:
    """A migrated database that tests copy."""
    return copies.make("foliot_template", migrate)


@pytest.fixture
def empty_dsn(copies: Copies) -> Iterator[str]:
    """A database without Foliot's schema."""
    with copies.of("template1") as dsn:
        yield dsn


@pytest.fixture
def dsn(copies: Copies, template: str) -> Iterator[str]:
    """A database of this test's own."""
    with copies.of(template) as dsn:
        yield dsn


@pytest.fixture
async def database(dsn: str) -> AsyncIterator[Database]:
    opened = await Database.open(dsn)
    yield opened
    await opened.close()


@pytest.fixture
async def world(database: Database) -> AsyncIterator[World]:
    """A tenant, and short words for what tests do."""
    await _not_just_before_the_hour()
    async with World.begin(database) as begun:
        yield begun


async def _not_just_before_the_hour() -> None:
    """Most schedules of tests fire at full hours or days: none may come up between two that one test makes.

    Waited for once in a run of all tests at most.
    """
    left = (datetime.min.replace(tzinfo=UTC) - datetime.now(UTC)) % _HOUR
    if left < _SOON:
        await asyncio.sleep(left.total_seconds())


@pytest.fixture
async def sealed(database: Database) -> AsyncIterator[World]:
    """A world whose tenant has its payloads encrypted, from the beginning."""
    await _not_just_before_the_hour()
    async with World.begin(database, sealed=True) as begun:
        await begun.encryption.switch(AT_THE_DATABASE, "acme", enabled=True)
        yield begun
