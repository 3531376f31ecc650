"""Schedules that all tenants shared, once, are one tenant's each."""

from typing import Final

import asyncpg

from foliot.store.migrate import migrate, shipped

# Tenants 1 and 2 share the first schedule, in the midst of a firing; the second is 2's alone; nobody has the third.
TOGETHER: Final = """
INSERT INTO tenant (name) VALUES ('one'), ('two');
SET session_replication_role = replica;
INSERT INTO schedule (key, cursor, next_at)
SELECT key, '2030-01-01', '2030-01-02' FROM unnest('{daily,hourly,gone}'::text[]) AS key;
INSERT INTO job (id, tenant, name, spec, kind, exclusive, schedule, timing, payload)
SELECT job, tenant, 'report', 1, 2, true, schedule, '{}', ''
  FROM (VALUES (11, 1, 1), (21, 2, 1), (22, 2, 2)) AS x(job, tenant, schedule);
INSERT INTO subscription (schedule, job, after, tenant, spec, exclusive, payload)
SELECT schedule, id, '2029-12-01', tenant, 1, true, '' FROM job;
INSERT INTO past_subscription (schedule, job, after, until, tenant, closed)
VALUES (1, 21, '2029-11-01', '2029-12-01', 2, false);
INSERT INTO firing (schedule, at, through, done_through) VALUES
    (1, '2030-01-01', '2030-01-01', 11), (2, '2030-01-01', '2030-01-01', 0), (3, '2030-01-01', '2030-01-01', 0);
"""


async def test_tenants_that_shared_a_schedule_each_have_their_own_with_all_that_is_on_record(empty_dsn: str):
    apart = next(each.name for each in shipped() if each.name.endswith("schedules_apart.sql"))
    await migrate(empty_dsn, [each for each in shipped() if each.name < apart])
    connection = await asyncpg.connect(empty_dsn, server_settings={"search_path": "foliot"})
    await connection.execute(TOGETHER)
    await migrate(empty_dsn)
    own = {
        (row["tenant"], row["key"]): row["id"]
        for row in await connection.fetch(
            "SELECT * FROM schedule WHERE cursor = '2030-01-01' AND next_at = '2030-01-02'"
        )
    }
    assert own.keys() == {(1, "daily"), (2, "daily"), (2, "hourly")}
    first, second, hourly = own[1, "daily"], own[2, "daily"], own[2, "hourly"]
    jobs = {11: first, 21: second, 22: hourly}
    assert dict(await connection.fetch("SELECT id, schedule FROM job")) == jobs
    assert dict(await connection.fetch("SELECT job, schedule FROM subscription")) == jobs
    assert dict(await connection.fetch("SELECT job, schedule FROM past_subscription")) == {21: second}
    # What was fired of the first stays so; of the second's jobs, whose ids come later, none was.
    assert dict(await connection.fetch("SELECT schedule, done_through FROM firing")) == {
        first: 11,
        second: 11,
        hourly: 0,
    }
    await connection.close()
