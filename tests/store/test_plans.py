"""The hot statements with a million runs present: the right index, no table read from end to end, few rows read."""

import asyncio
import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from copies import with_name
from foliot.domain.gates import COUNTED
from foliot.domain.misfire import GRACE
from foliot.kit.postgres import PostgresServer
from foliot.store.database import Line
from foliot.store.statements import SQL
from plans import explain

pytestmark = pytest.mark.xdist_group("a million runs")  # one of these databases is enough

TABLES = ("run", "ready", "timer", "claim")
RUNS = 1_000_000
BATCH = 200
CLAIMED = 8_000
"""Runs in the hands of ten workers, two of them dead; 80 a claim."""
YOUNG = 20_000
"""Schedules that are not due, keys and past subscriptions that nobody removes yet."""
FILL = f"""
INSERT INTO tenant (name) VALUES ('acme');
INSERT INTO lane (queue, handler_group) VALUES ('default', 'fn:noop'), ('default', 'fn:other');
INSERT INTO spec (tenant, digest, lane, priority, body)
SELECT 1, decode(repeat(lpad(to_hex(n), 2, '0'), 32), 'hex'), n, 2, '{{}}' FROM generate_series(1, 2) AS n;
INSERT INTO worker (id, name, state)
SELECT n, n::text, CASE WHEN n > 8 THEN 2 ELSE 0 END FROM generate_series(1, 10) AS n;
INSERT INTO run (id, scheduled_at, due_at, rank, tenant, spec, state, payload)
SELECT n, now(), now() + interval '1 day' + n * interval '1 ms', n * 16384::bigint, 1, 1 + n % 2,
       CASE WHEN n > {RUNS} * 0.9 THEN 0 ELSE 1 END, '{{}}'
  FROM generate_series(1, {RUNS}) AS n;
INSERT INTO ready (lane, rank, run)
SELECT spec, rank, id FROM run WHERE state = 1 AND id > {CLAIMED};
INSERT INTO timer (id, scheduled_at, due_at, tenant, spec, payload)
SELECT 2000000 + n, now(), now() + interval '1 day' + n * interval '1 s', 1, 1, '{{}}'
  FROM generate_series(1, 100000) AS n;
INSERT INTO claim (worker, number, runs)
SELECT 1 + batch % 10, batch, array_agg(id ORDER BY id)
  FROM (SELECT id, id / 80 AS batch FROM run WHERE id BETWEEN 1 AND {CLAIMED}) AS held GROUP BY batch;
INSERT INTO schedule (tenant, key, cursor, next_at)
SELECT 1, n::text, now(), now() + interval '1 day' + n * interval '1 s' FROM generate_series(1, {YOUNG}) AS n;
INSERT INTO idempotency (tenant, key, leaf, fingerprint, answer)
SELECT 1, n, 1 + n % 2, '', '' FROM generate_series(1, {YOUNG}) AS n;
UPDATE key_leaf SET closed_at = now(); INSERT INTO key_leaf (leaf) VALUES (2);
INSERT INTO past_subscription SELECT 1, n, now(), now(), 1, false FROM generate_series(1, {YOUNG}) AS n;
ANALYZE schedule, past_subscription;
"""


async def _execute(dsn: str, *statements: str) -> None:
    connection = await asyncpg.connect(dsn, server_settings={"search_path": "foliot"})
    for statement in statements:
        await connection.execute(statement)
    await connection.close()


@pytest.fixture(scope="module")
def a_million(server: PostgresServer, template: str) -> Iterator[str]:
    """A database with a million runs, whose statistics were taken when it was empty."""
    dsn = with_name(server.dsn, "a_million")
    stale = [f"ANALYZE {table}; ALTER TABLE {table} SET (autovacuum_enabled = off)" for table in TABLES]
    asyncio.run(_execute(server.dsn, f"CREATE DATABASE a_million TEMPLATE {template}"))
    asyncio.run(_execute(dsn, *stale, FILL))
    yield dsn
    asyncio.run(_execute(server.dsn, "DROP DATABASE a_million WITH (FORCE)"))


@pytest.fixture(scope="module", params=["statistics of an empty table", "fresh statistics"])
def full(request: pytest.FixtureRequest, a_million: str) -> str:
    if request.param == "fresh statistics":  # the second of the two: there is no way back
        asyncio.run(_execute(a_million, f"ANALYZE {', '.join(TABLES)}"))
    return a_million


