"""The test bed: a database of the bench's own, and the processes of the product around it."""

import asyncio
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import msgspec

from foliot.bench.hearing import heard
from foliot.bench.produce import TENANTS, tenant_name
from foliot.bench.watch import Watch, parent
from foliot.domain.errors import FoliotError
from foliot.kit.postgres import PostgresServer
from foliot.services.tenants import Tenants
from foliot.store.database import Connection, Database, connect
from foliot.store.migrate import migrate

APP: Final = "foliot.bench.app:worker"


@contextmanager
def server() -> Iterator[PostgresServer]:
    """An embedded PostgreSQL as `foliot up` starts it, in a folder that goes away."""
    home = Path(tempfile.mkdtemp(prefix="foliot-bench-"))
    try:
        with PostgresServer(home) as running:
            yield running
    finally:
        shutil.rmtree((home / "postgres").resolve(), ignore_errors=True)
        shutil.rmtree(home, ignore_errors=True)


class Bed:
    """One migrated database with the bench's tenants, and a hand on the processes."""

    def __init__(self, dsn: str, database: Database, notes: Path) -> None:
        self.dsn = dsn
        self.database = database
        self.notes = notes

    @classmethod
    @asynccontextmanager
    async def made(cls, dsn: str) -> AsyncIterator["Bed"]:
        await migrate(dsn)
        async with cls.opened(dsn) as bed:
            for number in range(TENANTS):
                await Tenants(bed.database).create(tenant_name(number))
            yield bed

    @classmethod
    @asynccontextmanager
    async def opened(cls, dsn: str) -> AsyncIterator["Bed"]:
        """One that was made before."""
        database = await Database.open(dsn, size=4)
        folder = Path(tempfile.mkdtemp(prefix="foliot-notes-"))
        try:
            yield cls(dsn, database, folder / "notes")
        finally:
            await database.close()
            shutil.rmtree(folder, ignore_errors=True)

    @asynccontextmanager
    async def fresh(self, name: str) -> AsyncIterator["Bed"]:
        """Another database on the same server, migrated just now; gone afterwards."""
        drop = f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"
        await self.plainly(drop, f"CREATE DATABASE {name}")
        try:
            async with Bed.made(urlunsplit(urlsplit(self.dsn)._replace(path=f"/{name}"))) as bed:
                yield bed
        finally:
            await self.plainly(drop)

    async def value(self, query: str, *arguments: Any) -> Any:
        async with self.database.connection() as connection:
            return await connection.fetchval(query, *arguments)

    async def rows(self, query: str, *arguments: Any) -> list[Any]:
        async with self.database.connection() as connection:
            return await connection.fetch(query, *arguments)  # type: ignore[no-any-return]

    async def counted(self, query: str, *arguments: Any) -> Any:
        """A value that it may take long to find: an hour's history has 36 million rows."""
        connection = await connect(self.dsn, statement_timeout="0")
        try:
            return await connection.fetchval(query, *arguments)
        finally:
            await connection.close()

    async def plainly(self, *statements: str) -> None:
        """Statements that may take long, or stand in no transaction."""
        connection = await connect(self.dsn, statement_timeout="0")
        try:
            for statement in statements:
                await connection.execute(statement, timeout=3_600)
        finally:
            await connection.close()

    async def watch(self, **named: int) -> Watch:
        """Count from now on what these processes and the server use."""
        return Watch(parent(await self.value("SELECT pg_backend_pid()")), **named)

    async def tool(
        self, module: str, *arguments: object, started: Callable[[int], None] = lambda _: None
    ) -> dict[str, Any]:
        """Run a part of the bench in a process of its own and return what it says; `started` is told its pid."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", module, self.dsn, *map(str, arguments), stdout=asyncio.subprocess.PIPE
        )
        said = await heard(process, started)
        if process.returncode:
            raise FoliotError(f"{module} {' '.join(map(str, arguments))} failed", "its error stands above")
        return msgspec.json.decode(said)  # type: ignore[no-any-return]

    @asynccontextmanager
    async def process(self, *arguments: str, module: str = "foliot", **variables: str) -> AsyncIterator[int]:
        """A process of the product, just as `foliot …` starts it; gives its pid."""
        environment = {
            **os.environ,
            "FOLIOT_DATABASE_URL": self.dsn,
            "FOLIOT_LOG_LEVEL": "warning",
            "FOLIOT_HTTP_ALLOW": "loopback",
            "FOLIOT_BENCH_NOTES": str(self.notes),
            **variables,
        }
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", module, *arguments, env=environment)
        try:
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            await process.wait()

    async def until_workers(self, count: int = 1, patience: float = 60) -> None:
        """Wait until so many workers are there; processes take a second to start, and that is not measured."""
        async with asyncio.timeout(patience):
            while await self.value("SELECT count(*) FROM worker WHERE state = 0") < count:  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.05)

    async def settled(self) -> int:
        return await self.counted("SELECT count(*) FROM history WHERE state = 4")  # type: ignore[no-any-return]

    async def until_empty(self, patience: float = 600) -> None:
        """Wait until every run has left the hot table."""
        async with asyncio.timeout(patience):
            # Seldom: each look walks over what has just been deleted, beside those that work.
            while await self.value("SELECT EXISTS (SELECT FROM run WHERE id > 0)"):  # noqa: ASYNC110 - no event to await
                await asyncio.sleep(0.2)

    def noted(self) -> list[tuple[float, float, float]]:
        """What handlers wrote down: when the run was handed in, for which instant, and when it began."""
        lines = self.notes.read_text(encoding="utf-8").splitlines() if self.notes.exists() else []
        return [(float(sent), float(at), float(began)) for sent, at, began in map(str.split, lines)]

    async def until_noted(self, count: int, patience: float = 60) -> None:
        """Wait until so many handlers have written down that they began."""
        async with asyncio.timeout(patience):
            while len(self.noted()) < count:  # noqa: ASYNC110 - the event would be in another process
                await asyncio.sleep(0.1)

    async def wal(self) -> int:
        return int(await self.value("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))

    async def wipe(self) -> None:
        async with self.database.connection() as connection:
            await wipe(connection)


async def wipe(connection: Connection) -> None:
    """Between measurements: as if the tables had just been made.

    In one transaction, as they were made: an autovacuum that looks between the two statements notes pages without rows,
    and until it looks again a claim walks all of `run` for each of its runs (5,040 ms instead of 29).
    """
    async with connection.transaction():
        await connection.execute(
            "TRUNCATE run, ready, claim, timer, history, dead_letter, flow, seat, slot, knock, node, graph_run,"
            " graph_shape"
        )
        await connection.execute("SELECT lay_ballast()")
        await connection.execute("UPDATE lane SET v = 0")
    await connection.execute("CHECKPOINT")


def free_port() -> int:
    """One that nobody listens on just now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
