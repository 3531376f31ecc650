"""Back-fills by both clients."""

from datetime import UTC, datetime

import pytest

from foliot import ApiError
from foliot.domain.errors import InvalidField
from operating import served_operations
from sdk.serving import Served
from sdk.test_clients import away
from worker.crew import Crew, noop
from world import World

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
LAST = datetime(2026, 1, 10, tzinfo=UTC)


async def test_a_backfill_is_asked_for_and_waited_for(foliot: Served, crew: Crew, world: World):
    client = foliot.client()
    job = await away(client.create_job, "nightly", "noop", every="PT24H")
    async with served_operations(world), crew.work({"noop": noop}):
        begun = await away(client.backfill, job.id, FIRST, LAST, concurrency=5, name="mend january")
        assert (begun.id[:3], begun.name, begun.is_over) == ("op_", "mend january", False)
        assert (await away(begun.wait, 20)) is begun
    assert (begun.status, begun.is_over, begun.progress["succeeded"]) == ("completed", True, 10)
    assert "status='completed'" in repr(begun)
    async with served_operations(world), crew.work({"noop": noop}), foliot.aio() as aio:
        again = await aio.backfill(job.id, "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z", reprocess="all")
        assert (await again.wait(20)).progress["succeeded"] == 3
        assert (await aio.operation(again.id)).status == "completed"


async def test_a_dry_run_is_over_at_once(foliot: Served):
    client = foliot.client()
    job = await away(client.create_job, "nightly", "noop", every="PT24H")
    planned = await away(client.backfill, job.id, FIRST, LAST, dry_run=True)
    assert (planned.status, planned.is_over, planned.plan["toRun"]) == ("planned", True, 10)
    assert await away(client.operations) == []


async def test_operations_are_listed_and_cancelled(foliot: Served):
    client = foliot.client()
    job = await away(client.create_job, "nightly", "noop", every="PT24H")
    begun = await away(client.backfill, job.id, FIRST, LAST, idempotency_key="once")
    assert (await away(client.backfill, job.id, FIRST, LAST, idempotency_key="once")).id == begun.id
    with pytest.raises(TimeoutError, match=f"{begun.id} is still pending"):
        await away(begun.wait, 0.05)
    assert [each.id for each in await away(client.operations, job=job.id, status="pending")] == [begun.id]
    async with foliot.aio() as aio:
        assert [each.id for each in await aio.operations(limit=1)] == [begun.id]
        stopped = await aio.cancel_operation(begun.id)
        assert (stopped.status, stopped.is_over) == ("cancelled", True)
    assert (await away(client.cancel_operation, begun.id)).status == "cancelled"
    with pytest.raises(ApiError, match="no such operation"):
        await away(client.operation, "op_nothing")


async def test_an_instant_without_an_offset_is_not_sent(foliot: Served):
    with pytest.raises(InvalidField, match="start: has no offset"):
        foliot.client().backfill("job_x", datetime(2026, 1, 1), LAST)  # noqa: DTZ001 - the point
