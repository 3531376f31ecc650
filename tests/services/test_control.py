"""Jobs: made once per key, changed while they can be, and over when they are over."""

import asyncio
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from editing import changed
from foliot.domain.errors import Conflict, InvalidField, NotFound
from foliot.domain.ids import decode, encode
from foliot.domain.outcome import Ending, Outcome
from foliot.domain.states import State
from foliot.services.insights.jobs import job_view
from foliot.wire.jobs import JobBody, draft_of
from world import PATIENCE, World

LATER = timedelta(hours=1)


def _at(hours: float) -> str:
    return (datetime.now(UTC) + timedelta(hours=hours)).isoformat()


def _draft(**fields):
    fields = {"name": "report", "handler": "noop", **fields}
    return draft_of(msgspec.json.decode(msgspec.json.encode(fields), type=JobBody))


async def _create(world: World, *, idempotency: str | None = None, fingerprint: bytes = b"", **fields) -> str:
    body = await world.control.create(
        world.tenant,
        _draft(**fields),
        key=idempotency,
        fingerprint=fingerprint,
        render=lambda row: msgspec.json.encode(job_view("acme", row)),
    )
    return msgspec.json.decode(body)["jobId"]


async def _change(world: World, job: int, **fields):
    return await world.control.change(world.tenant, job, changed(**fields))


async def _waiting(world: World):
    query = "SELECT due_at, payload FROM timer WHERE id > 0 UNION ALL SELECT due_at, payload FROM run WHERE id > 0"
    return [(row["due_at"], bytes(row["payload"])) for row in await world.sql(query)]


async def test_a_waiting_one_time_job_follows_its_new_definition(world: World):
    job = await world.job_id(scheduleAt=_at(1), payload=1)
    later = _at(2)
    await _change(world, job, payload=2, scheduleAt=later)
    assert await _waiting(world) == [(datetime.fromisoformat(later), b"2")]
    await _change(world, job, scheduleAt=_at(-1))
    await world.promoter.run_once()
    assert [run.payload for run in await (await world.worker()).claim()] == [b"2"]
    assert await world.count("history") == 0


async def test_a_one_time_job_whose_run_has_begun_cannot_be_changed(world: World):
    job = await world.job_id(scheduleAt=_at(-1))
    await world.promoter.run_once()
    with pytest.raises(Conflict):
        await _change(world, job, payload=2)
    await (await world.worker()).claim()
    with pytest.raises(Conflict):
        await _change(world, job, payload=2)
    assert (await world.control.read(world.tenant, job)).version == 1


@pytest.mark.parametrize("outcome", [Outcome.again(Ending.FAILED, "boom", LATER), Outcome.snoozed(LATER)])
@pytest.mark.parametrize("paused", [False, True])
async def test_nor_can_one_whose_run_was_tried_and_waits(world: World, outcome: Outcome, paused: bool):
    """Its instant has been: a second run of it would be one too many."""
    job = await world.job_id(scheduleAt=_at(-1))
    await world.promoter.run_once()
    worker = await world.worker()
    (run,) = await worker.claim()
    await worker.conclude([run], outcome)
    if paused:
        await world.control.pause(world.tenant, job)
    with pytest.raises(Conflict, match="already begun") as refused:
        await _change(world, job, payload=2, scheduleAt=_at(1))
    assert f"{encode('run', run.id)}:cancel" in (refused.value.hint or "")
    await world.canceller.cancel(world.tenant, run.id)
    await _change(world, job, payload=2, scheduleAt=_at(1))
    assert len(await _waiting(world)) == 1
    assert await world.value("SELECT count(*) FROM history WHERE state > 3") == 1


async def test_a_finished_one_time_job_does_not_run_again_because_it_was_renamed(world: World):
    at = _at(-1)
    job = await world.job_id(scheduleAt=at)
    await world.promoter.run_once()
    worker = await world.worker()
    await worker.settle(await worker.claim())
    row = await _change(world, job, name="renamed")
    assert (row.name, row.status) == ("renamed", "completed")
    assert await _waiting(world) == []
    row = await _change(world, job, scheduleAt=_at(1))
    assert row.status == "pending"
    assert len(await _waiting(world)) == 1


async def test_a_one_time_job_may_become_recurring_and_back(world: World):
    job = await world.job_id(scheduleAt=_at(1))
    await _change(world, job, every="PT24H", scheduleAt=None)
    assert await _waiting(world) == []
    assert await world.count("subscription") == 1
    await _change(world, job, every=None, scheduleAt=_at(1))
    assert len(await _waiting(world)) == 1
    assert await world.count("subscription") == 0


