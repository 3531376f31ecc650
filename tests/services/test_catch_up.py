"""After an outage: what each job wanted of the instants that came up late, what it got, and what is on record."""

from datetime import datetime, timedelta

import pytest

from editing import changed
from foliot.domain.misfire import GRACE
from foliot.domain.states import State
from foliot.services.fire import Firer
from world import World

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


async def _instants(world: World, job: int) -> list[datetime]:
    return [row[0] for row in await world.sql("SELECT scheduled_at FROM run WHERE job = $1 ORDER BY 1", job)]


async def _outage(world: World, **catch_up: str) -> tuple[int, datetime]:
    job = await world.job_id(every="PT1M", scheduleAt=world.half_way(MINUTE), overlap="allow", catchUp=catch_up)
    return job, await world.next_at()


@pytest.mark.parametrize(
    ("catch_up", "minutes"),
    [
        ({"mode": "all", "window": "PT1H"}, range(60)),
        ({"mode": "all", "window": "PT10M"}, range(50, 60)),
        ({"mode": "latest", "window": "PT1H"}, [59]),
        ({"mode": "latest", "window": "PT30S"}, []),
        ({"mode": "none"}, []),
    ],
)
async def test_after_an_hour_each_mode_gives_exactly_its_runs(world: World, catch_up: dict[str, str], minutes):
    job, first = await _outage(world, **catch_up)
    await world.fire(first + HOUR - timedelta(seconds=15))
    assert await _instants(world, job) == [first + number * MINUTE for number in minutes]
    assert await world.next_at() == first + HOUR
    (row,) = await world.sql(
        "SELECT coalesce(sum(passed_over), 0) AS passed, coalesce(sum(fired), 0) AS fired,"
        "       count(*) FILTER (WHERE closed_at IS NULL) AS open FROM firing WHERE NOT missed"
    )
    assert (row["fired"], row["open"]) == (len(minutes), 0)


async def test_jobs_of_one_schedule_each_get_what_they_want(world: World):
    everything, first = await _outage(world, mode="all", window="PT5M")
    last, _ = await _outage(world, mode="latest")
    nothing, _ = await _outage(world, mode="none")
    await world.fire(first + 20 * MINUTE + GRACE + timedelta(seconds=1))
    late = [first + number * MINUTE for number in range(21)]
    assert await _instants(world, everything) == late[-5:]
    assert await _instants(world, last) == late[-1:]
    assert await _instants(world, nothing) == []
    assert await world.value("SELECT sum(fired) FROM firing") == 6
    assert await world.value("SELECT sum(passed_over) FROM firing") == 4 * 2 + 1


async def test_the_latest_of_a_job_that_ended_in_the_outage_is_its_own(world: World):
    ending = await world.job_id(every="PT1M", overlap="allow")
    await world.job_id(every="PT1M", overlap="allow")
    first = await world.next_at()
    await world.sql("UPDATE subscription SET until = $2 WHERE job = $1", ending, first + 5.5 * MINUTE)
    await world.fire(first + 20 * MINUTE + GRACE + timedelta(seconds=1))
    assert await _instants(world, ending) == [first + 5 * MINUTE]


async def test_what_is_on_time_is_made_before_what_is_late(world: World):
    late, first = await _outage(world, mode="all")
    now = first + 10 * MINUTE + timedelta(seconds=5)
    fresh = await world.job_id(every="PT1H", scheduleAt=(first + 10 * MINUTE).isoformat(), overlap="allow")
    await world.advance(now)
    await world.advance(now)
    await world.firer.run_once(now)
    assert await _instants(world, fresh) == [first + 10 * MINUTE]
    assert await _instants(world, late) == [first + 10 * MINUTE]
    await world.fire(now)
    assert len(await _instants(world, late)) == 11


async def test_late_runs_queue_behind_those_that_are_on_time(world: World):
    """A backlog of a thousand does not hold up the next fresh run of the same tenant."""
    for _ in range(10):
        await _outage(world, mode="all")
    first = await world.next_at()
    await world.fire(first + 100 * MINUTE + timedelta(seconds=45))
    assert await world.count("ready") == 10 * 60
    (fresh,) = await world.submit()
    ahead = await world.value(
        "SELECT count(*) FROM ready WHERE lane > 0 AND rank < (SELECT rank FROM ready WHERE run = $1)", fresh
    )
    assert ahead < 10


async def test_the_backlog_is_paced(world: World):
    for _ in range(10):
        await _outage(world, mode="all")
    first = await world.next_at()
    paced = Firer(world.database, catch_up_rate=0.001)
    while await paced.run_once(first + HOUR - timedelta(seconds=15)):
        pass
    made = await world.count("run")
    assert made == 10  # one firing of ten jobs, then a long pause
    assert 0 < await paced.pause(longest=5.0) <= 5.0
    await paced.close()


async def test_a_late_instant_of_a_paused_job_is_skipped_and_says_so(world: World):
    job, first = await _outage(world, mode="latest")
    await world.make_overdue(by=2 * MINUTE)
    await world.control.pause(world.tenant, job)
    await world.fire(first + timedelta(seconds=1))
    assert await _instants(world, job) == []
    states = {row["state"] for row in await world.sql("SELECT state FROM history WHERE job = $1", job)}
    assert states == {State.SKIPPED}


async def test_a_window_that_an_edit_made_longer_counts(world: World):
    job, first = await _outage(world, mode="all", window="PT10M")
    assert await world.value("SELECT all_within FROM schedule") == 600
    await world.control.change(world.tenant, job, changed(catchUp={"mode": "all", "window": "PT30M"}))
    assert await world.value("SELECT all_within FROM schedule") == 1800
    await world.fire(first + HOUR - timedelta(seconds=15))
    assert len(await _instants(world, job)) == 30