@pytest.fixture
async def line(full: str):
    opened = Line(full)
    yield opened
    await opened.close()


@pytest.fixture
async def calm(full: str):
    """A line as the scheduler fires on, and keeps house."""
    opened = Line(full, hot=False)
    yield opened
    await opened.close()


_NUMBERS = itertools.count(10_000)


async def test_a_claim_pops_the_head_of_the_order(line: Line):
    plan = await explain(line, "claim", 1, next(_NUMBERS), [1, 2], [0, 0], BATCH, [BATCH, BATCH])
    assert plan.whole_scans() == set()
    assert plan.indexes("ready") == {"ready_order"}
    assert plan.indexes("run") == {"run_pkey"}
    assert plan.rows_read("ready") <= 3 * BATCH
    assert plan.rows_read("run") <= 3 * BATCH


async def test_a_claim_that_waits_reads_no_more_than_the_end_of_an_index_with_each_look(line: Line):
    beyond = RUNS * 16384
    for _ in range(2):  # the session learns of the tables
        arguments = (1, next(_NUMBERS), [1, 2], [beyond, beyond], BATCH, [BATCH, BATCH], timedelta())
        plan = await explain(line, "claim_when_ready", *arguments)
    assert plan.pages_read < 30


SOME = list(range(0, 256, 3))
"""The shards that one of three schedulers looks after."""


async def test_due_runs_are_found_at_the_head_of_their_index(line: Line):
    plan = await explain(line, "due_runs", datetime(2100, 1, 1, tzinfo=UTC), BATCH, None, None, None)
    assert plan.whole_scans() == set()
    assert plan.indexes("run") == {"run_due"}
    assert plan.rows_read("run") <= 3 * BATCH


async def test_due_timers_are_found_at_the_head_of_their_index(line: Line):
    plan = await explain(line, "due_timers", datetime(2100, 1, 1, tzinfo=UTC), BATCH, None, None, None)
    assert plan.whole_scans() == set()
    assert plan.indexes("timer") == {"timer_due"}
    assert plan.rows_read("timer") <= 3 * BATCH


@pytest.mark.parametrize(
    ("statement", "table", "index"), [("due_runs", "run", "run_due"), ("due_timers", "timer", "timer_due")]
)
async def test_of_what_is_due_in_others_shards_only_what_lies_between_is_read(
    line: Line, statement: str, table: str, index: str
):
    plan = await explain(line, statement, datetime(2100, 1, 1, tzinfo=UTC), BATCH, SOME, None, None)
    assert plan.whole_scans() == set()
    assert plan.indexes(table) == {index}
    assert plan.rows_read(table) <= 5 * BATCH


async def test_due_schedules_of_ones_shards_are_found_at_the_head_of_their_index(calm: Line):
    plan = await explain(calm, "due_schedules", datetime(2100, 1, 1, tzinfo=UTC), BATCH, GRACE, BATCH, SOME, None, None)
    assert plan.indexes("schedule") == {"schedule_due"}
    assert plan.rows_read("schedule") <= 4 * BATCH
    plan = await explain(calm, "next_fire", SOME, None)
    assert plan.indexes("schedule") == {"schedule_due"}
    assert plan.rows_read("schedule") <= 20


async def test_what_lies_below_the_floor_is_not_read(line: Line, calm: Line):
    far, later = datetime(2100, 1, 1, tzinfo=UTC), datetime(2099, 12, 31, tzinfo=UTC)
    plan = await explain(line, "due_timers", far, BATCH, None, None, later)
    assert plan.rows_read("timer") == 0
    plan = await explain(line, "due_runs", far, BATCH, None, None, later)
    assert plan.rows_read("run") == 0
    plan = await explain(calm, "due_schedules", far, BATCH, GRACE, BATCH, None, None, later)
    assert plan.rows_read("schedule") == 0


async def test_a_floor_from_the_future_is_none(line: Line, calm: Line):
    far, beyond = datetime(2100, 1, 1, tzinfo=UTC), datetime(2100, 1, 2, tzinfo=UTC)
    assert (await explain(line, "due_timers", far, BATCH, None, None, beyond)).rows_read("timer") > 0
    assert (await explain(line, "due_runs", far, BATCH, None, None, beyond)).rows_read("run") > 0
    assert (await explain(calm, "due_schedules", far, BATCH, GRACE, BATCH, None, None, beyond)).rows_read(
        "schedule"
    ) > 0