async def test_cancelling_a_one_time_job_ends_its_run_once(world: World):
    job = await world.job_id(scheduleAt=_at(1))
    for _ in range(2):
        assert (await world.control.cancel(world.tenant, job)).status == "cancelled"
    assert await _waiting(world) == []
    assert await world.value("SELECT array_agg(state) FROM history") == [State.CANCELLED]


async def test_a_job_that_is_over_is_neither_paused_nor_resumed_nor_changed(world: World):
    job = await world.job_id(scheduleAt=_at(1))
    await world.control.cancel(world.tenant, job)
    for deed in (world.control.pause(world.tenant, job), world.resume(job), _change(world, job, payload=2)):
        with pytest.raises(Conflict):
            await deed


async def test_another_tenants_job_is_not_there(world: World):
    globex = await world.another_tenant()
    job = await world.job_id(every="PT24H")
    control = world.control
    for deed in (
        control.read(globex, job),
        control.pause(globex, job),
        control.cancel(globex, job),
        control.resume(globex, job, lambda row: None),
        control.change(globex, job, changed()),
    ):
        with pytest.raises(NotFound):
            await deed
    assert await world.status(job) == "pending"


async def test_a_key_names_one_job_of_a_tenant(world: World):
    globex = await world.another_tenant()
    await world.job_id(key="nightly", every="PT24H")
    await world.job_id(tenant=globex, key="nightly", every="PT24H")
    with pytest.raises(Conflict):
        await world.job_id(key="nightly", every="PT48H")
    assert await world.count("job") == await world.count("subscription") == 2


async def test_put_creates_and_then_changes(world: World):
    def edit(row):
        return _draft(key="nightly", every="PT24H", payload=0 if row is None else row.version)

    first, is_new = await world.control.put(world.tenant, "nightly", edit)
    assert is_new
    second, is_new = await world.control.put(world.tenant, "nightly", edit)
    assert (second.id, second.version, second.payload, is_new) == (first.id, 2, b"1", False)


async def test_puts_of_one_new_key_at_once_create_one_job_and_all_succeed(world: World):
    def edit(row):
        return _draft(key="nightly", every="PT24H")

    answers = await asyncio.gather(*[world.control.put(world.tenant, "nightly", edit) for _ in range(5)])
    assert sum(is_new for _, is_new in answers) == 1
    assert len({row.id for row, _ in answers}) == 1
    assert await world.count("job") == 1


async def test_the_same_idempotency_key_creates_one_job(world: World):
    calls = [_create(world, idempotency="once", every="PT24H") for _ in range(20)]
    assert len(set(await asyncio.gather(*calls))) == 1
    assert await world.count("job") == await world.count("subscription") == 1


async def test_a_repeated_call_gets_its_first_answer_though_its_own_job_is_in_the_way(world: World):
    first = await _create(world, idempotency="once", key="nightly", every="PT24H")
    assert await _create(world, idempotency="once", key="nightly", every="PT24H") == first
    answers = [_create(world, idempotency="twice", key="weekly", every="PT24H") for _ in range(5)]
    assert len(set(await asyncio.gather(*answers))) == 1
    with pytest.raises(Conflict):
        await _create(world, idempotency="other", key="nightly", every="PT24H")


async def test_an_idempotency_key_stands_for_one_request(world: World):
    await _create(world, idempotency="once", fingerprint=b"a", every="PT24H")
    with pytest.raises(InvalidField):
        await _create(world, idempotency="once", fingerprint=b"b", every="PT48H")
    assert await world.count("job") == 1


async def test_resuming_many_jobs_at_once_does_not_use_up_the_connections(world: World):
    jobs = [await world.job_id(every="PT24H") for _ in range(12)]
    for job in jobs:
        await world.control.pause(world.tenant, job)
    world.specs._known.clear()
    rows = await asyncio.wait_for(asyncio.gather(*map(world.resume, jobs)), PATIENCE)
    assert {row.status for row in rows} == {"pending"}


async def test_a_change_gives_the_scheduler_a_hint(world: World):
    job = decode("job", await _create(world, every="PT24H"))
    world.hints.clear()
    await _change(world, job, every="PT48H")
    assert world.hints == ["foliot_due"]


async def test_of_two_who_take_a_cancelled_jobs_key_over_one_gets_it(world: World):
    former = await world.job_id(key="load")
    await world.control.cancel(world.tenant, former)
    made = await asyncio.gather(*(world.job_id(key="load") for _ in range(2)), return_exceptions=True)
    (winner,) = [each for each in made if isinstance(each, int)]
    (loser,) = [each for each in made if each != winner]
    assert isinstance(loser, Conflict)
    assert dict(await world.sql("SELECT id, key FROM job")) == {former: None, winner: "load"}
