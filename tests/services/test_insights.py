"""What people see: one word for how each thing stands, pages that hold still, and nothing of other tenants."""

from datetime import UTC, datetime, timedelta

import pytest

from foliot.domain.errors import InvalidField, NotFound
from foliot.domain.ids import decode, encode
from foliot.domain.outcome import Ending, Outcome
from foliot.domain.states import STATUS_OF, State
from foliot.store.dispatch import Settlement, conclude
from world import World

PAST = "2026-01-01T00:00:00Z"
AGAIN = Outcome.again(Ending.FAILED, "boom", timedelta(hours=1))
DEAD = Outcome.dead(Ending.FAILED, "boom")
ENDINGS = [(DEAD, "failed"), (Outcome.cancelled(), "cancelled")]


async def _run(world: World, run: int):
    return await world.insights.run(world.tenant, run)


async def _jobs(world: World, **query):
    asked = {"status": None, "name": None, "label": None, "schedule_type": None, "limit": 50, "cursor": None, **query}
    page = await world.insights.jobs(world.tenant, "acme", **asked)
    return [decode("job", job.job_id) for job in page.items], page.next_cursor


async def _runs(world: World, **query):
    asked = {"status": None, "state": None, "job": None, "limit": 50, "cursor": None, **query}
    page = await world.insights.runs(world.tenant, **asked)
    return [decode("run", run.run_id) for run in page.items], page.next_cursor


async def _claimed_one_time(world: World):
    job = await world.job_id(scheduleAt=PAST)
    await world.promoter.run_once()
    worker = await world.worker()
    return job, worker, await worker.claim()


async def test_a_one_time_job_is_pending_then_running_then_completed(world: World):
    job = await world.job_id(scheduleAt=PAST)
    assert await world.status(job) == "pending"
    await world.promoter.run_once()
    assert await world.status(job) == "pending"
    worker = await world.worker()
    taken = await worker.claim()
    assert await world.status(job) == "running"
    await worker.conclude(taken, AGAIN)
    assert await world.status(job) == "pending"
    await world.promoter.run_once(datetime.now(UTC) + timedelta(hours=2))
    await worker.settle(await worker.claim())
    view = await world.insights.job(world.tenant, "acme", job)
    assert (view.status, view.last_run.status, view.next_run_at) == ("completed", "completed", None)


@pytest.mark.parametrize(("outcome", "status"), ENDINGS)
async def test_a_one_time_job_ends_as_its_run_ends(world: World, outcome: Outcome, status: str):
    job, worker, taken = await _claimed_one_time(world)
    await worker.conclude(taken, outcome)
    assert await world.status(job) == status == STATUS_OF[outcome.state]


async def test_a_recurring_job_is_pending_between_runs_whatever_the_last_one_did(world: World):
    job = await world.job_id(every="PT24H")
    await world.fire(await world.next_at())
    worker = await world.worker()
    taken = await worker.claim()
    assert await world.status(job) == "running"
    await worker.conclude(taken, DEAD)
    view = await world.insights.job(world.tenant, "acme", job)
    assert (view.status, view.last_run.status, view.last_run.error_message) == ("pending", "failed", "boom")
    assert view.next_run_at == await world.next_at()


async def test_a_recurring_job_whose_end_has_passed_is_completed(world: World):
    job = await world.job_id(every="PT1M", endsAt=PAST)
    view = await world.insights.job(world.tenant, "acme", job)
    assert (view.status, view.next_run_at) == ("completed", None)


async def test_a_paused_and_a_cancelled_job_say_so_and_have_no_next_run(world: World):
    job = await world.job_id(every="PT24H")
    await world.control.pause(world.tenant, job)
    view = await world.insights.job(world.tenant, "acme", job)
    assert (view.status, view.next_run_at) == ("paused", None)
    await world.control.cancel(world.tenant, job)
    assert await world.status(job) == "cancelled"


async def test_a_run_is_seen_in_every_state(world: World):
    (timed,) = await world.submit(delay=timedelta(hours=1))
    (waiting,) = await world.submit(delay=timedelta(seconds=30))
    ids = await world.submit(6)
    worker = await world.worker()
    done, dead, cancelled, again, going = await worker.claim(5)
    await worker.settle([done])
    for run, outcome in ((dead, DEAD), (cancelled, Outcome.cancelled()), (again, AGAIN)):
        await worker.conclude([run], outcome)
    seen = {run: (await _run(world, run)).state for run in (timed, waiting, *ids)}
    assert seen == {
        timed: "scheduled",
        waiting: "scheduled",
        done.id: "succeeded",
        dead.id: "dead",
        cancelled.id: "cancelled",
        again.id: "scheduled",
        going.id: "running",
        ids[5]: "ready",
    }
    for run in seen:
        view = await _run(world, run)
        assert view.status == STATUS_OF[State[view.state.upper()]]
        assert (await _runs(world, state=view.state))[0].count(run) == 1
        assert (await _runs(world, status=view.status))[0].count(run) == 1
    assert (await _run(world, going.id)).worker_id == encode("wrk", worker.id)
    assert [(await _run(world, run.id)).attempts for run in (going, again, done)] == [1, 1, 1]


