"""What people list, with much behind it: a page costs a page, the tenth time too, as the role that sees one tenant."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import asyncpg
import pytest

from copies import with_name
from foliot.domain.letters import Selection
from foliot.domain.spec import FunctionHandler, Spec
from foliot.kit.postgres import PostgresServer
from foliot.store import reading
from foliot.store.audit import Sought, list_entries
from foliot.store.database import ACTING_FOR, Database
from foliot.store.letters import list_letters

FINISHED = 200_000
"""Runs on record: three in four are the busy tenant's, one in eight is of a job, one in a hundred took two attempts."""
LIVE = 20_000
"""Of its runs that wait for their time, and as many of its timers; those are the newest."""
LETTERS = ENTRIES = 20_000
JOBS = 20_000
"""Of the busy tenant; only a few of them have ever run."""
RECURRING = 50
SPECS = 1_000
PAGE = 50
MIDDLE = FINISHED // 2
BUSY = 1
TIMES = 10
"""A statement that is kept is planned for any arguments from the sixth time on."""
LEFT_ALONE = """
DO $$ DECLARE each regclass; BEGIN
    FOR each IN SELECT oid FROM pg_class WHERE relnamespace = 'foliot'::regnamespace AND relkind = 'r' LOOP
        EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = off)', each);
    END LOOP;
END $$;
"""
"""Whoever tidies up looks at pages too, and would be counted."""
BODY = Spec(handler=FunctionHandler("noop")).body().decode()
FILL = f"""
INSERT INTO tenant (name) VALUES ('acme'), ('globex');
INSERT INTO lane (queue, handler_group) VALUES ('default', 'fn:noop');
INSERT INTO spec (tenant, digest, lane, priority, body)
SELECT 1 + n % 2, sha256(n::text::bytea), 1, 2, '{BODY}' FROM generate_series(1, {SPECS}) AS n;
INSERT INTO history (run, job, scheduled_at, due_at, started_at, finished_at, worker, fence, tenant, spec, attempt,
                     ending, state)
SELECT n, CASE WHEN n % 8 = 0 THEN 1 + n / 8 % {RECURRING} END, now(), now(), now(), now(), 1, n * 2 + try,
       1 + (n % 4 = 3)::int, 2 + n % {SPECS // 2} * 2 - (n % 4 = 3)::int, try,
       CASE WHEN n % 100 = 0 AND try = 1 THEN 2 ELSE 1 END, CASE WHEN n % 100 = 0 AND try = 1 THEN 0 ELSE 4 END
  FROM generate_series(1, {FINISHED}) AS n, generate_series(1, 2) AS try WHERE try = 1 OR n % 100 = 0;
INSERT INTO job (id, tenant, name, spec, kind, exclusive, timing, labels, payload)
SELECT n, 1, 'job ' || n, 2, 0, true, '{{}}', jsonb_build_object('team', (n % 500)::text), '{{}}'
  FROM generate_series(1, {JOBS}) AS n;
INSERT INTO run (id, scheduled_at, due_at, rank, tenant, spec, state, payload)
SELECT {FINISHED} + n, now(), now() + interval '1 day', n, 1, 2 + n % {SPECS // 2} * 2, 0, '{{}}'
  FROM generate_series(1, {LIVE}) AS n;
INSERT INTO timer (id, scheduled_at, due_at, tenant, spec, payload)
SELECT {FINISHED + LIVE} + n, now(), now() + interval '1 day', 1, 2 + n % {SPECS // 2} * 2, '{{}}'
  FROM generate_series(1, {LIVE}) AS n;
INSERT INTO dead_letter (id, scheduled_at, due_at, died_at, fence, tenant, spec, attempt, error, payload)
SELECT n, now(), now(), now(), n, 1, 2 + n % {SPECS // 2} * 2, 1, 'no', '{{}}' FROM generate_series(1, {LETTERS}) AS n;
INSERT INTO audit (tenant, actor, action, subject, outcome)
SELECT 1, 'somebody', 'createJob', 'job_' || n % 1000, 'done' FROM generate_series(1, {ENTRIES}) AS n;
ANALYZE history, job, run, timer, dead_letter, audit;
"""


