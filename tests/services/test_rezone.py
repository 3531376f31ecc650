"""A newer edition of the time zone database: noticed, recorded, acted on, and never taken back."""

import asyncio
from datetime import datetime, timedelta

import pytest
from structlog.testing import capture_logs

from calendaring import job_on_calendar, put_calendar
from foliot.domain.schedule import next_fire, parse_key
from foliot.services import rezone
from foliot.services.rezone import Rezone
from foliot.store import zones
from foliot.store.zones import put_elsewhere
from world import World

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
OLD, NEW, NEWER = "2025a", "2025b", "2025c"
BERLIN = {"cronExpression": "0 9 * * *", "timezone": "Europe/Berlin"}
TOKYO = {"cronExpression": "0 9 * * *", "timezone": "Asia/Tokyo"}
"""Where every day has 24 hours."""


async def _reckoned_otherwise(world: World, by: timedelta = HOUR) -> datetime:
    """As if other rules had put all fires elsewhere, after tomorrow, so that none is due; where the last belongs."""
    await world.sql("UPDATE schedule SET cursor = clock_timestamp() + interval '1 day', next_at = 'infinity'")
    for row in await world.sql("SELECT id, key, cursor FROM schedule"):
        right = next_fire(parse_key(row["key"]), row["cursor"])
        assert right is not None
        await world.sql("UPDATE schedule SET next_at = $2 WHERE id = $1", row["id"], right + by)
    return right


async def _editions(world: World) -> dict[str, int]:
    return {row["version"]: row["moved"] for row in await world.sql("SELECT version, moved FROM zone_data")}


async def test_a_newer_edition_puts_fires_where_they_belong_and_is_recorded(world: World):
    await world.job(**BERLIN)
    right = await _reckoned_otherwise(world)
    cursor = await world.value("SELECT cursor FROM schedule")
    await zones.record(world.database, OLD, 0)
    duty = Rezone(world.database, NEW)
    with capture_logs() as logs:
        assert await duty.run_once() == 1
    assert await world.next_at() == right
    assert await world.value("SELECT cursor FROM schedule") == cursor
    assert await _editions(world) == {OLD: 0, NEW: 1}
    (said,) = logs
    assert (said["log_level"], said["before"], said["moved"]) == ("warning", OLD, 1)
    assert said["zones"] == ["Europe/Berlin"]
    assert await duty.run_once() == 0
    assert await duty.pause() == 3600


async def test_an_older_edition_changes_nothing_and_says_so_once(world: World):
    await world.job(**BERLIN)
    right = await _reckoned_otherwise(world)
    await zones.record(world.database, NEW, 0)
    duty = Rezone(world.database, OLD)
    with capture_logs() as logs:
        assert [await duty.run_once(), await duty.run_once()] == [0, 0]
    assert await world.next_at() == right + HOUR
    assert await _editions(world) == {NEW: 0}
    assert [each["there"] for each in logs] == [NEW]
    assert await duty.pause() == 3600


async def test_one_that_nobody_can_name_changes_nothing(world: World):
    await world.job(**BERLIN)
    right = await _reckoned_otherwise(world)
    assert await Rezone(world.database, "unknown").run_once() == 0
    assert await world.next_at() == right + HOUR
    assert await _editions(world) == {}


async def test_what_depends_on_no_zone_is_left_alone(world: World):
    await world.job(every="PT1H")
    await world.job(cronExpression="0 9 * * *")
    await _reckoned_otherwise(world)
    before = await world.sql("SELECT id, next_at FROM schedule ORDER BY id")
    assert await Rezone(world.database, NEW).run_once() == 0
    assert await world.sql("SELECT id, next_at FROM schedule ORDER BY id") == before
    assert await _editions(world) == {NEW: 0}


async def test_the_zone_of_a_calendar_counts_too(world: World):
    await put_calendar(world, timezone="Europe/Berlin", businessDays=["MON", "TUE"])
    await job_on_calendar(world, every="PT1H")
    right = await world.next_at()
    await world.sql("UPDATE schedule SET next_at = next_at + interval '8 days'")
    assert await Rezone(world.database, NEW).run_once() == 1
    assert await world.next_at() == right


async def test_what_is_where_it_belongs_stays_and_what_sleeps_sleeps(world: World):
    await world.job(**BERLIN)
    await world.job(cronExpression="0 7 * * *", timezone="Asia/Tokyo")
    await world.sql("UPDATE schedule SET next_at = NULL WHERE key LIKE '%Tokyo'")
    before = await world.sql("SELECT key, cursor, next_at FROM schedule ORDER BY id")
    assert await Rezone(world.database, NEW).run_once() == 0
    assert await world.sql("SELECT key, cursor, next_at FROM schedule ORDER BY id") == before


