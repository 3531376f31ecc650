"""Asking for a back-fill: what is refused and why, what a dry run says, and who sees it."""

from datetime import timedelta

import msgspec
import pytest

from filling import DAYS, FIRST, LAST, asked, begin, daily, finish
from foliot.domain.backfill import Order, Reprocess
from foliot.domain.errors import Conflict, InvalidField, NotFound
from foliot.services.upkeep import Housekeeper
from foliot.wire.operations import OperationView
from operating import look, operator, settle_down
from world import World, utc

TABLES = ("operation", "operation_item", "run", "ready", "history", "idempotency")


async def _plan(world: World, job: int, **fields) -> OperationView:
    return await world.operations.plan_backfill(world.tenant, job, asked(**fields))


async def test_a_dry_run_says_what_would_be_run_and_writes_nothing(world: World):
    job = await daily(world)
    planned = await _plan(world, job, order=Order.NEWEST)
    assert (planned.operation_id, planned.status, planned.created_at) == (None, "planned", None)
    assert planned.plan.to_run == planned.progress.total == 10
    assert planned.plan.first == DAYS[:4:-1]
    assert planned.plan.last == DAYS[4::-1]
    assert [await world.count(table) for table in TABLES] == [0] * len(TABLES)


async def test_a_backfill_keeps_what_was_asked_for(world: World):
    job = await daily(world, name="report")
    made = await look(world, await begin(world, job, reprocess=Reprocess.ALL))
    assert (made.kind, made.name, made.status) == ("backfill", "back-fill of report", "pending")
    assert made.arguments == {
        "from": "2026-01-01T00:00:00Z",
        "until": "2026-01-10T00:00:00Z",
        "concurrency": 3,
        "order": "oldest",
        "reprocess": "all",
    }
    named = await begin(world, await daily(world), name="mend january")
    assert (await look(world, named)).name == "mend january"


async def test_both_ends_of_the_range_are_included(world: World):
    job = await daily(world)
    assert (await _plan(world, job, since=FIRST, until=FIRST)).plan.first == [FIRST]
    late = FIRST + timedelta(microseconds=1)
    assert (await _plan(world, job, since=late)).plan.first[0] == DAYS[1]
    assert (await _plan(world, job, until=LAST - timedelta(microseconds=1))).plan.to_run == 9


@pytest.mark.parametrize("kind", [{"onDemand": True}, {"scheduleAt": "2036-01-01T00:00:00Z"}])
async def test_a_job_without_a_recurrence_has_no_past_to_fill(world: World, kind: dict):
    with pytest.raises(Conflict, match="no recurrence"):
        await begin(world, await world.job_id(**kind))


async def test_the_range_must_be_one_and_lie_in_the_past(world: World):
    job = await daily(world)
    now = await world.value("SELECT clock_timestamp()")
    with pytest.raises(InvalidField, match="future") as refused:
        await begin(world, job, until=now + timedelta(seconds=20))
    assert refused.value.field == "until"
    with pytest.raises(InvalidField, match="later than until") as refused:
        await begin(world, job, since=LAST, until=FIRST)
    assert refused.value.field == "from"
    with pytest.raises(InvalidField, match=r"no instant .*2026-01-02T00:00:00Z"):
        await begin(world, job, since=FIRST + timedelta(hours=1), until=FIRST + timedelta(hours=2))
    assert await world.count("operation") == 0


@pytest.mark.parametrize(
    ("fields", "number"),
    [({"every": "PT1M"}, "129,601 instants"), ({"cronExpression": "* * * * *"}, "more than 100,000 instants")],
)
async def test_a_range_of_too_many_instants_is_refused_with_their_number(world: World, fields: dict, number: str):
    job = await world.job_id(**fields)
    with pytest.raises(InvalidField, match=number) as refused:
        await begin(world, job, until=FIRST + timedelta(days=90))
    assert "end it at 2026-03-11T10:39:00Z" in refused.value.hint


async def test_as_many_instants_as_allowed_are_written_at_once(world: World):
    job = await world.job_id(every="PT1M")
    operation = await begin(world, job, until=FIRST + timedelta(minutes=99_999), concurrency=1000)
    assert await world.count("operation_item") == 100_000
    async with operator(world) as duty:
        assert await duty.run_once() == 1000
    assert (await look(world, operation)).progress.running == 1000


async def test_a_job_that_is_paused_or_over_is_refused_with_what_to_do(world: World):
    job = await daily(world)
    await world.control.pause(world.tenant, job)
    with pytest.raises(Conflict, match="resume it first"):
        await begin(world, job)
    with pytest.raises(Conflict, match="resume it first"):
        await _plan(world, job)
    await world.control.cancel(world.tenant, job)
    with pytest.raises(Conflict, match="create a new one"):
        await begin(world, job)


