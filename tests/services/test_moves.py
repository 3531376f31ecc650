"""A job that moves between two schedules of the same minute, and owners who act between chunks: each instant once."""

from datetime import timedelta
from itertools import permutations

import pytest

from editing import changed
from services.conftest import InChunks
from world import World

DAY = timedelta(days=1)


async def _two_schedules(world: World) -> tuple[int, dict[str, int]]:
    """A job on the first of two schedules that fire at the same instants; both are due."""
    late = {"mode": "all", "window": "P2D"}
    job = await world.job_id(cronExpression="0 0 * * *", overlap="allow", catchUp=late)
    await world.job_id(every="PT24H", overlap="allow", catchUp=late)
    rows = await world.sql("SELECT key, id FROM schedule")
    found = {"first" if row["key"].startswith("cron") else "second": row["id"] for row in rows}
    await world.make_overdue(by=DAY)
    assert await world.value("SELECT count(DISTINCT next_at) FROM schedule") == 1
    return job, found


async def _fire_only(world: World, schedule: int) -> None:
    """Fire one schedule to the end, the other being held by an edit that takes its time."""
    others = [row["id"] for row in await world.sql("SELECT id FROM schedule WHERE id <> $1", schedule)]
    async with world.unfinished() as owner:
        await owner.run("lock_schedules", others)
        while await world.value(
            "SELECT next_at <= clock_timestamp()"
            "       OR EXISTS (SELECT FROM firing WHERE schedule = $1 AND closed_at IS NULL)"
            "  FROM schedule WHERE id = $1",
            schedule,
        ):
            await world.firer.run_once()


@pytest.mark.parametrize("order", list(permutations(["move", "first", "second"])), ids="-".join)
async def test_an_instant_belongs_to_one_of_them_whatever_comes_first(world: World, order: tuple[str, ...]):
    job, schedules = await _two_schedules(world)
    at = await world.value("SELECT min(next_at) FROM schedule")
    for step in order:
        if step == "move":
            await world.control.change(world.tenant, job, changed(cronExpression=None, timezone=None, every="PT24H"))
        else:
            await _fire_only(world, schedules[step])
    runs = await world.sql("SELECT scheduled_at, count(*) AS runs FROM run WHERE job = $1 GROUP BY 1", job)
    assert [tuple(row) for row in runs] == [(at, 1)]
    told = await world.ledger.occurrences(
        world.tenant, job, since=at - DAY / 2, until=at, status=None, limit=9, cursor=None
    )
    assert [(each.at, each.status) for each in told.items] == [(at, "fired")]


@pytest.mark.parametrize("act", ["pause", "cancel", "edit", "move"])
async def test_what_an_owner_does_between_chunks_touches_his_job_alone_and_is_on_record(
    world: World, in_chunks: InChunks, act: str
):
    in_chunks(2)
    late = {"mode": "all", "window": "P2D"}
    jobs = [await world.job_id(every="PT24H", overlap="allow", payload=number, catchUp=late) for number in range(5)]
    await world.make_overdue(by=DAY)
    at = await world.next_at()
    while not await world.count("run"):
        await world.firer.run_once()
    assert await world.count("run") < len(jobs)
    match act:
        case "pause":
            await world.control.pause(world.tenant, jobs[4])
        case "cancel":
            await world.control.cancel(world.tenant, jobs[4])
        case "edit":
            await world.control.change(world.tenant, jobs[4], changed(payload="new"))
        case "move":
            await world.control.change(world.tenant, jobs[4], changed(every="PT12H"))
    await world.fire()
    fired = {row["job"]: row["payload"] for row in await world.sql("SELECT job, payload FROM run WHERE id > 0")}
    kept = jobs[:4] if act in {"pause", "cancel"} else jobs
    assert fired == {job: str(jobs.index(job)).encode() for job in kept}
    told = await world.ledger.occurrences(
        world.tenant, jobs[4], since=at - DAY / 2, until=at, status=None, limit=9, cursor=None
    )
    assert [each.status for each in told.items] == ["skipped" if act in {"pause", "cancel"} else "fired"]
