"""The test bed: a database of the bench's own, and the processes of the product around it."""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from foliot.bench.produce import TENANTS, tenant_name
from foliot.domain.errors import FoliotError
from foliot.kit.postgres import PostgresServer
from foliot.services.tenants import Tenants
from foliot.store.database import Connection, Database
from foliot.store.migrate import migrate


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

    async def value(self, query: str, *arguments: Any) -> Any:
        async with self.database.connection() as connection:
            return await connection.fetchval(query, *arguments)

    async def tool(self, module: str, *arguments: object) -> dict[str, Any]:
        """Run a part of the bench in a process of its own and return what it says."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", module, self.dsn, *map(str, arguments), stdout=asyncio.subprocess.PIPE
        )
        said, _ = await process.communicate()
        if process.returncode:
            raise FoliotError(f"{module} {' '.join(map(str, arguments))} failed", "its error stands above")
        return msgspec.json.decode(said)  # type: ignore[no-any-return]

    @asynccontextmanager
    async def process(self, *arguments: str) -> AsyncIterator[int]:
        """A process of the product, just as `foliot …` starts it; gives its pid."""
        environment = {
            **os.environ,
            "FOLIOT_DATABASE_URL": self.dsn,
            "FOLIOT_LOG_LEVEL": "warning",
            "FOLIOT_BENCH_NOTES": str(self.notes),
        }
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "foliot", *arguments, env=environment)
        try:
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            await process.wait()

    async def settled(self) -> int:
        return await self.value("SELECT count(*) FROM history WHERE state = 4")  # type: ignore[no-any-return]

    async def until_empty(self, patience: float = 600) -> None:
        """Wait until every run has left the hot table."""
        async with asyncio.timeout(patience):
            while await self.value("SELECT EXISTS (SELECT FROM run WHERE id > 0)"):  # noqa: ASYNC110 - no event to await
                await asyncio.sleep(0.05)

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
        await connection.execute("TRUNCATE run, ready, claim, timer, history, dead_letter, flow")
        await connection.execute("SELECT lay_ballast()")
        await connection.execute("UPDATE lane SET v = 0")
    await connection.execute("CHECKPOINT")
