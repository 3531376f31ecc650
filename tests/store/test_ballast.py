"""Ballast keeps the planner from believing that a table is empty, and so the plans of the hot statements upright."""

import asyncpg

COUNTED = "SELECT relname, reltuples FROM pg_class WHERE relname IN ('run', 'ready', 'timer', 'node') ORDER BY 1"
FULL = [("node", 10_000), ("ready", 10_000), ("run", 10_000), ("timer", 10_000)]


async def test_a_new_database_knows_of_its_ballast(dsn: str):
    connection = await asyncpg.connect(dsn, server_settings={"search_path": "foliot"})
    assert [tuple(row) for row in await connection.fetch(COUNTED)] == FULL
    await connection.close()


async def test_a_vacuum_that_comes_by_while_ballast_is_laid_leaves_no_wrong_count(dsn: str):
    laying, vacuum = [await asyncpg.connect(dsn, server_settings={"search_path": "foliot"}) for _ in range(2)]
    await laying.execute("TRUNCATE run, ready, timer, node")
    async with laying.transaction():
        await laying.execute("INSERT INTO ready (lane, rank, run) VALUES (0, 0, 0)")
        await vacuum.execute("VACUUM ready")  # finds a page, and nothing on it
        assert await vacuum.fetchval("SELECT reltuples FROM pg_class WHERE relname = 'ready'") == 0
        await laying.execute("SELECT lay_ballast()")
    assert [tuple(row) for row in await laying.fetch(COUNTED)] == [FULL[0], ("ready", 10_001), *FULL[2:]]
    for connection in (laying, vacuum):
        await connection.close()
