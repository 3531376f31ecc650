"""The occurrence ledger of one-time jobs: their instant has a fate like any other."""

from datetime import UTC, datetime, timedelta

from foliot.domain.ids import encode
from foliot.domain.outcome import Ending, Outcome
from telling import told_of
from world import World

HOUR = timedelta(hours=1)


async def _job(world: World, away: timedelta, **fields) -> tuple[int, datetime]:
    """A one-time job so far away from now, and its instant."""
    at = datetime.now(UTC) + away
    return await world.job_id(scheduleAt=at.isoformat(), **fields), at


async def _told(world: World, job: int) -> list[tuple[datetime, str, str | None, str | None]]:
    told = await told_of(world, job, until=datetime.now(UTC) + 30 * HOUR)
    return [(each.at, each.status, each.reason, each.run_status) for each in told]


async def test_an_instant_to_come_is_expected_and_one_that_has_come_is_due_until_it_is_promoted(world: World):
    far, then = await _job(world, HOUR)
    assert await _told(world, far) == [(then, "expected", None, None)]
    assert await told_of(world, far) == []
    near, now = await _job(world, -timedelta(seconds=1))
    assert await _told(world, near) == [(now, "due", None, None)]


async def test_it_fires_with_its_run_whether_that_waits_runs_or_is_over(world: World):
    job, at = await _job(world, -timedelta(minutes=5))
    await world.promoter.run_once()
    assert await _told(world, job) == [(at, "fired", None, "pending")]
    worker = await world.worker()
    taken = await worker.claim()
    assert await _told(world, job) == [(at, "fired", None, "running")]
    await worker.settle(taken)
    (told,) = await told_of(world, job, status="fired")
    assert (told.at, told.run_status, told.due_at) == (at, "completed", at)
    assert told.run_id == encode("run", await world.value("SELECT run FROM job WHERE id = $1", job))
    assert await told_of(world, job, status="missed") == []


async def test_a_run_that_waits_for_its_next_attempt_has_fired(world: World):
    job, at = await _job(world, -timedelta(minutes=5), maxRetries=3)
    await world.promoter.run_once()
    worker = await world.worker()
    await worker.conclude(await worker.claim(), Outcome.again(Ending.FAILED, "no", HOUR))
    assert [each[:2] for each in await _told(world, job)] == [(at, "fired")]


async def test_a_pause_holds_its_run_and_skips_nothing(world: World):
    far, then = await _job(world, HOUR)
    near, now = await _job(world, -timedelta(seconds=1))
    for job in (far, near):
        await world.control.pause(world.tenant, job)
    await world.promoter.run_once()
    assert await _told(world, far) == [(then, "expected", "the job is paused", None)]
    assert await _told(world, near) == [(now, "due", "the job is paused", None)]
    await world.resume(near)
    await world.promoter.run_once()
    assert await _told(world, near) == [(now, "fired", None, "pending")]


async def test_what_was_cancelled_before_it_ran_is_skipped_and_says_so(world: World):
    for away in (HOUR, -timedelta(seconds=1)):
        job, at = await _job(world, away)
        await world.control.cancel(world.tenant, job)
        assert await _told(world, job) == [(at, "skipped", "the job was cancelled", None)]


async def test_a_job_that_was_moved_has_the_instants_that_came_and_not_those_that_did_not(world: World):
    job, first = await _job(world, -timedelta(minutes=5))
    await world.promoter.run_once()
    worker = await world.worker()
    await worker.settle(await worker.claim())
    for hours in (5, 6):
        moved = datetime.now(UTC) + hours * HOUR
        await world.change(job, scheduleAt=moved.isoformat())
    assert await _told(world, job) == [(first, "fired", None, "completed"), (moved, "expected", None, None)]


async def test_an_instant_that_came_in_a_pause_and_gave_way_to_another_is_skipped(world: World):
    job, first = await _job(world, -timedelta(minutes=5))
    await world.control.pause(world.tenant, job)
    moved = datetime.now(UTC) + HOUR
    await world.change(job, scheduleAt=moved.isoformat())
    assert await _told(world, job) == [
        (first, "skipped", "the job was changed before it ran", None),
        (moved, "expected", "the job is paused", None),
    ]


async def test_a_job_that_began_to_recur_has_both_kinds_newest_first_on_every_page(world: World):
    job, first = await _job(world, -timedelta(minutes=5))
    await world.promoter.run_once()
    worker = await world.worker()
    await worker.settle(await worker.claim())
    await world.change(job, every="PT1M", scheduleAt=None)
    told = await told_of(world, job, until=datetime.now(UTC) + timedelta(minutes=15), limit=4)
    assert [each.at for each in told] == sorted(each.at for each in told)
    assert [(told[0].at, told[0].status)] == [(first, "fired")]
    assert len(told) in {15, 16, 17}


async def test_an_instant_whose_run_nobody_knows_is_called_so(world: World):
    job, at = await _job(world, -timedelta(minutes=5))
    await world.sql("DELETE FROM run WHERE job = $1", job)
    assert await _told(world, job) == [(at, "unaccounted", None, None)]


async def test_a_job_that_nothing_fires_has_no_fire_times(world: World):
    assert await _told(world, await world.job_id(onDemand=True)) == []
