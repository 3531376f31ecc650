"""A job with maxRuns: so many runs, then it is over."""

from datetime import datetime, timedelta

from editing import changed
from world import World

MINUTE = timedelta(minutes=1)


async def _instants(world: World, job: int) -> list[datetime]:
    return [row[0] for row in await world.sql("SELECT scheduled_at FROM run WHERE job = $1 ORDER BY 1", job)]


async def test_max_runs_ends_the_job_after_so_many_runs(world: World):
    job = await world.job_id(every="PT1M", overlap="allow", maxRuns=3)
    first = await world.next_at()
    for number in range(5):
        await world.fire(first + number * MINUTE)
    assert await _instants(world, job) == [first + number * MINUTE for number in range(3)]
    assert await world.value("SELECT runs_left FROM job WHERE id = $1", job) == 0
    assert await world.value("SELECT until FROM subscription WHERE job = $1", job) == first + 2 * MINUTE


async def test_max_runs_counts_what_is_caught_up_too(world: World):
    job = await world.job_id(every="PT1M", overlap="allow", maxRuns=3, catchUp={"mode": "all"})
    first = await world.next_at()
    await world.fire(first + 10 * MINUTE + timedelta(seconds=5))
    assert len(await _instants(world, job)) == 3


async def test_a_skip_does_not_use_up_a_run(world: World):
    job = await world.job_id(every="PT1M", maxRuns=2)
    first = await world.next_at()
    await world.fire(first)
    await world.fire(first + MINUTE)
    assert await world.value("SELECT runs_left FROM job WHERE id = $1", job) == 1


async def test_max_runs_goes_on_through_a_pause_and_through_edits_of_other_fields(world: World):
    job = await world.job_id(every="PT1M", overlap="allow", maxRuns=2)
    first = await world.next_at()
    await world.fire(first)
    await world.control.pause(world.tenant, job)
    await world.resume(job)
    await world.control.change(world.tenant, job, changed(name="renamed"))
    assert await world.value("SELECT runs_left FROM job WHERE id = $1", job) == 1
    await world.control.change(world.tenant, job, changed(maxRuns=5))
    assert await world.value("SELECT runs_left FROM job WHERE id = $1", job) == 5


async def test_what_is_on_time_takes_the_runs_before_what_is_late_and_the_ledger_tells_of_each(world: World):
    job = await world.job_id(every="PT20S", overlap="allow", maxRuns=3, catchUp={"mode": "all"})
    first = await world.next_at()
    await world.fire(first + timedelta(seconds=65))
    await world.fire(first + timedelta(seconds=85))
    page = await world.ledger.occurrences(
        world.tenant, job, since=None, until=first + 2 * MINUTE, status=None, limit=10, cursor=None
    )
    told = [(each.at - first, each.status, each.reason) for each in reversed(page.items)]
    assert told == [
        (timedelta(seconds=0), "fired", None),
        (timedelta(seconds=20), "skipped", "the job has had all its runs"),
        (timedelta(seconds=40), "fired", None),
        (timedelta(seconds=60), "fired", None),
    ]