async def test_instants_that_another_backfill_is_at_are_refused_with_its_name(world: World):
    job = await daily(world)
    await begin(world, job, until=DAYS[4])
    with pytest.raises(Conflict, match=r"op_\w+ fills some of the same"):
        await begin(world, job, since=DAYS[4])
    await begin(world, job, since=DAYS[5])  # beside it
    await begin(world, await daily(world))  # another job
    async with operator(world) as duty:
        await finish(world, duty)
    again = await look(world, await begin(world, job))
    assert (again.status, again.progress.skipped) == ("completed", 10)  # nothing is left to do
    assert again.finished_at is not None


async def test_an_operation_that_is_over_cannot_be_cancelled(world: World):
    operation = await begin(world, await daily(world))
    async with operator(world) as duty:
        await finish(world, duty)
    with pytest.raises(Conflict, match="over"):
        await world.operations.cancel(world.tenant, operation)


async def test_cancelling_twice_is_cancelling_once(world: World):
    operation = await begin(world, await daily(world))
    first = await world.operations.cancel(world.tenant, operation)
    assert (first.status, first.progress.submitted) == ("cancelled", 0)
    second = await world.operations.cancel(world.tenant, operation)
    assert second.finished_at == first.finished_at


async def test_another_tenant_sees_nothing_of_it(world: World):
    globex = await world.another_tenant()
    job = await daily(world)
    operation = await begin(world, job)
    for deed in (
        world.operations.operation(globex, operation),
        world.operations.cancel(globex, operation),
        world.operations.backfill(globex, job, asked()),
        world.operations.plan_backfill(globex, job, asked()),
    ):
        with pytest.raises(NotFound):
            await deed
    page = await world.operations.operations(globex, status=None, job=job, limit=10, cursor=None)
    assert page.items == []
    assert (await look(world, operation)).status == "pending"


async def test_operations_are_listed_newest_first_and_filtered(world: World):
    jobs = [await daily(world) for _ in range(3)]
    made = [await begin(world, job) for job in jobs]
    await world.operations.cancel(world.tenant, made[0])

    async def listed(status=None, job=None, limit=10, cursor=None):
        page = await world.operations.operations(world.tenant, status=status, job=job, limit=limit, cursor=cursor)
        return [each.job_id for each in page.items], page.next_cursor

    names = [(await look(world, operation)).job_id for operation in reversed(made)]
    assert await listed() == (names, None)
    first, cursor = await listed(limit=2)
    assert (first, await listed(limit=2, cursor=cursor)) == (names[:2], (names[2:], None))
    assert await listed(status="cancelled") == (names[2:], None)
    assert await listed(job=jobs[1]) == ([names[1]], None)
    with pytest.raises(InvalidField, match="no operation has the status"):
        await listed(status="scheduled")


async def test_a_repeated_call_gets_the_first_answer(world: World):
    job = await daily(world)
    first = await world.operations.backfill(world.tenant, job, asked(), key="k", fingerprint=b"1")
    async with operator(world) as duty:
        await settle_down(duty)
    assert await world.operations.backfill(world.tenant, job, asked(), key="k", fingerprint=b"1") == first
    with pytest.raises(InvalidField, match="different request"):
        await world.operations.backfill(world.tenant, job, asked(), key="k", fingerprint=b"2")
    assert msgspec.json.decode(first)["status"] == "pending"
    assert await world.count("operation") == 1


async def test_finished_operations_are_removed_after_thirty_days(world: World):
    old, young, unfinished = [await begin(world, await daily(world)) for _ in range(3)]
    for operation in (old, young):
        await world.operations.cancel(world.tenant, operation)
    await world.sql("UPDATE operation SET finished_at = finished_at - interval '31 days' WHERE id = $1", old)
    housekeeper = Housekeeper(world.database)
    await housekeeper.run_once()
    await housekeeper.close()
    assert {row["id"] for row in await world.sql("SELECT id FROM operation")} == {young, unfinished}
    assert await world.value("SELECT count(DISTINCT operation) FROM operation_item") == 2


async def test_daylight_saving_holds_in_the_past_too(world: World):
    job = await world.job_id(cronExpression="30 2 * * *", timezone="Europe/Berlin")
    plan = (await _plan(world, job, since=utc("2026-03-28 00:00"), until=utc("2026-03-30 12:00"))).plan
    assert plan.first == [utc("2026-03-28 01:30"), utc("2026-03-29 01:00"), utc("2026-03-30 00:30")]