@pytest.mark.parametrize(("statement", "table"), [("due_runs", "run"), ("due_timers", "timer")])
async def test_what_is_not_due_is_not_read(line: Line, statement: str, table: str):
    for reach in ((None, None), (SOME, None), (SOME, timedelta(seconds=10))):
        plan = await explain(line, statement, None, BATCH, *reach, None)
        assert plan.rows_read(table) == 0
    assert plan.pages_read < 20


@pytest.mark.parametrize(
    ("statement", "table", "arguments"),
    [
        ("due_schedules", "schedule", [None, BATCH, GRACE, BATCH, None, None, None]),
        ("due_schedules", "schedule", [None, BATCH, GRACE, BATCH, SOME, None, None]),
        ("due_schedules", "schedule", [None, BATCH, GRACE, BATCH, SOME, timedelta(seconds=10), None]),
        ("gauges", "schedule", [timedelta(seconds=5)]),
        ("remove_past_subscriptions", "past_subscription", []),
    ],
)
async def test_what_is_young_or_not_due_is_not_read_by_those_who_look_for_it(
    calm: Line, statement: str, table: str, arguments: list[Any]
):
    plan = await explain(calm, statement, *arguments)
    assert plan.rows_read(table) == 0
    assert plan.pages_read < 20


async def test_a_key_is_looked_for_in_the_indexes_of_two_leaves(line: Line, calm: Line):
    for each in (line, calm):
        await explain(each, "remember", [1], ["new"], [b""], [b""])  # the session learns of the tables
        plan = await explain(each, "remember", [1], ["new"], [b""], [b""])
        assert plan.pages_read < 40
        many = [f"new {number}" for number in range(BATCH)]
        plan = await explain(each, "remember", [1] * BATCH, many, [b""] * BATCH, [b""] * BATCH)
        assert plan.pages_read < 15 * BATCH


async def test_the_next_due_run_is_read_from_the_ends_of_two_indexes(line: Line):
    plan = await explain(line, "next_due", None, None, None)
    assert plan.whole_scans() == set()
    assert plan.rows_read("run") + plan.rows_read("timer") <= 4
    plan = await explain(line, "next_due", SOME, None, None)
    assert plan.whole_scans() == set()
    assert plan.rows_read("run") + plan.rows_read("timer") <= 40


async def test_promotion_touches_only_what_it_promotes(line: Line):
    first = RUNS - BATCH
    ids = list(range(first, RUNS))
    plan = await explain(line, "promote_runs", ids, [1] * BATCH, ids, None)
    assert plan.whole_scans() == set()
    assert plan.indexes("run") == {"run_pkey", "run_occurrence"}
    assert plan.rows_read("run") <= 3 * BATCH
    timers = list(range(2_000_001, 2_000_001 + BATCH))
    plan = await explain(line, "promote_timers", timers, [1] * BATCH, ids)
    assert plan.whole_scans() == set()
    assert plan.indexes("timer") == {"timer_pkey"}
    assert plan.rows_read("timer") <= 3 * BATCH


@pytest.mark.parametrize("statement", ["backlog_above", "backlog_below"])
async def test_a_page_of_a_backlog_is_one_stretch_of_the_order(line: Line, statement: str):
    plan = await explain(line, statement, 1, 1, 2, 500_000 * 16_384, 10**15, BATCH)
    assert plan.whole_scans() == set()
    assert plan.indexes("ready") == {"ready_order"}
    assert plan.rows_read("ready") <= 3 * BATCH
    assert plan.rows_read("run") <= 3 * BATCH


async def test_moving_a_page_reads_what_it_moves(line: Line):
    runs = list(range(500_001, 500_001 + 2 * BATCH, 2))
    before = [run * 16_384 for run in runs]
    plan = await explain(line, "move_backlog", 2, runs, before, [rank - 1 for rank in before])
    assert plan.whole_scans() == set()
    assert plan.indexes("ready") == {"ready_order"}
    assert plan.indexes("run") == {"run_pkey"}
    assert plan.rows_read("ready") <= 3 * BATCH
    assert plan.rows_read("run") <= 3 * BATCH


