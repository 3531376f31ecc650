"""Migrations: each applied once, whole or not at all, whoever starts at the same moment."""

import asyncio

import asyncpg
import pytest

from foliot.store.migrate import NO_TRANSACTION, Migration, MigrationError, migrate, pending, shipped

ONE = Migration("0001_one.sql", "CREATE TABLE one (id int);")
TWO = Migration("0002_two.sql", "CREATE TABLE two (id int); CREATE INDEX two_id ON two (id);")
BROKEN = Migration("0002_broken.sql", "CREATE TABLE half (id int); SELECT 1/0;")
CONCURRENT = Migration(
    "0002_index.sql",
    f"{NO_TRANSACTION}\nCREATE INDEX CONCURRENTLY IF NOT EXISTS one_id ON one (id);\n"
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS one_other ON one (id);\n",
)


@pytest.fixture
async def connection(empty_dsn: str):
    opened = await asyncpg.connect(empty_dsn, server_settings={"search_path": "foliot"})
    yield opened
    await opened.close()


async def _relations(connection, *names: str) -> list[bool]:
    return [await connection.fetchval("SELECT to_regclass($1) IS NOT NULL", name) for name in names]


async def test_a_migration_is_applied_once(empty_dsn: str, connection):
    assert await migrate(empty_dsn, [ONE]) == [ONE.name]
    assert await migrate(empty_dsn, [ONE]) == []
    assert await migrate(empty_dsn, [ONE, TWO]) == [TWO.name]
    assert await _relations(connection, "one", "two", "two_id") == [True] * 3


async def test_a_migration_that_was_changed_after_the_fact_is_refused(empty_dsn: str, connection):
    await migrate(empty_dsn, [ONE])
    with pytest.raises(MigrationError, match=ONE.name):
        await migrate(empty_dsn, [ONE._replace(sql=ONE.sql + " "), TWO])
    assert await _relations(connection, "two") == [False]


async def test_a_migration_that_fails_leaves_nothing_and_the_ones_before_it_stand(empty_dsn: str, connection):
    with pytest.raises(asyncpg.DivisionByZeroError):
        await migrate(empty_dsn, [ONE, BROKEN])
    assert await _relations(connection, "one", "half") == [True, False]
    mended = BROKEN._replace(sql="CREATE TABLE half (id int);")
    assert await migrate(empty_dsn, [ONE, mended]) == [mended.name]


async def test_processes_that_start_at_once_apply_each_migration_once(empty_dsn: str, connection):
    applied = await asyncio.gather(*[migrate(empty_dsn, [ONE, TWO]) for _ in range(4)])
    assert sorted(applied, key=len) == [[], [], [], [ONE.name, TWO.name]]


async def test_a_file_outside_a_transaction_runs_statement_by_statement(empty_dsn: str, connection):
    assert await migrate(empty_dsn, [ONE, CONCURRENT]) == [ONE.name, CONCURRENT.name]
    assert await _relations(connection, "one_id", "one_other") == [True, True]


async def test_processes_that_wait_do_not_deadlock_with_an_index_being_built(empty_dsn: str, connection):
    """CREATE INDEX CONCURRENTLY waits for every statement under way, so nobody may wait for us in one."""
    applied = await asyncio.gather(*[migrate(empty_dsn, [ONE, CONCURRENT]) for _ in range(4)])
    assert sorted(applied, key=len) == [[], [], [], [ONE.name, CONCURRENT.name]]


async def test_what_is_pending_is_told_before_and_after(empty_dsn: str, connection):
    names = [migration.name for migration in shipped()]
    assert await pending(connection) == names
    assert await migrate(empty_dsn) == names
    assert await pending(connection) == []
    await connection.execute("UPDATE migration SET checksum = 'other'")
    with pytest.raises(MigrationError):
        await pending(connection)


async def test_a_migration_that_finds_a_table_locked_gives_up_instead_of_holding_up_everybody(
    empty_dsn: str, connection
):
    await migrate(empty_dsn, [ONE])
    slow = Migration("0002_slow.sql", "SET LOCAL lock_timeout = '50ms'; ALTER TABLE one ADD COLUMN x int;")
    async with connection.transaction():
        await connection.execute("LOCK TABLE one IN ACCESS SHARE MODE")
        with pytest.raises(asyncpg.LockNotAvailableError):
            await migrate(empty_dsn, [ONE, slow])


def test_shipped_migrations_are_numbered_without_a_gap():
    numbers = [int(migration.name[:4]) for migration in shipped()]
    assert numbers == list(range(1, len(numbers) + 1))


async def test_what_older_releases_need_is_taken_away_only_when_somebody_says_so(empty_dsn: str, connection):
    less = Migration("0002_less.contract.sql", "DROP TABLE one;")
    assert await migrate(empty_dsn, [ONE, less]) == [ONE.name]
    assert await _relations(connection, "one") == [True]
    assert await migrate(empty_dsn, [ONE, less], contract=True) == [less.name]
    assert await _relations(connection, "one") == [False]
