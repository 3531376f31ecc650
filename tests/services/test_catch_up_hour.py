"""An hour without a scheduler, ten thousand jobs of every minute: exactly the right runs, and a ledger that says so."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from foliot.wire.jobs import JobBody, draft_of
from telling import told_of
from world import World

MINUTE = timedelta(minutes=1)
JOBS, SCHEDULES, INSTANTS = 10_000, 100, 60


async def _jobs(world: World, **catch_up: str) -> dict[int, int]:
    """Make them as `POST /v1/jobs:batch` does, with the same number on each schedule; each one's schedule."""
    # Half a minute before the next instant of the first schedule, and 20 seconds between that and the last one's.
    since = datetime.now(UTC) - 1_000.5 * MINUTE
    anchors = [(since + number * timedelta(seconds=0.2)).isoformat() for number in range(SCHEDULES)]
    fields = {"name": "report", "handler": "noop", "every": "PT1M", "overlap": "allow", "catchUp": catch_up}
    drafts = [
        draft_of(msgspec.convert({**fields, "scheduleAt": anchors[number % SCHEDULES]}, JobBody))
        for number in range(JOBS)
    ]
    await world.control.create_batch(world.tenant, drafts, render=msgspec.json.encode)
    return {row["id"]: row["schedule"] for row in await world.sql("SELECT id, schedule FROM job")}


@pytest.mark.parametrize(
    (
        "mode",
        "wanted",
        "records",
    ),  # of what was opened and of what was missed: how many, with so many fired, passed over
    [
        ("all", range(INSTANTS), [(False, INSTANTS * SCHEDULES, INSTANTS * JOBS, 0)]),
        ("latest", [INSTANTS - 1], [(False, SCHEDULES, JOBS, 0), (True, SCHEDULES, 0, 0)]),
        # Somebody might want the last one; none of these does.
        ("none", [], [(False, SCHEDULES, 0, JOBS), (True, SCHEDULES, 0, 0)]),
    ],
)
async def test_every_job_has_the_runs_of_its_mode_and_every_instant_its_fate(world: World, mode: str, wanted, records):
    jobs = await _jobs(world, mode=mode)
    assert len(jobs) == JOBS
    await world.make_overdue(by=timedelta(minutes=INSTANTS + 1))
    firsts = {row["id"]: row["next_at"] for row in await world.sql("SELECT id, next_at FROM schedule")}
    assert len(firsts) == SCHEDULES
    now = max(firsts.values()) + (INSTANTS - 1) * MINUTE + timedelta(seconds=35)  # the last is late too, with each
    await world.fire(now)

    (row,) = await world.sql(
        "WITH expected AS ("
        "    SELECT job.id AS job, x.first + number * interval '1 minute' AS at"
        "      FROM unnest($1::bigint[], $2::timestamptz[]) AS x(schedule, first)"
        "      JOIN job ON job.schedule = x.schedule CROSS JOIN unnest($3::int[]) AS number"
        "), made AS (SELECT job, scheduled_at AS at FROM run WHERE id > 0)"
        " SELECT (SELECT count(*) FROM made) AS made, count(*) FILTER (WHERE made.job IS NULL) AS lacking,"
        "        count(*) FILTER (WHERE expected.job IS NULL) AS surplus"
        "   FROM expected FULL JOIN made USING (job, at)",
        list(firsts),
        list(firsts.values()),
        list(wanted),
    )
    assert tuple(row) == (JOBS * len(wanted), 0, 0)
    rows = await world.sql(
        "SELECT missed, count(*), sum(fired), sum(passed_over) FROM firing WHERE closed_at IS NOT NULL"
        " GROUP BY 1 ORDER BY 1"
    )
    assert [tuple(row) for row in rows] == records
    assert await world.value("SELECT count(*) FROM firing WHERE closed_at IS NULL") == 0
    assert {row["next_at"] - firsts[row["id"]] for row in await world.sql("SELECT id, next_at FROM schedule")} == {
        INSTANTS * MINUTE
    }
    assert await world.count("history") == 0

    for job, schedule in list(jobs.items())[:: JOBS // 20 + 1]:  # each on another schedule
        told = await told_of(world, job, until=now, limit=100)
        assert [(each.at, each.status) for each in told] == [
            (firsts[schedule] + number * MINUTE, "fired" if number in wanted else "missed")
            for number in range(INSTANTS)
        ]
        assert all((each.run_id is None) == (each.status == "missed") == bool(each.reason) for each in told)
