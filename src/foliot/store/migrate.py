"""Brings a database to the schema of this release: numbered SQL files, each applied once, checked ever after.

Expand, then contract: most files only add, so that the release before goes on working beside this one. What only
older releases need is taken away by a file called `….contract.sql`, applied when somebody says that none of them runs.
"""

import asyncio
import hashlib
from collections.abc import Callable
from importlib.resources import files
from typing import Final, NamedTuple

import asyncpg

from foliot.domain.errors import FoliotError

_BOOKS: Final = """
CREATE SCHEMA IF NOT EXISTS foliot;
CREATE TABLE IF NOT EXISTS foliot.migration (
    name        text PRIMARY KEY,
    checksum    text NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT clock_timestamp()
)"""
# Any number will do as long as nobody else in this database uses it.
_LOCK: Final = 0x666F6C696F74
NO_TRANSACTION: Final = "-- foliot: no transaction"
"""First line of a file whose statements refuse to run inside one (CREATE INDEX CONCURRENTLY); it can be re-run."""


class MigrationError(FoliotError):
    """The database's schema and this release do not fit together."""


class Migration(NamedTuple):
    name: str
    sql: str

    @property
    def contracts(self) -> bool:
        """Whether it takes away what the release before still needs."""
        return self.name.endswith(".contract.sql")

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def shipped() -> list[Migration]:
    """The migrations of this release, in order."""
    folder = files("foliot.store").joinpath("migrations")
    found = [path for path in folder.iterdir() if path.name.endswith(".sql")]
    return [
        Migration(path.name, path.read_text(encoding="utf-8")) for path in sorted(found, key=lambda path: path.name)
    ]


def _tell_nobody(name: str, number: int, count: int) -> None:
    """Nobody watches."""


async def migrate(
    dsn: str,
    migrations: list[Migration] | None = None,
    *,
    contract: bool = False,
    tell: Callable[[str, int, int], None] = _tell_nobody,
) -> list[str]:
    """Apply what is missing and return its names. Processes that start at once wait for each other.

    With `contract` also what older releases would miss: only when none of them runs any more. `tell` hears which of how
    many comes now, before it begins: with a large database one may take its time.
    """
    wanted = shipped() if migrations is None else migrations
    connection = await asyncpg.connect(dsn, timeout=10, server_settings={"search_path": "foliot"})
    try:
        # Session-level, so that it also covers files that run outside a transaction. A lock that is lost with its
        # connection frees the others; each file commits together with its entry, so they find it half done never.
        # Asked for again and again instead of waited for: a statement that waits keeps its snapshot, for the end of
        # which CREATE INDEX CONCURRENTLY would wait in turn.
        while not await connection.fetchval("SELECT pg_try_advisory_lock($1)", _LOCK):  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0.05)
        await connection.execute(_BOOKS)
        applied = dict(await connection.fetch("SELECT name, checksum FROM migration"))
        _check(applied, wanted)
        missing = [each for each in wanted if each.name not in applied and (contract or not each.contracts)]
        for number, migration in enumerate(missing, 1):
            tell(migration.name, number, len(missing))
            await _apply(connection, migration)
        if await connection.fetchval("SELECT to_regprocedure('foliot.guard_tables()') IS NOT NULL"):
            await connection.execute("SELECT guard_tables()")  # what is new belongs to tenants, too
        return [migration.name for migration in missing]
    finally:
        await connection.close()


async def pending(connection: asyncpg.Connection) -> list[str]:
    """Names of the migrations that this release needs and the database lacks."""
    needed = [migration for migration in shipped() if not migration.contracts]
    if not await connection.fetchval("SELECT to_regclass('foliot.migration') IS NOT NULL"):
        return [migration.name for migration in needed]
    applied = dict(await connection.fetch("SELECT name, checksum FROM foliot.migration"))
    _check(applied, shipped())
    return [migration.name for migration in needed if migration.name not in applied]


def _check(applied: dict[str, str], wanted: list[Migration]) -> None:
    for migration in wanted:
        if applied.get(migration.name, migration.checksum) != migration.checksum:
            raise MigrationError(
                f"migration {migration.name} was changed after it had been applied to this database",
                "restore the released file; a change of the schema is a new migration",
            )


async def _apply(connection: asyncpg.Connection, migration: Migration) -> None:
    book = "INSERT INTO foliot.migration (name, checksum) VALUES ($1, $2)"
    if migration.sql.startswith(NO_TRANSACTION):
        for statement in filter(str.strip, migration.sql.split(";\n")):
            await connection.execute(statement)
        await connection.execute(book, migration.name, migration.checksum)
        return
    async with connection.transaction():
        # A migration that waits for a lock holds up everyone behind it: better to fail and be started again.
        await connection.execute("SET LOCAL lock_timeout = '5s'")
        await connection.execute(migration.sql)
        await connection.execute(book, migration.name, migration.checksum)
