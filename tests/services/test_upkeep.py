"""Upkeep: history has room for tomorrow, and what nobody can ask for any more is removed."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from foliot.services.upkeep import Housekeeper
from foliot.store import upkeep
from world import World

DAY = timedelta(days=1)
LEAVES = """
SELECT (regexp_matches(pg_get_expr(c.relpartbound, c.oid), 'FROM \\(''([^'']+)''\\) TO \\(''([^'']+)''\\)')) AS bounds
  FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent = 'history'::regclass ORDER BY 1"""


async def _leaves(world: World) -> list[tuple[datetime, datetime]]:
    rows = await world.sql(LEAVES)
    return [tuple(datetime.fromisoformat(bound) for bound in row["bounds"]) for row in rows]


async def _keep_house(world: World) -> None:
    housekeeper = Housekeeper(world.database)
    await housekeeper.run_once()
    await housekeeper.close()


async def test_leaves_reach_from_yesterday_into_the_days_to_come_without_a_gap(world: World):
    leaves = await _leaves(world)
    made = await world.value("SELECT min(applied_at) FROM migration")
    assert leaves[0][0] <= made - timedelta(hours=20)
    assert leaves[-1][1] >= made + 4 * DAY
    assert all(leaf[1] == following[0] for leaf, following in pairwise(leaves))


async def test_a_missing_leaf_is_made_ahead_of_its_time_and_has_the_indexes(world: World):
    await _keep_house(world)  # midnight may have passed since the database was made
    before = await _leaves(world)
    (last,) = await world.sql(
        "SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'history'::regclass"
        " ORDER BY 1 DESC LIMIT 1"
    )
    await world.sql(f"DROP TABLE {last['name']}")
    await _keep_house(world)
    assert await _leaves(world) == before
    assert await world.value("SELECT count(*) FROM pg_indexes WHERE tablename = $1", last["name"]) == 2
    await _keep_house(world)
    assert await _leaves(world) == before


async def test_after_a_long_outage_history_goes_on_from_yesterday(world: World):
    for row in await world.sql(
        "SELECT inhrelid::regclass::text AS n FROM pg_inherits WHERE inhparent='history'::regclass"
    ):
        await world.sql(f"DROP TABLE {row['n']}")
    await world.sql("CREATE TABLE history_old PARTITION OF history FOR VALUES FROM ('2025-01-01') TO ('2025-01-02')")
    await world.submit()
    worker = await world.worker()
    taken = await worker.claim()
    await _keep_house(world)
    assert await worker.settle(taken) == 1
    leaves = await _leaves(world)
    assert leaves[0][1] < leaves[1][0] < datetime.now(UTC) - timedelta(hours=20)


async def test_workers_dead_for_a_day_are_removed_and_living_ones_are_not(world: World):
    for _ in range(3):
        await world.worker()
    await world.sql("UPDATE worker SET state = 2 WHERE id < 3")
    await world.sql("UPDATE worker SET seen_at = now() - interval '25 hours' WHERE id <> 2")
    await _keep_house(world)
    assert [row["id"] for row in await world.sql("SELECT id FROM worker ORDER BY id")] == [2, 3]


async def test_a_subscription_whose_end_has_been_fired_is_removed(world: World):
    await world.job_id(every="PT24H")
    at = await world.next_at()
    await world.sql("UPDATE subscription SET until = $1", at)
    await world.advance(at)
    await world.advance(at + DAY)
    await _keep_house(world)
    assert await world.count("subscription") == 1  # its instants are still to be done
    await world.fire(at + DAY)
    assert await world.count("run") == 1
    await _keep_house(world)
    assert await world.count("subscription") == 0


async def test_a_subscription_that_has_not_ended_stays(world: World):
    await world.job_id(every="PT24H")
    await world.fire(await world.next_at())
    await _keep_house(world)
    assert await world.count("subscription") == 1


async def test_what_was_begun_and_not_finished_and_what_is_due_and_waits_is_seen(world: World):
    await world.job_id(every="PT24H")
    at = await world.next_at()

    async def seen() -> tuple[int, int]:
        line = world.database.line()
        found = await upkeep.gauges(line)
        await line.close()
        return found.overdue_firings, found.overdue_timers

    for number, (since, late) in enumerate([("10 seconds", False), ("1 minute", False), ("50 minutes", True)]):
        await world.sql(
            "INSERT INTO firing (schedule, at, through, opened_at, late_through)"
            " SELECT id, $1, $1, now() - $2::text::interval, CASE WHEN $3 THEN $1::timestamptz END FROM schedule",
            at + number * DAY,
            since,
            late,
        )
    await world.job_id(scheduleAt=at)
    assert await seen() == (1, 0)
    await world.sql("UPDATE firing SET opened_at = now() - interval '2 hours'")
    await world.sql("UPDATE timer SET due_at = now() - interval '6 seconds' WHERE id > 0")
    assert await seen() == (3, 1)


async def test_the_gauges_count_what_is_there_and_not_the_ballast(world: World):
    await world.submit(3)
    line = world.database.line()
    assert await upkeep.gauges(line) == upkeep.Gauges(
        overdue_schedules=0, overdue_firings=0, overdue_timers=0, schedulers=0, unheld_shards=256, clock_behind=0
    )
    ready = await upkeep.ready_per_queue(line)
    assert ready["default"] == 3
    await line.close()
