"""The two servers that peers keep their runs in: ours, embedded, and Redis with its log on disk."""

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final, Protocol

import asyncpg

from bench.peers.installing import CannotInstallError, redis_server

SHOWN: Final = (
    "server_version",
    "shared_buffers",
    "max_wal_size",
    "synchronous_commit",
    "fsync",
    "autovacuum_naptime",
)


class Store(Protocol):
    """Where runs are kept."""

    def fresh(self) -> contextlib.AbstractAsyncContextManager[str]:
        """Give the address of an empty place of one's own, and clear it afterwards."""
        ...


class Postgres:
    """Databases on the embedded server, each made for one cell."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._numbers = count(1)

    @asynccontextmanager
    async def fresh(self) -> AsyncIterator[str]:
        name = f"peers_{next(self._numbers)}"
        await execute(self._dsn, f'CREATE DATABASE "{name}"')
        try:
            yield self._dsn.replace("/foliot?", f"/{name}?", 1)
        finally:
            await execute(self._dsn, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            await execute(self._dsn, "CHECKPOINT")

    async def settings(self) -> dict[str, str]:
        return {name: str(await value(self._dsn, "SELECT current_setting($1)", name)) for name in SHOWN}


class Redis:
    """A Redis of our own on loopback: append-only file, flushed every second, no snapshots."""

    def __init__(self, port: int) -> None:
        self._port = port

    @asynccontextmanager
    async def fresh(self) -> AsyncIterator[str]:
        await self._command("FLUSHALL")
        yield f"redis://127.0.0.1:{self._port}/0"

    async def version(self) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(b"INFO server\r\n")
        await asyncio.wait_for(reader.readuntil(b"redis_version:"), 60)
        version = await asyncio.wait_for(reader.readline(), 60)
        writer.close()
        return version.decode().strip()

    async def _command(self, command: str) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(f"{command}\r\n".encode())
        answer = await asyncio.wait_for(reader.readline(), 60)
        writer.close()
        return answer.decode().strip()


@contextmanager
def redis(cache: Path) -> Iterator[Redis]:
    program, libraries = redis_server(cache)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="foliot-peers-redis-"))
    options = {"bind": "127.0.0.1", "port": str(port), "dir": str(folder), "daemonize": "no", "save": ""}
    options |= {"appendonly": "yes", "appendfsync": "everysec"}
    command = [str(program), *(word for name, text in options.items() for word in (f"--{name}", text))]
    log = (folder / "log").open("wb")
    process = subprocess.Popen(command, env={**os.environ, **libraries}, stdout=log, stderr=log)  # noqa: S603 - ours
    try:
        _wait_for(port, process, folder / "log")
        yield Redis(port)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        log.close()
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + 20
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise CannotInstallError(f"redis-server does not answer: {log.read_text()[-300:]}")


async def execute(dsn: str, query: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(query)
    finally:
        await connection.close()


async def value(dsn: str, query: str, *arguments: Any) -> Any:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(query, *arguments)
    finally:
        await connection.close()


async def log_position(dsn: str) -> int:
    """Bytes that the server has written ahead so far."""
    return int(await value(dsn, "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))


async def dead_rows(dsn: str) -> int:
    """Rows that no one sees any more and that vacuum has not removed, in all tables of this database."""
    await asyncio.sleep(1.2)  # a session tells the statistics at most once a second
    return int(await value(dsn, "SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables"))


@asynccontextmanager
async def held_transaction(dsn: str) -> AsyncIterator[None]:
    """A forgotten transaction: it has its number and its snapshot, so vacuum may remove nothing that died since."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("SET idle_in_transaction_session_timeout = 0")
        await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await connection.fetchval("SELECT pg_current_xact_id()::text")
        yield
        if not await connection.fetchval("SELECT pg_current_xact_id_if_assigned() IS NOT NULL"):
            raise RuntimeError("the transaction that was to be held has ended")
    finally:
        await connection.close()
