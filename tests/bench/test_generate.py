"""The generated load is what the API would have written, row for row, and falls due at the pace that it promises."""

from collections import Counter

import msgspec
import pytest

from foliot.bench.generate import Generator
from foliot.bench.load import TEN_MILLION, Load, seconds
from foliot.bench.produce import TENANTS, tenant_name
from foliot.domain.schedule import next_fire, parse_key
from foliot.services.control import Control
from foliot.services.tenants import Tenants
from foliot.store.database import Database
from foliot.store.migrate import migrate
from foliot.store.specs import SpecBook
from foliot.store.tenants import find_tenant
from foliot.wire.jobs import JobBatch, drafts_of

LOAD = Load(10_000)
SAMPLE = 1_000
OWN = {"id", "job", "run", "schedule", "created_at", "updated_at", "after", "cursor", "next_at", "shard"}
"""What differs because the jobs were made at another moment; checked by what it means instead."""
JOBS = """
SELECT to_jsonb(j) AS job, to_jsonb(t) AS tenant, to_jsonb(p) AS spec, to_jsonb(l) AS lane, to_jsonb(c) AS schedule,
       to_jsonb(s) AS subscription, to_jsonb(w) AS timer, j.timing::text AS timing, t.name AS owner
  FROM job j
  JOIN tenant t ON t.id = j.tenant
  JOIN spec p ON p.id = j.spec AND p.tenant = j.tenant
  JOIN lane l ON l.id = p.lane
  LEFT JOIN schedule c ON c.id = j.schedule
  LEFT JOIN subscription s ON s.job = j.id AND s.schedule = j.schedule AND s.after <= clock_timestamp()
  LEFT JOIN timer w ON w.id = j.run AND w.job = j.id
 WHERE j.name <> 'tick'
"""


@pytest.fixture
async def generated(empty_dsn, dsn):
    """Two databases with the bench's tenants: in one the whole load, generated; the other still empty."""
    await migrate(empty_dsn)
    databases = [await Database.open(address, size=4) for address in (empty_dsn, dsn)]
    for database in databases:
        for number in range(TENANTS):
            await Tenants(database).create(tenant_name(number))
    written = []
    await Generator(empty_dsn, databases[0], LOAD, written.append).run()
    assert sum(written) == LOAD.jobs
    yield databases
    for database in databases:
        await database.close()


async def create_as_the_api_does(database, numbers):
    control = Control(database, SpecBook(database), lambda _: None)
    for owner in range(TENANTS):
        bodies = [LOAD.body(number) for number in numbers if LOAD.tenant(number) == owner]
        batch = msgspec.json.decode(msgspec.json.encode({"jobs": bodies}), type=JobBatch)
        tenant = await find_tenant(database, tenant_name(owner))
        await control.create_batch(tenant, drafts_of(batch), render=lambda _: b"")


async def jobs_of(database):
    """Every column of a job and of all that belongs to it, by owner and schedule; several jobs may be alike."""
    async with database.connection() as connection:
        rows = await connection.fetch(JOBS)
    found = {}
    for row in rows:
        parts = {name: msgspec.json.decode(row[name] or "null") for name in {*row.keys()} - {"timing", "owner"}}
        told = {name: part and {key: part[key] for key in part.keys() - OWN} for name, part in parts.items()}
        found.setdefault((row["owner"], row["timing"]), []).append(msgspec.json.encode(told, order="deterministic"))
    return found


async def test_a_sample_of_generated_jobs_is_row_for_row_what_the_api_writes(generated):
    ours, theirs = generated
    await create_as_the_api_does(theirs, list(LOAD.sample(SAMPLE)))
    written, generated_jobs = await jobs_of(theirs), await jobs_of(ours)
    assert sum(map(len, written.values())) == SAMPLE
    assert sum(map(len, generated_jobs.values())) == LOAD.jobs
    for name, rows in written.items():
        assert Counter(rows) <= Counter(generated_jobs[name]), name
    kinds = Counter(msgspec.json.decode(row)["job"]["name"] for rows in written.values() for row in rows)
    assert kinds == {"report": 400, "probe": 100, "reminder": 500}


async def test_generated_schedules_stand_where_waking_them_would_have_put_them(generated):
    database, _ = generated
    async with database.connection() as connection:
        rows = await connection.fetch(
            "SELECT key, cursor, next_at FROM schedule WHERE next_at IS NOT NULL ORDER BY key"
        )
    assert len(rows) == LOAD.shared + LOAD.intervals
    for row in rows:
        assert row["next_at"] == next_fire(parse_key(row["key"]), row["cursor"]), row["key"]


async def test_the_generated_load_is_complete_and_nothing_points_into_nowhere(generated):
    database, _ = generated
    async with database.connection() as connection:
        for query, expected in {
            "SELECT count(*) FROM job": LOAD.jobs + LOAD.burst + 2,
            "SELECT count(DISTINCT schedule) FROM job WHERE name = 'report'": LOAD.shared,
            "SELECT count(DISTINCT schedule) FROM job WHERE name = 'probe'": LOAD.intervals,
            "SELECT count(*) FROM subscription": LOAD.crons + LOAD.intervals + LOAD.burst + 2,
            "SELECT count(*) FROM timer WHERE id > 0": LOAD.timers,
            "SELECT count(DISTINCT due_at) FROM timer WHERE id > 0": LOAD.timers,
            "SELECT count(*) FROM job JOIN spec s ON s.id = job.spec AND s.tenant = job.tenant": LOAD.jobs
            + LOAD.burst
            + 2,
            "SELECT count(*) FROM job LEFT JOIN schedule s ON s.id = job.schedule WHERE kind = 2 AND s.id IS NULL": 0,
            "SELECT count(*) FROM run WHERE id > 0": 0,
            "SELECT count(*) FROM firing": 0,
        }.items():
            assert await connection.fetchval(query) == expected, query
        # The next of each sequence is free.
        await connection.execute("INSERT INTO schedule (tenant, key, cursor) VALUES (1, 'one more', now())")


def test_ten_million_fall_due_at_ten_thousand_a_second_and_a_little_more():
    load = Load(TEN_MILLION)
    assert (load.crons, load.shared, load.intervals, load.timers) == (4_000_000, 2_000, 1_000_000, 5_000_000)
    assert len({load.cron(place) for place in range(load.shared)}) == 2_000
    assert {seconds(number) for number in range(3_001)} == {*range(600, 3_601)}
    intervals = sum(1 / seconds(number) for number in range(load.intervals))
    assert load.crons / 3_600 + intervals + load.timer_rate == pytest.approx(10_100, rel=0.001)
    assert (load.due(60 * load.timer_rate) - load.due(0)).total_seconds() == pytest.approx(60, abs=0.001)
