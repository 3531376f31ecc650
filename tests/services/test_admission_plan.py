"""What those read who join or leave a line: nothing of other lines, whatever was known when they planned."""

import pytest

from foliot.domain.limits import Concurrency
from foliot.domain.spec import FunctionHandler, Spec
from foliot.store.database import Line
from foliot.store.submission import NewRun
from world import World

KEYED = Spec(handler=FunctionHandler("noop"), concurrency=Concurrency(1, "payload.user"))
OTHERS = 2_000
BATCH = 100
FEW = 10 * BATCH
"""A seat and its line are looked at some times each; all lines for each run would be two hundred thousand rows."""
EMPTY = "SELECT enter('{0}'), lock_ties('{0}'), untie('{0}', '{}')"
READ = """
SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int FROM pg_stat_xact_user_tables
 WHERE relname IN ('seat', 'slot')
"""


@pytest.fixture
async def unaware(world: World, dsn: str):
    """A line that planned its statements when nobody was under a limit, and everybody knew; nobody tells it since."""
    line = Line(dsn)
    connection = await line.connection()
    for table in ("seat", "slot"):
        await connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        await connection.execute(f"VACUUM ANALYZE {table}")
    await connection.fetch(EMPTY)
    yield line
    await line.close()


async def _lined_up(world: World) -> list[int]:
    """Many runs, each under a key of its own; the last of them."""
    ref = await world.specs.intern(world.tenant, KEYED)
    runs = [NewRun(ref, b"{}", limit_key=key) for key in range(OTHERS)]
    return list((await world.submitter.submit(runs)).ids)[-BATCH:]


async def _read(line: Line, query: str, ids: list[int]) -> int:
    async with line.borrow(atomic=True) as connection:
        before = await connection.fetchval(READ)  # of transactions before this, until somebody has counted them
        await connection.fetch(query, ids)
        return await connection.fetchval(READ) - before  # type: ignore[no-any-return]


async def test_who_comes_in_reads_the_lines_it_joins(world: World, unaware: Line):
    ids = await _lined_up(world)
    await world.sql("DELETE FROM ready WHERE run = ANY ($1)", ids)
    await world.sql("DELETE FROM seat WHERE run = ANY ($1)", ids)
    await world.sql("UPDATE run SET state = 2 WHERE id = ANY ($1)", ids)
    assert 0 < await _read(unaware, "SELECT enter($1::bigint[])", ids) < FEW
    assert await world.value("SELECT count(*) FROM ready WHERE run = ANY ($1)", ids) == BATCH


async def test_who_leaves_reads_the_lines_it_was_in(world: World, unaware: Line):
    ids = await _lined_up(world)
    await world.sql("DELETE FROM ready WHERE run = ANY ($1)", ids)
    await world.sql("DELETE FROM run WHERE id = ANY ($1)", ids)
    assert 0 < await _read(unaware, "SELECT untie($1::bigint[], lock_ties($1::bigint[]))", ids) < FEW
    assert await world.value("SELECT count(*) FROM seat") == OTHERS - BATCH
