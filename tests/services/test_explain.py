"""Every gate holds a run or a job once, and says so first, with its numbers."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from burying import bury
from calendaring import job_on_calendar, put_calendar
from clocked import Time
from foliot.domain.errors import NotFound
from foliot.domain.gates import Code
from foliot.domain.ids import decode, encode
from foliot.domain.limits import Concurrency
from foliot.domain.outcome import Ending, Outcome
from foliot.domain.spec import FunctionHandler, Spec
from foliot.services.tenants import Tenants
from foliot.store import fleet
from foliot.store.fleet import About, Load
from foliot.store.specs import SpecBook, ensure_lanes
from foliot.wire.explain import GateView, JobExplanation, RunExplanation
from services.test_admission import limited
from services.test_complete import entrusted
from services.test_graphs import fired, make, runs_of
from world import NOOP, Hand, World

PAST = "2026-01-01T00:00:00Z"
HOUR = timedelta(hours=1)
LOST = Outcome.again(Ending.LOST, "killed by signal 9", timedelta())


async def why(world: World, run: int) -> RunExplanation:
    return await world.explainer.run(world.tenant, run)


async def why_not(world: World, job: int) -> JobExplanation:
    return await world.explainer.job(world.tenant, job)


def gate(explanation: RunExplanation | JobExplanation, code: str) -> GateView:
    return next(each for each in explanation.gates if each.gate == code)


def held(explanation: RunExplanation | JobExplanation) -> GateView:
    """The gate that blocks: it is the first, and the only one."""
    first, *rest = explanation.gates
    assert first.state == "blocking"
    assert explanation.blocking == first.gate
    assert explanation.sentence.startswith(first.sentence)
    assert all(each.state != "blocking" for each in rest)
    return first


async def scheduler(world: World) -> None:
    """One that is heard for as long as a test takes."""
    await world.sql(
        "INSERT INTO scheduler (id, name, seen_at) VALUES (1, 'one', clock_timestamp() + interval '1 hour')"
    )


async def staff(world: World, *functions: str) -> Hand:
    """A worker that is heard for as long as a test takes."""
    worker = await world.worker(*functions)
    await world.sql("UPDATE worker SET seen_at = clock_timestamp() + interval '1 hour'")
    return worker


async def test_a_run_that_nothing_holds_starts_now_and_one_in_hand_has_started(world: World):
    worker = await staff(world)
    (run,) = await world.submit()
    found = await why(world, run)
    assert (found.blocking, found.ahead, found.estimate_from) == (None, 0, "now")
    assert found.estimated_start == found.at
    assert {each.state for each in found.gates} == {"passed"}
    await worker.note_started(await worker.claim())
    found = await why(world, run)
    assert (found.state, found.blocking, found.estimated_start) == ("running", None, None)
    assert found.sentence.startswith(f"Worker {encode('wrk', worker.id)} has run it since")


async def test_what_is_over_is_told_by_the_gate_where_it_ended(world: World):
    worker = await staff(world)
    (done,) = await world.submit()
    await worker.settle(await worker.claim())
    assert held(await why(world, done)).gate == "finished"
    (dead,) = await bury(world, worker=worker)
    found = held(await why(world, dead))
    assert (found.gate, found.numbers) == ("retries", {"attempts": 1})
    assert "boom" in found.sentence
    assert "foliot run retry" in found.hint
    (gone,) = await world.submit(delay=HOUR)
    await world.canceller.cancel(world.tenant, gone)
    assert held(await why(world, gone)).gate == "cancel"
    at_most_once = msgspec.structs.replace(NOOP, delivery="atMostOnce", max_retries=0)
    (lost,) = await world.submit(1, at_most_once)
    await worker.note_started(await worker.claim())
    await worker.die()
    await fleet.reap(worker.line)
    assert held(await why(world, lost)).gate == "delivery"


async def test_a_suspect_is_told_of_and_one_that_kills_its_process_is_in_quarantine(world: World):
    worker = await staff(world)
    (run,) = await world.submit()
    for crashes in range(3):
        suspicion = gate(await why(world, run), "quarantine")
        assert (suspicion.state, suspicion.numbers["crashes"]) == ("passed", crashes)
        await world.promoter.run_once()
        assert await worker.conclude(await worker.claim(), LOST) == 1
    found = held(await why(world, run))
    assert found.gate == "quarantine"
    assert "killed its process 3 times" in found.sentence


async def test_a_fire_time_that_was_skipped_is_told_by_what_it_was_skipped_for(world: World):
    job = await world.job_id(every="PT24H")
    at = await world.next_at()
    await world.fire(at)
    await world.fire(at + timedelta(days=1))
    found = held(await why(world, (await runs_of(world, [job]))[job]))
    assert (found.gate, found.hint) == ("overlap", "`foliot job backfill` runs such fire times.")


async def test_cancel_and_outside_hold_what_a_worker_has_begun(world: World):
    worker, run, _ = await entrusted(world)
    found = held(await why(world, run.id))
    assert found.gate == "outside"
    assert found.until > found.since
    (asked,) = await world.submit()
    await worker.claim()
    await world.canceller.cancel(world.tenant, asked)
    found = held(await why(world, asked))
    assert (found.gate, found.until - found.since) == ("cancel", fleet.STOPPED_WITHIN)


async def test_a_paused_job_holds_its_run_before_its_time_does(world: World):
    job = await world.job_id(scheduleAt="2036-01-01T00:00:00Z")
    run = await world.value("SELECT run FROM job")
    await scheduler(world)
    assert held(await why(world, run)).gate == "due"
    await world.control.pause(world.tenant, job)
    found = held(await why(world, run))
    assert (found.gate, found.ids) == ("pause", [encode("job", job)])
    assert f"foliot job resume {encode('job', job)}" in found.hint
    assert gate(await why(world, run), "due").state == "closed"
    assert (await why(world, run)).estimated_start is None
    assert held(await why_not(world, job)).gate == "pause"


async def test_parents_hold_their_child_and_a_dead_one_until_it_is_replayed(world: World):
    parent, child = await fired(world, {"key": "load", "every": 3600}, {"key": "send", "dependsOn": ["load"]})
    found = held(await why(world, child))
    assert (found.gate, found.ids, found.numbers) == ("parents", [encode("run", parent)], {"parents": 1, "dead": 0})
    worker = await staff(world)
    await worker.conclude(await worker.claim(), Outcome.dead(Ending.FAILED, "boom"))
    found = held(await why(world, child))
    assert (found.gate, found.numbers["dead"]) == ("parents", 1)
    assert f"foliot run retry {encode('run', parent)}" in found.hint


async def test_time_holds_a_run_until_it_is_due_and_after_a_failure(world: World):
    await scheduler(world)
    worker = await staff(world)
    for delay in (HOUR, timedelta(seconds=50)):  # in `timer`, and in `run`
        (run,) = await world.submit(delay=delay)
        found = await why(world, run)
        assert held(found).gate == found.estimate_from == "due"
        assert found.estimated_start == held(found).until
    (again,) = await world.submit()
    await worker.conclude(await worker.claim(), Outcome.again(Ending.FAILED, "boom", HOUR))
    found = await why(world, again)
    assert held(found).gate == "backoff"
    assert "attempt 1 failed (boom)" in found.sentence
    assert held(found).numbers["maxRetries"] == 3
    assert found.estimated_start == held(found).until


async def test_without_a_scheduler_what_is_due_is_not_handed_out(world: World):
    await world.job_id(scheduleAt=PAST)
    await staff(world)
    run = await world.value("SELECT run FROM job")
    assert held(await why(world, run)).gate == "scheduler"
    await scheduler(world)
    assert (await why(world, run)).estimate_from == "now"


async def test_overlap_holds_the_next_run_of_a_schedule(world: World):
    job = await world.job_id(every="PT24H", overlap="queue")
    at = await world.next_at()
    await world.fire(at)
    await world.fire(at + timedelta(days=1))
    found = held(await why(world, (await runs_of(world, [job]))[job]))
    assert (found.gate, found.numbers) == ("overlap", {"limit": 1, "going": 1, "ahead": 0})


async def test_limits_hold_runs_with_how_many_go_and_how_many_are_ahead(world: World):
    worker = await staff(world)
    job = await world.job_id(name="sync", onDemand=True, concurrency={"limit": 2})
    runs = await world.submit(6, limited(2), job=job)
    begun = await worker.claim()
    await worker.note_started(begun)
    found = await why(world, runs[5])
    assert (held(found).gate, held(found).numbers) == ("concurrency", {"limit": 2, "going": 2, "ahead": 3})
    assert found.sentence.startswith("Waits for a seat: 2 of 2 runs of job 'sync' are going, the oldest since ")
    assert "3 are ahead." in found.sentence
    assert (found.ahead, found.estimated_start) == (3, None)
    await worker.settle(begun)
    found = await why(world, runs[5])
    assert (found.ahead, found.estimate_from) == (1, "durations")
    assert [(each.gate, each.runs) for each in (await why_not(world, job)).runs] == [("turn", 2), ("concurrency", 2)]


async def test_a_limit_by_key_and_a_tenants_limit_hold_runs_too(world: World):
    await staff(world)
    spec = msgspec.structs.replace(NOOP, concurrency=Concurrency(1, "payload.account"))
    runs = await world.submit(2, spec, limit_key=7)
    found = held(await why(world, runs[1]))
    assert found.gate == "concurrency"
    assert "without a job with its payload.account" in found.sentence
    await Tenants(world.database).set_limit("acme", 3)
    world.specs = SpecBook(world.database)  # others have heard of it within two seconds
    others = await world.submit(5, Spec(handler=FunctionHandler("other")))
    found = held(await why(world, others[4]))
    assert (found.gate, found.numbers["limit"]) == ("tenant", 3)


async def test_a_paused_queue_and_missing_workers_hold_what_is_ready(world: World):
    (run,) = await world.submit()
    found = held(await why(world, run))
    assert (found.gate, found.numbers) == ("queueWorkers", {"workers": 0})
    await staff(world, "other")
    found = held(await why(world, run))
    assert (found.gate, found.numbers) == ("handlerWorkers", {"workers": 0, "onQueue": 1})
    assert "'fn:noop'" in found.sentence
    await staff(world)
    assert (await why(world, run)).blocking is None
    await world.fleet.pause("default")
    found = held(await why(world, run))
    assert (found.gate, found.hint.split("`")[1]) == ("queue", "foliot queue resume default")
    await world.sql("UPDATE worker SET seen_at = clock_timestamp() - interval '1 minute'")
    await world.fleet.resume("default")
    found = held(await why(world, run))
    assert found.gate == "queueWorkers"
    assert found.since is not None


async def test_labels_that_no_worker_carries_are_named_with_what_to_do(world: World):
    asking = Spec(handler=FunctionHandler("noop"), requires=("eu", "gpu"))
    (run,) = await world.submit(1, asking)
    job = await world.job_id(requires=["gpu", "eu"], every="PT1H", scheduleAt=world.half_way(HOUR))
    await scheduler(world)
    found = held(await why(world, run))
    assert found.gate == "queueWorkers"
    assert "`foliot worker --queue default --label eu --label gpu`" in found.hint
    await staff(world, "other")
    found = held(await why(world, run))
    assert "none of them with handler 'fn:noop'" in found.sentence
    assert "It must carry all of eu, gpu: `foliot worker" in found.hint
    worker = await staff(world)
    for found in (held(await why(world, run)), held(await why_not(world, job))):
        assert (found.gate, found.numbers) == ("handlerWorkers", {"workers": 0, "onQueue": 2})
        assert "1 live worker with handler 'fn:noop' on queue 'default', none of them carries all of eu, gpu" in (
            found.sentence
        )
        assert "`foliot worker --queue default --label eu --label gpu`" in found.hint
    blocked = await world.insights.run(world.tenant, run)
    offers = "none that lives offers 'fn:noop' on queue 'default' and carries eu, gpu"
    assert (blocked.state, blocked.waiting_for, blocked.requires) == ("blocked", f"a worker: {offers}", ["eu", "gpu"])
    (queue,) = (await world.fleet.queues(limit=10, cursor=None)).items
    assert queue.unserved == ["fn:noop with eu, gpu"]
    lanes = await ensure_lanes(worker.line, ["default"], ["fn:noop"], ("eu", "gpu", "old"))
    await fleet.register(worker.line, 9, "rich", [*lanes])
    await fleet.widen(worker.line, 9)
    assert (await why(world, run)).blocking is None
    assert (await why_not(world, job)).blocking is None
    assert (
        "1 live worker with handler 'fn:noop', carrying eu, gpu."
        in gate(await why(world, run), "handlerWorkers").sentence
    )
    assert (await world.fleet.workers(state="live", limit=1, cursor=None)).items[0].labels == ["eu", "gpu", "old"]
    assert (await world.fleet.queues(limit=10, cursor=None)).items[0].unserved == []


async def test_places_and_turn_hold_what_workers_have_no_room_for(world: World):
    worker = await world.worker()
    runs = await world.submit(4)
    (lane,) = worker.lanes
    await fleet.register(worker.line, 9, "small", [lane], About(concurrency=2))
    await fleet.leave(worker.line, worker.id)
    await fleet.beat(worker.line, 9, [lane], Load({lane: 1}, {lane: 4.0}))
    await world.sql("UPDATE worker SET seen_at = clock_timestamp() + interval '1 hour' WHERE id = 9")
    found = await why(world, runs[3])
    rank = await world.value("SELECT rank FROM ready WHERE run = $1", runs[3])
    assert (held(found).gate, held(found).numbers) == ("turn", {"rank": rank, "ahead": 3, "ratePerSecond": 4.0})
    assert (found.estimate_from, found.estimated_start - found.at) == ("rate", timedelta(seconds=1))
    await fleet.beat(worker.line, 9, [lane], Load({lane: 2}, {lane: 4.0}))
    found = await why(world, runs[3])
    assert (held(found).gate, held(found).numbers) == ("places", {"places": 2, "busy": 2})
    assert "3 are ahead." in found.sentence
    assert gate(found, "turn").state == "closed"


async def test_what_is_ahead_is_counted_no_further_than_anybody_wants_to_know(world: World):
    worker = await staff(world)
    (run,) = await world.submit()
    await world.sql(
        "INSERT INTO ready (lane, rank, run) SELECT $1, -n, -n FROM generate_series(1, 10005) AS n", worker.lanes[0]
    )
    found = await why(world, run)
    assert (found.ahead, found.estimated_start) == (10_001, None)
    assert "More than 10,000 are ahead." in found.sentence


async def test_a_recurring_job_that_nothing_holds_tells_when_it_fires(world: World):
    await staff(world)
    await scheduler(world)
    job = await world.job_id(every="PT1H", scheduleAt=world.half_way(HOUR), jitter="PT10M")
    found = await why_not(world, job)
    assert (found.blocking, found.estimate_from, found.next_fire_at) == (None, "schedule", await world.next_at())
    phase = timedelta(seconds=gate(found, "jitter").numbers["seconds"])
    assert found.estimated_start - found.next_fire_at == phase < timedelta(minutes=10)
    assert found.sentence.startswith("Fires next at ")
    assert found.runs == []


async def test_a_job_that_is_over_or_not_yet_says_why(world: World):
    await staff(world)
    await scheduler(world)

    async def told(**fields: Any) -> GateView:
        return held(await why_not(world, await world.job_id(**fields)))

    assert (await told(onDemand=True)).gate == "schedule"
    ended = await told(every="PT1H", endsAt=PAST)
    assert (ended.gate, "endsAt" in ended.hint) == ("window", True)
    begins = await world.job_id(cronExpression="0 9 * * *", scheduleAt="2036-01-01T00:00:00Z")
    found = await why_not(world, begins)
    assert (held(found).gate, found.next_fire_at) == ("window", datetime(2036, 1, 1, 9, tzinfo=UTC))
    spent = await world.job_id(every="PT24H", maxRuns=1, overlap="allow", scheduleAt=world.half_way(timedelta(days=1)))
    await world.fire(
        await world.value(
            "SELECT min(next_at) FROM schedule JOIN job ON schedule = schedule.id WHERE job.id = $1", spent
        )
    )
    found = held(await why_not(world, spent))
    assert (found.gate, found.numbers) == ("window", {"runsLeft": 0, "maxRuns": 1})
    cancelled = await world.job_id()
    await world.control.cancel(world.tenant, cancelled)
    assert held(await why_not(world, cancelled)).gate == "cancel"
    assert held(await why_not(world, await world.job_id(scheduleAt="2036-01-01T00:00:00Z"))).gate == "due"


async def test_a_closed_calendar_holds_a_job_and_the_next_open_day_is_told(world: World):
    await staff(world)
    await scheduler(world)
    today = datetime.now(UTC).date()
    days = [str(today + timedelta(days=number)) for number in range(4)]
    await put_calendar(world, holidays=[{"date": day} for day in days])
    job = decode("job", (await job_on_calendar(world, cronExpression="0 9 * * *", timezone="UTC")).job_id)
    found = await why_not(world, job)
    assert held(found).gate == "calendar"
    assert found.next_fire_at.date() == today + timedelta(days=4)
    assert held(found).numbers["takenAway"] >= 3


async def test_a_fire_time_in_the_hour_that_the_clocks_skip_is_told(clocked_world: World, time: Time):
    await staff(clocked_world)
    await scheduler(clocked_world)
    night = {"cronExpression": "30 2 29 3 *", "timezone": "Europe/Berlin"}
    job = await clocked_world.job_id(**night, dst={"gap": "skip", "fold": "once"})
    found = await why_not(clocked_world, job)
    assert (held(found).gate, found.next_fire_at.year) == ("daylight", 2027)


async def test_nobody_fires_without_schedulers_nor_while_the_clock_is_set_back(world: World):
    await staff(world)
    job = await world.job_id(every="PT24H", scheduleAt=world.half_way(timedelta(days=1)))
    found = await why_not(world, job)
    assert (held(found).gate, found.next_fire_at) == ("scheduler", None)
    await scheduler(world)
    assert (await why_not(world, job)).blocking is None
    await world.sql("UPDATE clock SET latest = clock_timestamp() + interval '1 hour'")
    found = held(await why_not(world, job))
    assert (found.gate, found.numbers["seconds"] > 3_500) == ("clock", True)


async def test_what_is_late_is_caught_up_with_or_missed(world: World):
    await staff(world)
    await scheduler(world)
    day = timedelta(days=1)
    usual = await world.job_id(every="PT24H", scheduleAt=world.half_way(day))
    await world.make_overdue(day / 2 + timedelta(minutes=10))
    found = held(await why_not(world, usual))
    assert (found.gate, found.numbers["lateSeconds"] > 500) == ("scheduler", True)
    assert gate(await why_not(world, usual), "catchUp").sentence == "It is late, and is caught up with."
    await world.make_overdue(2 * HOUR)
    found = held(await why_not(world, usual))
    assert (found.gate, found.numbers["windowSeconds"]) == ("catchUp", 3_600)


async def test_a_run_from_before_and_a_paused_root_hold_the_next_fire(world: World):
    await staff(world)
    await scheduler(world)
    job = await world.job_id(every="PT24H", scheduleAt=world.half_way(timedelta(days=1)))
    await world.fire(await world.next_at())
    run = await world.value("SELECT id FROM run WHERE job = $1", job)
    found = await why_not(world, job)
    assert (held(found).gate, held(found).ids) == ("overlap", [encode("run", run)])
    assert [(each.gate, each.oldest_run_id) for each in found.runs] == [("turn", encode("run", run))]
    root, child = await make(world, {"key": "load", "every": 3600}, {"key": "send", "dependsOn": ["load"]})
    assert gate(await why_not(world, child), "parents").ids == [encode("job", root)]
    at = await world.value("SELECT next_at FROM schedule JOIN job ON schedule = schedule.id WHERE job.id = $1", root)
    await world.fire(at)
    assert held(await why_not(world, child)).ids == [encode("run", (await runs_of(world, [root]))[root])]
    await world.control.pause(world.tenant, root)
    found = held(await why_not(world, child))
    assert (found.gate, found.ids) == ("parents", [encode("job", root)])


async def test_a_job_whose_runs_would_have_no_worker_says_so_before_they_are_made(world: World):
    await scheduler(world)
    job = await world.job_id(every="PT24H", scheduleAt=world.half_way(timedelta(days=1)))
    found = await why_not(world, job)
    assert (held(found).gate, found.next_fire_at) == ("queueWorkers", await world.next_at())
    await staff(world, "other")
    assert held(await why_not(world, job)).gate == "handlerWorkers"
    await staff(world)
    await world.fleet.pause("default")
    assert held(await why_not(world, job)).gate == "queue"


def test_every_gate_is_the_blocking_one_in_a_test_of_this_page():
    """But jitter, which is no obstacle: it says when a run starts, and is passed by whoever waits so long."""
    blocking = re.findall(r'(?:found|\))\.gate\b.*== \(?"(\w+)"', Path(__file__).read_text(encoding="utf-8"))
    assert {code.value for code in Code} - set(blocking) == {"jitter"}


async def test_another_tenants_are_not_explained(world: World):
    globex = await world.another_tenant()
    (run,) = await world.submit()
    job = await world.job_id()
    for asked in (world.explainer.run(globex, run), world.explainer.job(globex, job)):
        with pytest.raises(NotFound):
            await asked