async def test_a_fire_that_newer_rules_put_into_the_past_is_late_and_not_lost(world: World):
    job = await world.job_id(**TOKYO, catchUp={"mode": "latest", "window": "P2D"})
    last = await world.next_at() - 2 * DAY  # fired then, and once more since
    await world.sql("UPDATE subscription SET after = $1", last)
    await world.sql("UPDATE schedule SET cursor = $1", last)
    right = next_fire(parse_key(await world.value("SELECT key FROM schedule")), last)
    assert await Rezone(world.database, NEW).run_once() == 1
    await world.fire()
    runs = await world.sql("SELECT scheduled_at FROM run WHERE job = $1", job)
    assert [row["scheduled_at"] for row in runs] == [right]
    assert await Rezone(world.database, NEWER).run_once() == 0  # the firer goes by the same rules


async def test_what_has_fallen_due_is_fired_as_it_stands(world: World):
    await world.job(**BERLIN)
    await world.sql("UPDATE schedule SET cursor = cursor - interval '9 days', next_at = clock_timestamp()")
    due = await world.next_at()
    duty = Rezone(world.database, NEW)
    assert await duty.run_once() == 0
    assert await world.next_at() == due
    assert await _editions(world) == {NEW: 0}


async def test_a_schedule_that_is_being_fired_is_left_to_the_one_who_fires_it_and_looked_at_again(world: World):
    await world.job(**BERLIN)
    right = await _reckoned_otherwise(world)
    duty = Rezone(world.database, NEW)
    async with world.unfinished() as firer:
        await firer.run("lock_to_fire", [await world.value("SELECT id FROM schedule")])
        assert await duty.run_once() == 0  # and it does not wait
        assert await _editions(world) == {}
        assert await duty.pause() == 1
    assert await duty.run_once() == 1
    assert await world.next_at() == right
    assert await _editions(world) == {NEW: 1}


async def test_what_was_fired_since_it_was_looked_at_is_not_moved_back(world: World):
    await world.job(**BERLIN)
    right = await _reckoned_otherwise(world)
    (seen,) = await zones.wall_clock_schedules(world.database, 0, 10)
    await world.fire(right + HOUR)
    following = await world.next_at()
    async with world.database.transaction() as connection:
        assert await put_elsewhere(connection, [(seen, right)], NEW) == set()
    assert await world.next_at() == following
    assert await world.count("run") == 1


async def test_a_newer_edition_that_was_recorded_meanwhile_wins(world: World):
    await world.job(**BERLIN)
    right = await _reckoned_otherwise(world)
    (seen,) = await zones.wall_clock_schedules(world.database, 0, 10)
    await zones.record(world.database, NEWER, 0)
    async with world.database.transaction() as connection:
        assert await put_elsewhere(connection, [(seen, right)], NEW) == set()
    assert await world.next_at() == right + HOUR


async def test_one_that_is_killed_between_two_chunks_leaves_the_rest_to_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    for hour in range(5):
        await world.job(cronExpression=f"0 {hour} * * *", timezone="Europe/Berlin")
    await _reckoned_otherwise(world)
    monkeypatch.setattr(rezone, "CHUNK", 2)
    dying, put, done = Rezone(world.database, NEW), Rezone._put, 0

    async def killed(moves):
        nonlocal done
        if done == 2:
            raise asyncio.CancelledError
        done += (moved := await put(dying, moves))
        return moved

    monkeypatch.setattr(dying, "_put", killed)
    with pytest.raises(asyncio.CancelledError):
        await dying.run_once()
    assert await _editions(world) == {}
    assert await Rezone(world.database, NEW).run_once() == 3
    assert await Rezone(world.database, NEWER).run_once() == 0
    assert await _editions(world) == {NEW: 3, NEWER: 0}


async def test_whoever_starts_with_the_recorded_edition_puts_right_what_an_older_process_left(world: World):
    await world.job(**BERLIN)
    await zones.record(world.database, NEW, 4)
    right = await _reckoned_otherwise(world)
    assert await Rezone(world.database, NEW).run_once() == 1
    assert await world.next_at() == right
    assert await _editions(world) == {NEW: 5}


async def test_editions_follow_each_other_by_year_and_letter(world: World):
    for version in ("2025z", "2024za", "2025za", "2025b"):
        await zones.record(world.database, version, 0)
    latest = await zones.latest(world.database)
    assert latest is not None
    assert latest.version == "2025za"
