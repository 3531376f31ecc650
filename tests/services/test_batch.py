"""Jobs made together: the same rows as one by one, all or none, and in nobody's way."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from foliot.domain.errors import Conflict, InvalidField
from foliot.domain.job import Draft
from foliot.services.control import definitions
from foliot.store import jobs
from foliot.store.vault import NO_VAULT
from foliot.wire.jobs import JobBody, draft_of
from world import World

DAY = timedelta(days=1)
ROWS = {
    "job": """
        SELECT job.name, job.key, job.tenant, job.kind, job.gate, job.exclusive, schedule.key AS schedule,
               job.run - job.id AS run, job.runs_left, job.timing, job.labels, job.payload, job.version,
               spec.tenant, spec.body, spec.priority, lane.queue, lane.handler_group
          FROM job JOIN spec ON spec.id = job.spec JOIN lane ON lane.id = spec.lane
          LEFT JOIN schedule ON schedule.id = job.schedule ORDER BY job.id""",
    "subscription": """
        SELECT job.name, schedule.key AS schedule, s.tenant, s.spec = job.spec AS spec, s.exclusive, s.closed,
               s.payload, CASE WHEN s.after > now() + interval '1 hour' THEN s.after END AS after,
               CASE WHEN s.until > s.after THEN s.until END AS until
          FROM subscription s JOIN job ON job.id = s.job JOIN schedule ON schedule.id = s.schedule ORDER BY job.id""",
    "schedule": """
        SELECT key, next_at, cursor BETWEEN now() - interval '1 minute' AND clock_timestamp() AS cursor
          FROM schedule ORDER BY key""",
    "run": """
        SELECT run.id = job.run AS mine, run.job - run.id AS job, run.origin, run.occurrence, run.scheduled_at,
               run.due_at, run.fence, run.rank, run.tenant, run.spec = job.spec AS spec, run.state, run.target,
               run.payload
          FROM run JOIN job ON job.id = run.job ORDER BY run.id""",
    "timer": """
        SELECT timer.id = job.run AS mine, timer.job - timer.id AS job, timer.origin, timer.scheduled_at, timer.due_at,
               timer.tenant, timer.spec = job.spec AS spec, timer.target, timer.payload
          FROM timer JOIN job ON job.id = timer.job ORDER BY timer.id""",
}
"""What stands in every table that creation writes to, without numbers and without what the time of day decides."""


def _draft(**fields: Any) -> Draft:
    fields = {"name": "report", "handler": "noop", **fields}
    return draft_of(msgspec.json.decode(msgspec.json.encode(fields), type=JobBody))


def _at(hours: float) -> str:
    return (datetime.now(UTC) + timedelta(hours=hours)).isoformat()


async def _create(world: World, *drafts: Draft, **more: Any) -> list[int]:
    return msgspec.json.decode(
        await world.control.create_batch(world.tenant, drafts, render=msgspec.json.encode, **more)
    )


async def _insert(world: World, connection: Any, *drafts: Draft) -> list[int]:
    """Make jobs in a transaction of the test's own."""
    specs = await world.specs.intern_batch(world.tenant, [draft.spec for draft in drafts])
    return await definitions.insert(connection, NO_VAULT, specs, drafts)


async def _rows(world: World) -> dict[str, list[tuple[Any, ...]]]:
    return {table: [tuple(row) for row in await world.sql(query)] for table, query in ROWS.items()}


async def test_a_batch_leaves_the_same_rows_as_its_jobs_one_by_one(world: World):
    drafts = [
        _draft(name="cron", cronExpression="0 9 1 1 *", timezone="Europe/Berlin", labels={"team": "growth"}),
        _draft(name="the same cron", cronExpression="0 9 1 JAN *", timezone="Europe/Berlin", payload={"n": 1}),
        _draft(name="with a key", key="nightly", every="PT24H", overlap="allow", maxRetries=0),
        _draft(name="anchored", every="PT24H", scheduleAt=_at(30)),
        _draft(name="not yet", cronExpression="0 9 1 1 *", scheduleAt=_at(48)),
        _draft(name="with an end", every="PT24H", endsAt=_at(72)),
        _draft(name="over already", every="PT24H", endsAt=_at(-72)),
        _draft(name="never again", cronExpression="0 9 1 1 *", scheduleAt=_at(-72), endsAt=_at(-48)),
        _draft(name="far", scheduleAt=_at(2), payload="far"),
        _draft(name="near", scheduleAt=_at(0.01), priority="high", queue="reports"),
        _draft(name="past", scheduleAt=_at(-1), handler="http://example.com/run"),
        _draft(name="on demand", handler={"type": "function", "name": "other"}, backoff={"initial": 5}),
    ]
    for draft in drafts:
        await world.control.create(world.tenant, draft, render=lambda _: b"")
    one_by_one = await _rows(world)
    assert [len(one_by_one[table]) for table in ROWS] == [12, 8, 4, 2, 1]
    await world.sql("TRUNCATE subscription, job, schedule, spec, lane RESTART IDENTITY")
    await world.sql("DELETE FROM run WHERE id > 0")
    await world.sql("DELETE FROM timer WHERE id > 0")
    world.specs._known.clear()
    assert len(await _create(world, *drafts)) == 12
    assert await _rows(world) == one_by_one


