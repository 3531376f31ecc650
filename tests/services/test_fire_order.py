"""Large firings and small ones side by side: nobody waits for all of the others."""

from datetime import timedelta

from foliot.services import fire
from services.conftest import InChunks
from world import World

MINUTE = timedelta(minutes=1)


async def _crowd(world: World, size: int) -> int:
    job = await world.job_id(every="PT24H", overlap="allow")
    await world.sql(
        "INSERT INTO subscription SELECT schedule, job + n, after, until, tenant, spec, exclusive, closed, payload"
        "  FROM subscription, generate_series(1, $1::int) AS n",
        size - 1,
    )
    return job


async def test_a_small_firing_does_not_wait_for_a_large_one(world: World, in_chunks: InChunks):
    in_chunks(10)
    await _crowd(world, 100)
    single = await world.job_id(every="PT12H", overlap="allow")
    at = await world.value("SELECT max(next_at) FROM schedule")
    await world.sql("UPDATE schedule SET next_at = $1, cursor = $1::timestamptz - interval '1 day'", at)
    await world.firer.run_once(at)
    assert await world.value("SELECT count(*) FROM run WHERE job = $1", single) == 1
    assert await world.count("run") == 11
    await world.fire(at)
    assert await world.count("run") == 101


async def test_more_schedules_than_a_portion_holds_are_all_moved_on_in_their_round(world: World, in_chunks: InChunks):
    for hours in range(1, 6):
        await world.job_id(every=f"PT{hours}H")
    at = await world.value("SELECT max(next_at) FROM schedule")
    await world.sql("UPDATE schedule SET next_at = $1, cursor = $1::timestamptz - interval '1 day'", at)
    in_chunks(2)
    assert await world.firer.run_once(at) == 5 + 2  # schedules, and as many of their firings as a portion holds
    assert await world.value("SELECT count(*) FROM schedule WHERE next_at > $1", at) == 5
    await world.fire(at)
    assert await world.count("run") == 5


async def test_a_large_firing_goes_on_while_small_ones_keep_coming(world: World, in_chunks: InChunks):
    in_chunks(10)
    await _crowd(world, 40)
    await world.job_id(every="PT1M", overlap="allow")
    at = await world.value("SELECT max(next_at) FROM schedule")
    await world.sql("UPDATE schedule SET next_at = $1, cursor = $1::timestamptz - interval '1 day'", at)
    for number in range(4):
        await world.firer.run_once(at + number * MINUTE)
    assert await world.value("SELECT count(*) FROM run WHERE scheduled_at = $1 AND id > 0", at) == 41


async def test_what_is_late_has_its_turns_while_others_keep_coming(world: World, monkeypatch):
    monkeypatch.setattr(fire, "LATE_TURN", 1)
    await world.job_id(every="PT24H", overlap="allow")
    at = await world.next_at()
    now = at + 2 * MINUTE
    stream = await world.job_id(every="PT1M", overlap="allow")
    await world.sql(
        "UPDATE schedule SET next_at = $1, cursor = $1::timestamptz - interval '1 day'"
        "  WHERE id = (SELECT schedule FROM job WHERE id = $2)",
        now,
        stream,
    )
    made = []
    for number in range(2):
        await world.firer.run_once(now + number * MINUTE)
        made.append(await world.value("SELECT count(*) FROM run WHERE id > 0 AND job <> $1", stream))
    assert made == [0, 1]
    assert await world.value("SELECT count(*) FROM run WHERE job = $1", stream) == 2