async def _execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn, server_settings={"search_path": "foliot"})
    await connection.execute(statement)
    await connection.close()


@pytest.fixture(scope="module")
def long_ago(server: PostgresServer, template: str) -> Iterator[str]:
    """A database with a long history, in which nobody has looked at `spec` for its statistics yet."""
    dsn = with_name(server.dsn, "long_ago")
    asyncio.run(_execute(server.dsn, f"CREATE DATABASE long_ago TEMPLATE {template}"))
    asyncio.run(_execute(dsn, LEFT_ALONE + FILL))
    yield dsn
    asyncio.run(_execute(server.dsn, "DROP DATABASE long_ago WITH (FORCE)"))


@pytest.fixture
async def database(long_ago: str) -> AsyncIterator[Database]:
    """As requests of the busy tenant are answered, on one connection."""
    whole = await Database.open(long_ago, size=1)
    guarded = await whole.guarded(size=1)
    assert guarded is not None
    acting = ACTING_FOR.set(BUSY)
    yield guarded
    ACTING_FOR.reset(acting)
    await guarded.close()
    await whole.close()


class Listed(NamedTuple):
    ask: Callable[[Database], Awaitable[Sequence[Any]]]
    most: int
    """Pages of the database that it may look at; read from end to end, its table has more."""
    found: int = PAGE


def runs(most: int, **sought: Any) -> Listed:
    return Listed(lambda base: reading.list_runs(base, BUSY, limit=PAGE, **sought), most)


def attempts(most: int, found: int, **sought: Any) -> Listed:
    return Listed(lambda base: reading.list_attempts(base, BUSY, limit=PAGE, **sought), most, found)


def jobs(most: int, found: int = PAGE, **sought: Any) -> Listed:
    return Listed(lambda base: reading.list_jobs(base, BUSY, limit=PAGE, **sought), most, found)


def entries(most: int, found: int = PAGE, **sought: Any) -> Listed:
    wanted = Sought(since=datetime(2026, 1, 1, tzinfo=UTC), until=datetime(9999, 1, 1, tzinfo=UTC), **sought)
    return Listed(lambda base: list_entries(base, BUSY, wanted, below=reading.HIGHEST, limit=PAGE), most, found)


LISTS = {
    "runs, the newest": runs(2_000),
    "runs, behind the timers": runs(2_000, below=FINISHED + LIVE),
    "runs, behind what lives": runs(300, below=FINISHED),
    "runs, in the middle": runs(300, below=MIDDLE),
    "runs since": runs(2_000, above=MIDDLE),
    "runs of a job": runs(600, job=7),
    "attempts of a run": attempts(300, 2, run=MIDDLE),
    "attempts of a job": attempts(300, PAGE, job=7),
    "jobs, the newest": jobs(2_000),
    "jobs, in the middle": jobs(2_000, below=JOBS // 2),
    "jobs of a status": jobs(2_000, status="pending"),
    "jobs of a kind": jobs(2_000, kind=0),
    "jobs by name": jobs(200, 1, name="job 77"),
    "jobs by label": jobs(2_000, JOBS // 500, labels={"team": "77"}),
    "dead letters": Listed(
        lambda base: list_letters(base, BUSY, Selection(), below=reading.HIGHEST, limit=PAGE), most=400
    ),
    "audit entries": entries(200),
    "audit entries of a job": entries(200, ENTRIES // 1000, subject="job_7"),
}
COUNT = """
SELECT pg_stat_force_next_flush(),
       (SELECT sum(blks_hit + blks_read) FROM pg_stat_database WHERE datname = current_database())
"""


async def _pages(database: Database) -> int:
    """Looked at by now in this database, in memory or not."""
    async with database.connection() as connection:
        await connection.fetchrow(COUNT)
        return int((await connection.fetchrow(COUNT))[1])


@pytest.mark.parametrize("name", LISTS)
async def test_a_page_costs_a_page_however_much_lies_behind_it(database: Database, name: str):
    listed = LISTS[name]
    for _ in range(TIMES):
        assert len(await listed.ask(database)) == listed.found
    before = await _pages(database)
    await listed.ask(database)
    spent = await _pages(database) - before
    assert spent <= listed.most