async def test_held_and_skipped_runs_are_seen_too(world: World):
    job = await world.job_id(every="PT24H")
    at = await world.next_at()
    await world.fire(at)
    await world.fire(at + timedelta(days=1))
    await world.control.pause(world.tenant, job)
    states = [(await _run(world, run)).state for run in (await _runs(world, job=job))[0]]
    assert sorted(states) == ["blocked", "skipped"]


async def test_another_tenants_things_are_not_there(world: World):
    globex = await world.another_tenant()
    (run,) = await world.submit()
    job = await world.job_id()
    with pytest.raises(NotFound):
        await world.insights.job(globex, "globex", job)
    with pytest.raises(NotFound):
        await world.insights.run(globex, run)
    worker = await world.worker()
    await worker.settle(await worker.claim())
    with pytest.raises(NotFound):
        await world.insights.run(globex, run)
    assert (await world.insights.attempts(globex, run=run, limit=5, cursor=None)).items == []
    asked = {"status": None, "state": None, "limit": 5, "cursor": None}
    assert (await world.insights.runs(globex, job=None, **asked)).items == []
    assert (await world.insights.runs(globex, job=job, **asked)).items == []


async def test_pages_of_runs_hold_still_while_runs_come_and_end(world: World):
    ids = await world.submit(9)
    worker = await world.worker()
    await worker.settle(await worker.claim(3))
    (timed,) = await world.submit(delay=timedelta(hours=1))
    seen, cursor = [], None
    for _ in range(10):
        page, cursor = await _runs(world, limit=3, cursor=cursor)
        seen += page
        if cursor is None:
            break
        await world.submit()
        await worker.settle(await worker.claim(1))
    assert seen == [timed, *reversed(ids)]


async def test_pages_of_jobs_hold_still_while_jobs_are_made(world: World):
    jobs = [await world.job_id() for _ in range(5)]
    first, cursor = await _jobs(world, limit=2)
    await world.job_id()
    second, cursor = await _jobs(world, limit=2, cursor=cursor)
    third, cursor = await _jobs(world, limit=2, cursor=cursor)
    assert (first + second + third, cursor) == (jobs[::-1], None)


async def test_every_try_is_listed_once_even_if_the_count_of_attempts_stands_still(world: World):
    (run,) = await world.submit()
    worker = await world.worker()
    for _ in range(3):
        began = [Settlement(each, datetime.now(UTC), Outcome.released()) for each in await worker.claim()]
        await conclude(worker.line, worker.id, began)
    await worker.claim()
    seen, cursor = [], None
    while True:
        page = await world.insights.attempts(world.tenant, run=run, limit=1, cursor=cursor)
        seen += page.items
        if (cursor := page.next_cursor) is None:
            break
    assert [attempt.status for attempt in seen] == ["running", "released", "released", "released"]
    assert len({attempt.execution_id for attempt in seen}) == 4


async def test_jobs_are_found_by_name_label_kind_and_status(world: World):
    daily = await world.job_id(name="daily", every="PT24H", labels={"team": "growth"})
    once = await world.job_id(name="once", scheduleAt="2036-01-01T00:00:00Z", labels={"team": "core"})
    demand = await world.job_id(name="daily", onDemand=True)
    await world.control.pause(world.tenant, daily)
    assert (await _jobs(world, name="daily"))[0] == [demand, daily]
    assert (await _jobs(world, label="team=growth"))[0] == [daily]
    assert (await _jobs(world, schedule_type="one_time"))[0] == [once]
    assert (await _jobs(world, status="paused"))[0] == [daily]
    assert (await _jobs(world, status="pending", name="daily"))[0] == [demand]


@pytest.mark.parametrize("query", [{"status": "odd"}, {"label": "odd"}, {"schedule_type": "odd"}, {"cursor": "odd"}])
async def test_a_question_about_jobs_that_makes_no_sense_is_refused(world: World, query):
    with pytest.raises(InvalidField):
        await _jobs(world, **query)


@pytest.mark.parametrize("query", [{"status": "odd"}, {"state": "odd"}, {"cursor": "c_1"}])
async def test_a_question_about_runs_that_makes_no_sense_is_refused(world: World, query):
    with pytest.raises(InvalidField):
        await _runs(world, **query)


@pytest.mark.parametrize("cursor", ["", "odd", "c_0000000000000", "c_0000000000000.", "c_0000000000000.x", "c.1"])
async def test_a_cursor_of_attempts_that_is_not_ours_is_refused(world: World, cursor: str):
    with pytest.raises(InvalidField):
        await world.insights.attempts(world.tenant, limit=5, cursor=cursor)
