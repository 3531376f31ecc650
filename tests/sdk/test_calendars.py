"""Calendars through both clients, and declared by workers."""

from datetime import UTC, date, datetime

import pytest

from foliot import ApiError, AsyncFoliot, Worker
from foliot.domain.errors import InvalidField
from sdk.serving import Served
from sdk.test_clients import away

ICS = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20301226\nEND:VEVENT\nEND:VCALENDAR"


async def test_the_client_that_waits_writes_imports_reads_and_deletes(foliot: Served):
    client = foliot.client()
    made = await away(
        client.put_calendar, "work", timezone="UTC", business_days=["MON", "TUE"], holidays=[date(2030, 12, 25)]
    )
    assert (made.name, made.business_days, made.pending_jobs) == ("work", ["MON", "TUE"], 0)
    imported = await away(client.import_calendar, "work", ICS, mode="add")
    assert (imported.events, imported.unread, len(imported.holidays)) == (1, [], 2)
    closed = await away(
        client.preview_calendar, "work", since=datetime(2030, 12, 24, tzinfo=UTC), until="2030-12-30T00:00:00Z"
    )
    assert closed == [{"from": "2030-12-25T00:00:00Z", "until": "2030-12-30T00:00:00Z", "names": []}]
    assert [each.name for each in await away(client.list_calendars)] == ["work"]
    assert (await away(client.delete_calendar, "work")).version == 2


async def test_the_client_for_the_loop_does_the_same(foliot: Served):
    async with AsyncFoliot(foliot.url, foliot.key) as client:
        await client.put_calendar("work", timezone="UTC")
        assert (await client.import_calendar("work", ICS)).events == 1
        job = await client.create_job("x", "noop", every=3600, calendar={"name": "work", "rule": "next"})
        assert job.calendar == {"name": "work", "rule": "next"}
        assert (await client.get_calendar("work")).jobs == 1
        assert len(await client.preview(every="P1D", calendar="work", calendar_rule="next", count=2)) == 2
        assert len(await client.preview_calendar("work", until="2030-12-27T00:00:00Z")) == 1
        assert len(await client.list_calendars()) == 1
        with pytest.raises(ApiError, match="jobs follow"):
            await client.delete_calendar("work")


def test_a_task_may_follow_a_calendar_that_only_the_server_knows():
    worker = Worker()

    @worker.task(cron="0 9 * * *", calendar={"name": "work", "rule": "next"})
    async def report(ctx, payload): ...

    assert worker.tasks["report"].fields["calendar"] == {"name": "work", "rule": "next"}
    with pytest.raises(InvalidField):
        worker.task(cron="0 9 * * *", calendar={"name": "work", "rule": "sometime"}, name="other")(report)
