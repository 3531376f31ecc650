"""Both clients against a real server: the same names, the same answers."""

import asyncio
import copy
import inspect
import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from foliot import ApiError, AsyncFoliot, AsyncRun, Foliot, InvalidRequest, NotFound, Run, RunFailed, Unauthorised
from foliot.domain.errors import InvalidField
from foliot.kit.zonedata import zone_data
from foliot.sdk.records import Job, Record
from sdk.serving import Served
from worker.crew import Crew, noop
from world import PATIENCE

LATER = datetime(2030, 1, 31, 9, tzinfo=UTC)


def away(deed: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
    """The client that waits, on a thread: the server is in this loop."""
    return asyncio.wait_for(asyncio.to_thread(deed, *arguments, **more), PATIENCE)


def public(client: type) -> dict[str, list[str]]:
    methods = inspect.getmembers(client, inspect.isfunction)
    return {name: list(inspect.signature(method).parameters) for name, method in methods if not name.startswith("_")}


def test_both_clients_have_the_same_names_and_parameters():
    assert public(Foliot) == public(AsyncFoliot)
    assert public(Run) == public(AsyncRun)
    assert all(
        inspect.iscoroutinefunction(method)
        for name, method in inspect.getmembers(AsyncFoliot, inspect.isfunction)
        if not name.startswith("__")
    )


async def test_a_run_is_submitted_and_waited_for(foliot: Served, crew: Crew):
    client = foliot.client()
    async with crew.work({"noop": noop}):
        run = await away(client.submit, "noop", {"n": 3})
        assert (run.id[:4], run.status, run.is_over) == ("run_", "pending", False)
        done = await away(run.wait, 10)
        assert done is run
        assert (run.status, run.state, run.is_over, run.attempts) == ("completed", "succeeded", True, 1)
        assert (await away(client.wait, run.id, 10)).status == "completed"
        failed = await away(client.submit, "noop", "fail", max_retries=0)
        with pytest.raises(RunFailed) as caught:
            await away(failed.wait, 10)
        assert (caught.value.run, caught.value.error_class, caught.value.status) == (failed, "ValueError", "failed")
        assert str(caught.value).startswith(f"{failed.id} failed: ValueError: as asked (`foliot run get")
        assert (await away(failed.wait, 10, check=False)).is_over
        assert "as asked" in failed.error_message
        (attempt,) = await away(client.list_attempts, failed.id)
        assert attempt["status"] == "failed"
    async with crew.work({"noop": noop}), foliot.aio() as aio:
        run = await aio.submit("noop", {"n": 3})
        assert (await run.wait(10)).status == "completed"
        assert (await aio.wait(run.id, 10)).status == "completed"


async def test_a_list_of_words_is_a_command(foliot: Served):
    client = foliot.client()
    run = await away(client.submit, ["/usr/local/bin/report", "--day", "a b"], {"n": 3})
    shown = (await away(client.get_run, run.id)).values
    assert (shown["handler"], shown["payload"]) == ("/usr/local/bin/report --day 'a b'", {"n": 3})
    job = await away(client.create_job, "nightly", ("/usr/local/bin/report",), every="PT1H")
    assert job.handler == {"type": "command", "argv": ["/usr/local/bin/report"]}
    assert (await away(client.change_job, job.id, handler=["other"])).handler["argv"] == ["other"]
    with pytest.raises(ApiError) as refused:
        await away(client.submit, {"type": "command", "argv": "ls -l"})
    assert refused.value.errors[0].field == "handler.argv"


async def test_waiting_has_an_end(foliot: Served):
    run = await away(foliot.client().submit, "nobody.serves.this")
    with pytest.raises(TimeoutError, match=f"{run.id} is still pending after 0.05 s"):
        await away(run.wait, 0.05)
    async with foliot.aio() as aio:
        with pytest.raises(TimeoutError, match="still pending"):
            await aio.wait(run.id, 0.05)


async def test_a_run_may_start_later(foliot: Served):
    client = foliot.client()
    for delay in ("PT1H", 3600, timedelta(hours=1)):
        run = await away(client.submit, "noop", delay=delay)
        due = (await away(run.refresh)).due_at
        assert abs(due - datetime.now(UTC) - timedelta(hours=1)) < timedelta(minutes=1)
    run = await away(client.submit, "noop", at=LATER.astimezone())
    assert (await away(run.refresh)).scheduled_at == LATER
    assert run.values["scheduledAt"] == "2030-01-31T09:00:00Z"
    with pytest.raises(InvalidField, match="at: has no offset"):
        client.submit("noop", at=datetime(2030, 1, 31, 9))  # noqa: DTZ001 - the point


async def test_a_job_has_a_life_in_both_clients(foliot: Served):
    client = foliot.client()
    job = await away(
        client.create_job, "report", "noop", cron_expression="0 9 * * *", timezone="Europe/Berlin", max_retries=5
    )
    assert (job.id, job.max_retries, job.schedule_type) == (job.job_id, 5, "recurring")
    assert (await away(client.pause_job, job.id)).status == "paused"
    assert (await away(client.resume_job, job.id)).status == "pending"
    changed = await away(client.change_job, job.id, name="other", cron_expression=None)
    assert (changed.name, changed.schedule_type) == ("other", "on_demand")
    run = await away(client.run_job, job.id, payload={"n": 1}, priority="high")
    assert (await away(run.refresh)).priority == "high"
    assert [each.id for each in await away(client.list_runs, job=job.id)] == [run.id]
    assert [each.id for each in await away(client.list_jobs, name="other")] == [job.id]
    assert await away(client.list_executions, job.id) == []
    assert (await away(client.cancel_job, job.id)).status == "cancelled"

    async with foliot.aio() as aio:
        job = await aio.create_job("report", {"type": "function", "name": "noop"}, every=timedelta(minutes=5))
        assert job.every == "PT5M"
        assert (await aio.pause_job(job.id)).status == "paused"
        assert (await aio.resume_job(job.id)).status == "pending"
        assert (await aio.change_job(job.id, labels={"team": "growth"})).labels == {"team": "growth"}
        run = await aio.run_job(job.id, delay=3600, idempotency_key="once")
        assert (await aio.run_job(job.id, delay=3600, idempotency_key="once")).id == run.id
        assert (await (await aio.get_run(run.id)).refresh()).state == "scheduled"
        assert [each.id for each in await aio.list_runs(job=job.id)] == [run.id]
        assert (await aio.get_job(job.id)).name == "report"
        assert await aio.list_attempts(run.id) == []
        assert (await aio.cancel_job(job.id)).status == "cancelled"


async def test_a_job_is_put_by_a_key_that_may_contain_slashes(foliot: Served):
    client = foliot.client()
    first = await away(client.put_job, "team/load", "load", "noop", every=60)
    again = await away(client.put_job, "team/load", "load", "noop", every=120)
    assert first.id == again.id
    assert again.every == "PT2M"
    async with foliot.aio() as aio:
        assert (await aio.put_job("team/load", "load", "noop", every=120)).id == first.id


async def test_jobs_are_created_together_in_both_clients(foliot: Served):
    client = foliot.client()
    fields = [{"name": f"job {n}", "handler": "noop", "max_retries": n, "key": None} for n in range(3)]
    made = await away(client.create_jobs, fields, idempotency_key="once")
    assert [(await away(client.get_job, each)).max_retries for each in made] == [0, 1, 2]
    assert await away(client.create_jobs, fields, idempotency_key="once") == made
    async with foliot.aio() as aio:
        (last,) = await aio.create_jobs({**each, "name": "last"} for each in fields[:1])
        assert (await aio.get_job(last)).name == "last"
        with pytest.raises(ApiError) as caught:
            await aio.create_jobs([fields[0], {**fields[1], "cron_expression": "61 * * * *"}])
        assert caught.value.errors[0].field == "jobs[1].cronExpression"


async def test_both_clients_look_at_a_recurrence_before_a_job_has_it(foliot: Served):
    after = datetime(2026, 3, 28, 13, tzinfo=timezone(timedelta(hours=1)))
    timing = {"cron_expression": "30 2 * * *", "timezone": "Europe/Berlin", "after": after, "count": 1}
    (fire,) = await away(foliot.client().preview, **timing)
    assert fire == {"at": "2026-03-29T01:00:00Z", "local": "2026-03-29T03:00:00+02:00", "transition": "gap"}
    async with foliot.aio() as aio:
        assert await aio.preview(**timing) == [fire]
        assert (await aio.preview(**timing)).zone_data == zone_data().version


async def test_both_clients_look_at_an_edit_before_they_make_it(foliot: Served):
    client = foliot.client()
    job = await away(client.create_job, "nightly", "noop", rrule="FREQ=DAILY;BYHOUR=9;COUNT=500")
    assert job.max_runs == 500
    edit = {"cron_expression": "0 10 * * *", "after": datetime(2026, 3, 28, tzinfo=UTC), "count": 2}
    found = await away(client.preview, job.id, **edit)
    assert [fire["change"] for fire in found] == ["removed", "added"]
    every = await away(client.preview, job.id, max_runs=None, count=501, after=None)
    assert [fire["change"] for fire in every] == ["same"] * 500 + ["added"]
    async with foliot.aio() as aio:
        assert await aio.preview(job.id, **edit) == found
        assert (await aio.get_job(job.id)).values == job.values


async def test_lists_come_in_pages(foliot: Served):
    client = foliot.client()
    made = [(await away(client.create_job, f"job {n}", "noop")).id for n in range(3)]
    first = await away(client.list_jobs, limit=2)
    rest = await away(client.list_jobs, limit=2, cursor=first.next_cursor)
    assert [job.id for job in (*first, *rest)] == made[::-1]
    assert rest.next_cursor is None
    through = await away(lambda: [job.id for job in client.list_jobs(limit=2).all()])
    assert through == made[::-1]
    async with foliot.aio() as aio:
        assert [job.id async for job in (await aio.list_jobs(limit=1)).all()] == made[::-1]
        assert [run async for run in (await aio.list_runs()).all()] == []


async def test_the_same_key_submits_once(foliot: Served):
    client = foliot.client()
    runs = [await away(client.submit, "noop", {"n": 1}, idempotency_key="same") for _ in range(2)]
    assert runs[0].id == runs[1].id
    with pytest.raises(ApiError) as caught:
        await away(client.submit, "noop", {"n": 2}, idempotency_key="same")
    assert caught.value.errors[0].field == "Idempotency-Key"


async def test_refusals_say_what_and_what_to_do(foliot: Served):
    with pytest.raises(InvalidRequest) as caught:
        await away(foliot.client().create_job, "x", "noop", cron_expression="0 0 31 2 *")
    error = caught.value
    assert error.status == 422
    assert error.errors[0].field == "cronExpression"
    assert str(error).startswith("cronExpression: there is no such date")
    assert "last day" in str(error)
    async with foliot.aio() as aio:
        with pytest.raises(NotFound, match="there is no such run") as caught:
            await aio.get_run("run_0000000000000")
        assert (caught.value.status, caught.value.kind) == (404, "not-found")
        with pytest.raises(ApiError, match="maxRetry"):
            await aio.submit("noop", max_retry=3)


async def test_a_wrong_key_is_told(foliot: Served):
    with pytest.raises(Unauthorised, match="needs a valid key") as caught:
        await away(Foliot(foliot.url, f"fol_{'a' * 12}_{'b' * 43}").list_jobs)
    assert caught.value.status == 401


@pytest.mark.parametrize("payload", [object(), {"a": ValueError()}, "half \udcff"])
def test_what_is_no_json_is_told_before_anything_is_sent(payload: Any):
    with pytest.raises(InvalidField, match="payload"):
        Foliot("http://127.0.0.1:1", "key").submit("noop", payload)


def test_records_can_be_copied_pickled_and_printed():
    job = Job({"jobId": "job_1", "name": "x", "nextRunAt": None, "status": "pending"})
    assert copy.deepcopy(job).next_run_at is None
    assert pickle.loads(pickle.dumps(job)).name == "x"
    assert repr(job) == "Job(jobId='job_1', name='x', status='pending')"
    with pytest.raises(AttributeError, match="Job has no field 'colour'"):
        _ = job.colour
    assert not hasattr(Record.__new__(Record), "anything")