async def test_reaping_reads_the_claims_of_the_dead_and_their_runs(line: Line):
    returned = 10 * 80  # ten claims at a time
    found = await explain(line, "orphans", [], 0)
    assert found.whole_scans() == set()
    assert found.indexes("run") == {"run_pkey"}
    assert found.rows_read("run") <= returned
    async with line.borrow(atomic=False) as connection:
        claims = [row["id"] for row in await connection.fetch(SQL["orphans"], [], 0)]
    plan = await explain(line, "reap", 5, claims, [])
    assert plan.whole_scans() == set()
    assert plan.indexes("run") == {"run_pkey"}
    assert plan.rows_read("run") <= 3 * returned
    assert plan.rows_read("claim") <= CLAIMED / 80 + 3 * 10


async def _held(line: Line):
    """What the first three claims of worker 2 hold."""
    async with line.borrow(atomic=False) as connection:
        claims = await connection.fetch("SELECT id, runs FROM claim WHERE worker = 2 ORDER BY id LIMIT 3")
    held = [(claim["id"], place, run) for claim in claims for place, run in enumerate(claim["runs"], 1)]
    fences, places, runs = ([each[index] for each in held] for index in range(3))
    return runs, fences, places, [datetime.now(UTC)] * len(held)


async def test_the_sweeper_reads_one_page_of_runs(line: Line):
    plan = await explain(line, "stranded", CLAIMED, BATCH)
    assert plan.indexes("run") == {"run_pkey"}
    assert plan.whole_scans() == set()
    assert plan.rows_read("run") == BATCH
    assert plan.rows_read("seat") + plan.rows_read("node") + plan.rows_read("job") == 0


async def test_settling_reads_what_it_settles(line: Line):
    runs, fences, places, starts = await _held(line)
    plan = await explain(line, "settle", 2, runs, fences, places, starts, sorted(set(fences)), False)
    assert plan.whole_scans() == set()
    assert plan.indexes("run") == {"run_pkey"}
    assert plan.indexes("claim") <= {"claim_pkey", "claim_worker_number_key"}
    assert plan.rows_read("run") <= 3 * len(runs)


async def test_concluding_reads_what_it_concludes(line: Line):
    runs, fences, places, starts = await _held(line)
    count = len(runs)
    plan = await explain(
        line, "conclude", 2, runs, fences, places, starts, [2] * count, [0] * count, [None] * count, ["x"] * count,
        sorted(set(fences)), ["ValueError"] * count, [None] * count, False, False,
    )  # fmt: skip
    assert plan.whole_scans() == set()
    assert plan.indexes("run") == {"run_pkey"}
    assert plan.rows_read("run") <= 3 * count
    assert plan.rows_read("outside") == 0, "nobody looks there for what a claim covers"


async def test_a_claim_for_many_pops_as_much_as_one_for_all_of_them(line: Line):
    numbers = [next(_NUMBERS) for _ in range(50)]
    owners = [1 + place % 50 for place in range(BATCH)]
    plan = await explain(
        line, "claim_for_many", list(range(1, 51)), numbers, [1, 2], [0, 0], BATCH, owners, [BATCH, BATCH]
    )
    assert plan.whole_scans() == set()
    assert plan.indexes("ready") == {"ready_order"}
    assert plan.rows_read("ready") <= 3 * BATCH
    assert plan.rows_read("run") <= 3 * BATCH


async def test_settling_for_many_reads_what_it_settles(line: Line):
    runs, fences, places, starts = await _held(line)
    claims = sorted(set(fences))
    firsts = [1 + fences.index(fence) for fence in claims]
    lasts = [len(fences) - fences[::-1].index(fence) for fence in claims]
    plan = await explain(
        line, "settle_for_many", claims, [2] * len(claims), firsts, lasts, runs, places, starts, False
    )  # fmt: skip
    assert plan.whole_scans() == set()
    assert plan.indexes("run") == {"run_pkey"}
    assert plan.indexes("claim") <= {"claim_pkey", "claim_worker_number_key"}
    assert plan.rows_read("run") <= 3 * len(runs)
    assert plan.rows_read("claim") <= 3 * len(claims)
    plan = await explain(line, "forget_for_many", claims, [2] * len(claims))
    assert plan.whole_scans() == set()
    assert plan.rows_read("run") <= 3 * len(runs)


async def test_explaining_a_run_reads_no_more_of_a_million_than_it_counts(full: str):
    line = Line(full, hot=False)
    try:
        plan = await explain(line, "explain_run", 1, RUNS // 2, COUNTED + 1)
    finally:
        await line.close()
    assert plan.whole_scans() <= {"claim"}
    assert plan.indexes("ready") == {"ready_order"}
    assert COUNTED < plan.rows_read("ready") < COUNTED + 10
    assert plan.rows_read("run") < 10
