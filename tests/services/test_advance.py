"""Schedules that have come up: what is on time goes first, what is late in short transactions, nothing is forgotten."""

import asyncio
from datetime import datetime, timedelta

from foliot.domain import misfire
from foliot.services.fire import Firer, advance
from world import World

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)


async def _behind(world: World, count: int, minutes: float) -> datetime:
    """Make jobs of every minute, each with a schedule of its own; the time by which so many minutes have come up."""
    for number in range(count):
        since = (world.began - 1_000.5 * MINUTE + number * SECOND / 100).isoformat()
        await world.job_id(every="PT1M", scheduleAt=since, overlap="allow", catchUp={"mode": "all"})
    return await world.value("SELECT min(next_at) FROM schedule") + minutes * MINUTE  # type: ignore[no-any-return]


async def _coming_up(world: World, every: str, at: datetime) -> int:
    """A job that fires that often, from `at` on."""
    job = await world.job_id(every=every, scheduleAt=at.isoformat(), overlap="allow", catchUp={"mode": "all"})
    await world.sql(
        "UPDATE schedule SET next_at = $1, cursor = $1::timestamptz - interval '1 us'"
        " WHERE id = (SELECT schedule FROM job WHERE id = $2)",
        at,
        job,
    )
    await world.sql("UPDATE subscription SET after = $1::timestamptz - interval '1 us' WHERE job = $2", at, job)
    return job


async def test_a_transaction_opens_few_late_instants(world: World, monkeypatch):
    monkeypatch.setattr(advance, "MOST_OPENED", 50)
    now = await _behind(world, 8, minutes=19.75)
    moved = []
    while found := await world.advance(now):
        moved.append(found)
    assert moved == [2, 2, 2, 2]
    opened = await world.sql("SELECT count(*) AS rows FROM firing GROUP BY xmin")
    assert [row["rows"] for row in opened] == [40] * 4
    assert world.firer._longest > 0


async def test_one_schedule_that_is_far_behind_is_moved_on_all_the_same(world: World, monkeypatch):
    monkeypatch.setattr(advance, "MOST_OPENED", 5)
    now = await _behind(world, 2, minutes=19.75)
    await world.fire(now)
    assert await world.count("run") == 40


async def test_runs_that_are_on_time_are_made_before_anything_that_is_late_is_opened(world: World):
    now = await _behind(world, 3, minutes=19.75)
    fresh = await _coming_up(world, "PT1H", now)
    await world.firer.run_once(now)
    (row,) = await world.sql(
        "SELECT (SELECT max(xmin::text::bigint) FROM run WHERE job = $1) AS made,"
        "       min(xmin::text::bigint) AS opened, count(*) AS late FROM firing WHERE late_through IS NOT NULL",
        fresh,
    )
    assert row["late"] == 60
    assert row["made"] < row["opened"]


async def test_what_is_late_is_left_alone_while_more_is_on_time_than_one_round_does(world: World, monkeypatch):
    monkeypatch.setattr("foliot.services.fire.MOST_SCHEDULES", 1)
    monkeypatch.setattr(advance, "MOST_SCHEDULES", 1)
    monkeypatch.setattr("foliot.services.fire.LATE_TURN", 3)
    now = await _behind(world, 1, minutes=19.75)
    for number in range(4):
        await _coming_up(world, "PT1H", now - number * SECOND)
    opened = []
    for _ in range(4):
        await world.firer.run_once(now)
        opened.append(await world.value("SELECT count(*) FROM firing WHERE late_through IS NOT NULL"))
    assert opened == [0, 0, 20, 20]  # and has its turn in the end


async def test_nothing_is_forgotten_below_the_last_instant_done(world: World, monkeypatch):
    """By a clock that stands still: nobody looks from the beginning a second time."""
    monkeypatch.setattr(misfire, "MOST_OPENED", 7)
    now = await _behind(world, 3, minutes=29.75)
    late = await _coming_up(world, "PT1H", now - 40 * SECOND)
    dense = await _coming_up(world, "PT1S", now - 20 * SECOND)
    fresh = await _coming_up(world, "PT1H", now)
    firer = Firer(world.database, clock=lambda: 0.0)
    while await firer.run_once(now):
        pass
    await firer.close()
    rows = await world.sql("SELECT job, count(*) AS runs FROM run WHERE id > 0 GROUP BY job")
    made = {row["job"]: row["runs"] for row in rows}
    assert (made.pop(late), made.pop(dense), made.pop(fresh)) == (1, 21, 1)
    assert list(made.values()) == [30] * 3
    assert await world.value("SELECT count(*) FROM schedule WHERE next_at <= $1", now) == 0


async def test_others_have_their_turns_while_many_are_reckoned(world: World, monkeypatch):
    monkeypatch.setattr(advance, "AT_ONCE", 5)
    now = await _behind(world, 12, minutes=0)
    turns, seen = 0, []
    reckon = advance.advance

    async def bystander() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    def watched(*terms, **more):
        seen.append(turns)
        return reckon(*terms, **more)

    monkeypatch.setattr(advance, "advance", watched)
    task = asyncio.create_task(bystander())
    await world.advance(now + SECOND)
    assert [seen.count(turn) for turn in sorted(set(seen))] == [5, 5, 2]
    seen.clear()
    await world.advance(now + 5 * MINUTE)
    assert len(set(seen)) == len(seen) == 12  # who is late may have much to open
    task.cancel()