async def test_ids_come_in_the_order_of_the_drafts_however_many(world: World):
    ids = await _create(world, *[_draft(name=str(number), scheduleAt=_at(2)) for number in range(2_100)])
    assert len(set(ids)) == 2_100  # with their runs more than one block of ids
    names = await world.sql("SELECT name FROM job ORDER BY id")
    assert [row["name"] for row in names] == [str(number) for number in range(2_100)]
    assert ids == [row["id"] for row in await world.sql("SELECT id FROM job ORDER BY id")]
    assert await world.count("timer") == 2_100


async def test_many_specs_are_stored_once_each(world: World):
    drafts = [_draft(handler=f"http://example.com/{number % 100}", queue=f"q{number % 3}") for number in range(400)]
    first, second = await asyncio.gather(_create(world, *drafts), _create(world, *drafts[::-1]))
    assert await world.count("spec") == 300
    assert await world.count("lane") == 3
    query = "SELECT spec FROM job WHERE id = ANY ($1::bigint[]) ORDER BY id"
    there, back = [[row["spec"] for row in await world.sql(query, ids)] for ids in (first, second)]
    assert there == back[::-1]


async def test_a_key_that_is_taken_spoils_the_batch_and_is_named(world: World):
    await _create(world, _draft(key="nightly", every="PT24H"))
    before = await _rows(world)
    with pytest.raises(Conflict, match="a job with the key 'nightly' already"):
        await _create(world, _draft(scheduleAt=_at(2)), _draft(key="nightly", every="PT48H"), _draft(key="new"))
    many = [_draft(key=f"k{number}") for number in range(8)]
    await _create(world, *many)
    with pytest.raises(Conflict, match="jobs with the keys 'k0', 'k1', 'k2', 'k3', 'k4' and 3 more already"):
        await _create(world, *many, _draft(key="new"))
    assert len((await _rows(world))["job"]) == len(before["job"]) + 8
    assert (await _rows(world))["schedule"] == before["schedule"]
    assert await world.count("timer") == 0


async def test_a_repeated_batch_gets_its_first_answer_and_writes_nothing(world: World):
    drafts = [_draft(key="nightly", every="PT24H"), _draft(scheduleAt=_at(2))]
    first = await _create(world, *drafts, key="once", fingerprint=b"a")
    drawn = await world.value("SELECT last_value FROM id_block")
    assert await _create(world, *drafts, key="once", fingerprint=b"a") == first
    assert await world.value("SELECT last_value FROM id_block") == drawn
    with pytest.raises(InvalidField):
        await _create(world, *drafts, key="once", fingerprint=b"b")
    assert await world.count("job") == 2


async def test_the_same_batch_at_the_same_time_is_made_once(world: World):
    drafts = [_draft(key="nightly", every="PT24H"), _draft(every="PT24H"), _draft(scheduleAt=_at(2))]
    answers = await asyncio.gather(*[_create(world, *drafts, key="once") for _ in range(6)])
    assert len({tuple(answer) for answer in answers}) == 1
    assert await world.count("job") == 3
    assert await world.count("subscription") == 2


async def test_keys_are_taken_in_their_own_order_whatever_the_drafts(world: World):
    """Two batches with the same keys in opposite order would deadlock."""
    async with world.unfinished() as rival:
        connection = await rival.connection()
        await _insert(world, connection, _draft(key="m"))
        creating = asyncio.create_task(_create(world, *[_draft(key=key) for key in "zma"]))
        await world.until_waiting()
        await _insert(world, connection, _draft(key="z"))
    with pytest.raises(Conflict, match="jobs with the keys 'z', 'm' already"):
        await creating
    assert await world.count("job") == 2


