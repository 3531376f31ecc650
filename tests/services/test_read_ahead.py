"""Reading ahead: what comes into sight is read once, and nothing else."""

from datetime import timedelta

import pytest

from foliot.services import read_ahead
from foliot.services.read_ahead import ReadAhead
from plans import explain
from world import World

SIGHT = timedelta(hours=1)


@pytest.fixture(autouse=True)
def _far_sighted(monkeypatch):
    """No machine is so slow that what comes is there before it was read."""
    monkeypatch.setattr(read_ahead, "LEAD", SIGHT)


async def _comes_in(world: World, job: int, distance: timedelta) -> None:
    await world.sql(
        "UPDATE schedule SET cursor = clock_timestamp() - interval '1 day', next_at = clock_timestamp() + $2::interval"
        "  WHERE id = (SELECT schedule FROM job WHERE id = $1)",
        job,
        distance,
    )


async def test_the_jobs_of_what_comes_soon_are_read_once(world: World):
    reader = ReadAhead(world.database)
    soon, later, late = [await world.job_id(every=f"PT{hours}H") for hours in (24, 48, 72)]
    await _comes_in(world, soon, SIGHT / 4)
    await _comes_in(world, later, 2 * SIGHT)
    await _comes_in(world, late, -SIGHT)  # firing reads that for itself
    assert [await reader.run_once(), await reader.run_once()] == [1, 0]
    await _comes_in(world, later, SIGHT / 2)
    assert await reader.run_once() == 1
    await reader.close()


async def test_only_our_own_shards_are_read(world: World):
    job = await world.job_id(every="PT24H")
    await _comes_in(world, job, SIGHT / 2)
    shard = await world.value("SELECT shard FROM schedule WHERE next_at IS NOT NULL")
    for shards, members in ((frozenset[int](), 0), (frozenset({(shard + 1) % 256}), 0), (frozenset({shard}), 1)):
        reader = ReadAhead(world.database, lambda shards=shards: shards)
        assert await reader.run_once() == members
        await reader.close()


async def test_of_a_large_schedule_no_more_is_read_than_a_chunk(world: World):
    job = await world.job_id(every="PT24H", overlap="allow")
    await world.sql(
        "INSERT INTO subscription SELECT schedule, job + n, after, until, tenant, spec, exclusive, closed, payload"
        "  FROM subscription, generate_series(1, 5000) AS n"
    )
    await _comes_in(world, job, SIGHT / 2)
    reader = ReadAhead(world.database)
    plan = await explain(reader._line, "read_ahead", None, SIGHT, None)
    assert plan.rows_read("subscription") == 2_000
    assert all(node["Node Type"] != "Index Only Scan" for node in plan.nodes if node.get("Alias") == "s")
    await reader.close()
