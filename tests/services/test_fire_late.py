"""Instants that come up late: on time within their grace, then the latest is run and the rest is on record."""

from datetime import timedelta

from foliot.domain.misfire import GRACE, USUAL
from world import World

MINUTE = timedelta(minutes=1)


async def _every_minute(world: World):
    await world.job_id(every="PT1M", overlap="allow")
    return await world.next_at()


async def _runs(world: World):
    return [row[0] for row in await world.sql("SELECT scheduled_at FROM run WHERE id > 0 ORDER BY 1")]


async def _missed(world: World):
    return [tuple(row) for row in await world.sql("SELECT at, through FROM firing WHERE missed ORDER BY 1")]


async def test_an_instant_within_its_grace_is_on_time(world: World):
    first = await _every_minute(world)
    await world.fire(first + GRACE)
    assert await _runs(world) == [first]
    assert await _missed(world) == []


async def test_a_single_late_instant_is_still_run(world: World):
    first = await _every_minute(world)
    await world.fire(first + GRACE + timedelta(seconds=5))
    assert await _runs(world) == [first]
    assert await _missed(world) == []


async def test_of_several_late_instants_the_latest_is_run_and_the_others_are_one_record(world: World):
    first = await _every_minute(world)
    await world.fire(first + 9 * MINUTE + timedelta(seconds=45))
    assert await _runs(world) == [first + 9 * MINUTE]
    ((since, through),) = await _missed(world)
    assert since == first
    assert first + 8 * MINUTE <= through < first + 9 * MINUTE
    assert await world.next_at() == first + 10 * MINUTE


async def test_an_instant_that_is_on_time_is_run_besides_the_latest_of_the_late_ones(world: World):
    first = await _every_minute(world)
    await world.fire(first + 9 * MINUTE + timedelta(seconds=10))
    assert await _runs(world) == [first + 8 * MINUTE, first + 9 * MINUTE]
    ((since, through),) = await _missed(world)
    assert (since, through < first + 8 * MINUTE) == (first, True)


async def test_what_is_older_than_the_window_is_missed_altogether(world: World):
    await world.job_id(every="PT24H")
    first = await world.next_at()
    await world.fire(first + 4 * timedelta(days=1) + USUAL.window + MINUTE)
    assert await _runs(world) == []
    assert await _missed(world) == [(first, first + 4 * timedelta(days=1))]
    assert await world.next_at() == first + 5 * timedelta(days=1)


async def test_every_instant_is_either_fired_or_missed_however_the_clock_leaps(world: World):
    first = await _every_minute(world)
    for minutes in (0, 1, 4, 4.6, 9.2, 9.4, 200, 201, 260.9):
        await world.fire(first + minutes * MINUTE)
    rows = await world.sql(
        "SELECT at, through FROM firing WHERE missed OR late_through IS NOT NULL"
        " UNION SELECT scheduled_at, scheduled_at FROM run WHERE id > 0"
    )
    instants = [first + number * MINUTE for number in range(261)]
    owners = [sum(row["at"] <= instant <= row["through"] for row in rows) for instant in instants]
    assert owners == [1] * len(instants)