async def test_new_schedules_are_made_in_the_order_of_their_keys(world: World):
    drafts = [_draft(every=f"PT{hours}H") for hours in (27, 26, 25)]
    async with world.unfinished() as rival:
        connection = await rival.connection()
        await _insert(world, connection, drafts[1])
        creating = asyncio.create_task(_create(world, *drafts))
        await world.until_waiting()
        await _insert(world, connection, drafts[0])
    await creating
    assert await world.value("SELECT count(*) FROM schedule WHERE next_at IS NOT NULL") == 3
    assert await world.count("subscription") == 5


async def test_schedules_are_locked_in_the_order_of_their_ids(world: World):
    drafts = [_draft(every=f"PT{hours}H") for hours in (25, 26, 27)]
    for draft in drafts:
        await _create(world, draft)
    _, middle, highest = [row["id"] for row in await world.sql("SELECT id FROM schedule ORDER BY id")]
    async with world.unfinished() as rival:
        await rival.run("lock_schedules", [middle])
        creating = asyncio.create_task(_create(world, *drafts[::-1]))
        await world.until_waiting()
        await rival.run("lock_schedules", [highest])
    await creating
    assert await world.count("subscription") == 6


async def test_batches_with_the_same_schedules_in_opposite_order_are_both_made(world: World):
    drafts = [_draft(every=f"PT{24 * 3600 + number}S") for number in range(400)]
    for made in (800, 1_600):  # first the schedules are new, then they are there
        await asyncio.gather(_create(world, *drafts), _create(world, *drafts[::-1]))
        assert await world.count("subscription") == made
        assert await world.value("SELECT count(*) FROM schedule WHERE next_at IS NOT NULL") == 400


async def test_a_batch_waits_for_a_fire_and_owns_what_comes_after_it(world: World):
    await world.job_id(every="PT24H")
    schedule = await world.value("SELECT id FROM schedule")
    drafts = [_draft(every="PT24H") for _ in range(3)]
    async with world.unfinished() as firing:
        await firing.run("lock_to_fire", [schedule])
        creating = asyncio.create_task(_create(world, *drafts))
        await world.until_waiting()
        released = await world.value("SELECT clock_timestamp()")
    await creating
    assert await world.value("SELECT count(*) FROM subscription WHERE after > $1", released) == 3


async def test_a_fire_waits_for_a_batch_and_fires_its_jobs_too(world: World):
    first = await world.job_id(every="PT24H")
    at = await world.next_at()
    async with world.unfinished() as owner:
        made = await _insert(world, await owner.connection(), *[_draft(every="PT24H") for _ in range(3)])
        firing = asyncio.create_task(world.advance(at))
        await world.until_waiting()
    assert await firing == 1
    await world.fire(at)
    fired = {row["job"] for row in await world.sql("SELECT job FROM run WHERE id > 0 AND scheduled_at = $1", at)}
    assert fired == {first, *made}


async def test_schedules_that_others_use_are_locked_last(world: World, monkeypatch):
    await world.job_id(every="PT24H")
    shared = await world.value("SELECT id FROM schedule")
    locked: list[set[int]] = []

    async def lock(connection, schedules, real=jobs.lock_schedules):
        locked.append(set(schedules))
        return await real(connection, schedules)

    monkeypatch.setattr(jobs, "lock_schedules", lock)
    await _create(world, _draft(every="PT24H"), _draft(every="PT36H"), _draft(scheduleAt=_at(2)))
    own = await world.value("SELECT id FROM schedule WHERE id <> $1", shared)
    assert locked == [{own}, {shared}]
    assert await world.value("SELECT count(*) FROM schedule WHERE next_at IS NOT NULL") == 2
    assert await world.count("subscription") == 3


async def test_a_batch_wakes_the_schedules_that_slept_and_not_back_in_time(world: World):
    await world.control.cancel(world.tenant, await world.job_id(every="PT24H"))
    at = await world.next_at()
    await world.fire(at)
    assert await world.next_at() is None
    await _create(world, _draft(every="PT24H"), _draft(every="PT24H"))
    assert await world.next_at() == at + DAY  # never an instant that had its firing


async def test_a_batch_gives_the_scheduler_one_hint(world: World):
    await _create(world, *[_draft(every="PT24H") for _ in range(3)])
    assert world.hints == ["foliot_due"]
