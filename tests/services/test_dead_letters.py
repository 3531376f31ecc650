"""Dead letters by id: the same run goes on, once, behind what waits, with a fence that rises; or it is given up."""

from datetime import UTC, datetime, timedelta

import pytest

from burying import DEAD, bury, bury_fired, discard, names, replay
from foliot.domain.errors import Conflict, NotFound
from foliot.domain.ids import encode
from foliot.domain.letters import MOST_ATTEMPTS, Selection
from foliot.domain.outcome import Ending, Outcome
from foliot.domain.spec import FunctionHandler, Spec
from foliot.domain.states import State
from foliot.kit import telemetry
from foliot.services.gauges import Gauges
from foliot.services.upkeep import Housekeeper
from foliot.store import letters
from foliot.wire.run_views import RunView
from world import World


async def _runs(world: World, state: str | None = None) -> list[RunView]:
    page = await world.insights.runs(world.tenant, status=None, state=state, job=None, limit=50, cursor=None)
    return page.items


async def test_the_same_run_goes_on_with_a_higher_fence_and_all_its_retries(world: World):
    (run,) = await bury(world)
    before = await world.value("SELECT fence FROM dead_letter")
    assert (await replay(world, run)).run_ids == names(run)
    assert await world.count("dead_letter") == 0
    worker = await world.worker()
    (again,) = await worker.claim()
    assert (again.id, again.attempt, again.failures, again.payload) == (run, 1, 0, b"{}")
    assert again.fence > before
    assert await worker.settle([again]) == 1
    attempts = (await world.insights.attempts(world.tenant, run=run, limit=10, cursor=None)).items
    assert [(each.attempt, each.status, each.error_class) for each in attempts] == [
        (2, "completed", None),
        (1, "failed", "ValueError"),
    ]


async def test_a_fence_from_before_the_death_writes_nothing_after_the_replay(world: World):
    (run,) = await world.submit()
    late = await world.worker()
    held = await late.claim()
    await late.conclude(held, DEAD)
    await replay(world, run)
    for outcome in (DEAD, Outcome.released(), Outcome.cancelled()):
        assert await late.conclude(held, outcome) == 0
    assert await late.settle(held) == 0
    for _ in range(3):  # it dies, and is replayed, again and again
        fences = [held[0].fence]
        held = await late.claim()
        assert held[0].fence > fences[-1]
        await late.conclude(held, DEAD)
        assert (await replay(world, run)).refused == []
    assert await world.value("SELECT forgiven FROM run WHERE id = $1", run) == 4


async def test_replays_queue_up_behind_what_waits_in_their_flow(world: World):
    dead = await bury(world, 50)
    waiting = await world.submit(50)
    await replay(world, *dead)
    fresh = await world.submit(50)
    order = [run.id for run in await (await world.worker()).claim(150)]
    assert order == [*sorted(waiting), *dead, *sorted(fresh)]
    assert "foliot_ready" in world.hints


async def test_a_run_has_one_end_whoever_asks(world: World):
    (run,) = await bury(world)
    assert [each.state for each in await _runs(world)] == ["dead"]
    await replay(world, run)
    assert [(each.state, each.error_message) for each in await _runs(world)] == [("ready", None)]
    assert await _runs(world, "dead") == []
    worker = await world.worker()
    await worker.conclude(await worker.claim(), DEAD)
    assert [(each.state, each.attempts) for each in await _runs(world, "dead")] == [("dead", 2)]
    await replay(world, run)
    await worker.settle(await worker.claim())
    assert [(each.state, each.attempts) for each in await _runs(world)] == [("succeeded", 3)]


async def test_a_one_time_job_is_open_again_while_its_run_goes_on(world: World):
    job = await world.job_id(scheduleAt=(datetime.now(UTC) - timedelta(seconds=1)).isoformat())
    await world.promoter.run_once()
    worker = await world.worker()
    taken = await worker.claim()
    await worker.conclude(taken, DEAD)
    assert await world.status(job) == "failed"
    await replay(world, taken[0].id)
    assert await world.status(job) == "pending"
    await worker.settle(await worker.claim())
    assert await world.status(job) == "completed"


async def test_overlap_does_not_apply_to_a_replay_nor_a_replay_to_overlap(world: World):
    job = await world.job_id()  # overlap: skip
    run = await bury_fired(world, job)
    at = await world.next_at()
    await world.fire(at)
    assert (await replay(world, run)).run_ids == names(run)
    assert await world.count("run") == 2
    worker = await world.worker()
    taken = await worker.claim()
    await worker.settle([each for each in taken if each.id != run])
    await world.fire(at + timedelta(minutes=1))  # is not skipped for the replay's sake
    assert await world.value("SELECT count(*) FROM run WHERE origin = 0") == 1
    # Its retry is not skipped because a run of the schedule is going, either.
    await worker.conclude([each for each in taken if each.id == run], Outcome.again(Ending.FAILED, "x", timedelta()))
    await world.promoter.run_once()
    assert {each.id for each in await worker.claim()} >= {run}
    assert await world.value("SELECT count(*) FROM history WHERE state = $1", State.SKIPPED) == 0


async def test_the_ledger_shows_the_replay_of_an_instant(world: World):
    job = await world.job_id(every="PT24H")
    run = await bury_fired(world, job)
    await replay(world, run)
    now = datetime.now(UTC) + timedelta(days=3)
    page = await world.ledger.occurrences(world.tenant, job, since=None, until=now, status=None, limit=10, cursor=None)
    assert [(each.run_id, each.run_status) for each in page.items if each.run_id] == [(encode("run", run), "pending")]


async def test_of_a_paused_job_it_waits_and_of_a_cancelled_one_it_is_refused(world: World):
    paused, cancelled = await world.job_id(name="a", onDemand=True), await world.job_id(name="b", onDemand=True)
    (held,) = await bury(world, job=paused)
    (gone,) = await bury(world, job=cancelled)
    await world.control.pause(world.tenant, paused)
    await world.control.cancel(world.tenant, cancelled)
    done = await replay(world, held, gone)
    assert done.run_ids == names(held)
    assert [(each.run_id, each.reason[:20]) for each in done.refused] == [(*names(gone), "its job is cancelled")]
    assert await world.value("SELECT state FROM run WHERE id = $1", held) == State.BLOCKED
    assert await world.count("ready") == 0
    waiting = await world.submit(3)
    await world.resume(paused)
    await world.promoter.run_once()
    order = [run.id for run in await (await world.worker()).claim()]
    assert order == [*sorted(waiting), held]  # behind what waits, as if it were new


async def test_what_is_no_dead_letter_is_refused_and_the_rest_is_done(world: World):
    (mine,) = await bury(world)
    globex = await world.another_tenant()
    (theirs,) = await bury(world, tenant=globex)
    (alive,) = await world.submit()
    done = await replay(world, mine, theirs, alive, 1)
    assert done.run_ids == names(mine)
    assert [each.run_id for each in done.refused] == names(theirs, alive, 1)
    assert {each.reason for each in done.refused} == {done.refused[0].reason}
    assert await world.count("dead_letter") == 1
    again = await discard(world, mine, theirs)
    assert (again.run_ids, [each.run_id for each in again.refused]) == ([], names(mine, theirs))


async def test_a_run_that_was_tried_too_often_is_not_replayed(world: World):
    (run,) = await bury(world)
    await world.sql("UPDATE dead_letter SET attempt = $1", MOST_ATTEMPTS)
    (refused,) = (await replay(world, run)).refused
    assert "30,000 times" in refused.reason
    assert await world.count("dead_letter") == 1


async def test_the_same_key_replays_once(world: World):
    (run,) = await bury(world)
    first = await replay(world, run, key="k", fingerprint=b"f")
    worker = await world.worker()
    await worker.conclude(await worker.claim(), DEAD)
    assert await replay(world, run, key="k", fingerprint=b"f") == first
    assert await world.count("dead_letter") == 1  # what died since is not brought back by the repeated call


async def test_retry_says_why_it_cannot(world: World):
    (run,) = await bury(world)
    await world.dead_letters.retry(world.tenant, run)
    with pytest.raises(Conflict, match="no such dead letter"):
        await world.dead_letters.retry(world.tenant, run)


async def test_what_is_discarded_leaves_its_history_and_when_it_was_given_up(world: World):
    (run,) = await bury(world)
    before = datetime.now(UTC)
    assert (await discard(world, run)).run_ids == names(run)
    assert await world.count("dead_letter") == await world.count("run") == 0
    view = await world.insights.run(world.tenant, run)
    assert (view.state, view.status, view.error_message) == ("discarded", "failed", "discarded by hand")
    assert view.finished_at > before - timedelta(seconds=5)
    assert [each.state for each in await _runs(world)] == ["discarded"]
    attempts = (await world.insights.attempts(world.tenant, run=run, limit=10, cursor=None)).items
    assert [each.error_message for each in attempts] == ["boom"]
    assert (await replay(world, run)).run_ids == []


async def test_after_its_time_nobody_need_decide_any_more(world: World):
    (old,), (young,) = await bury(world), await bury(world)
    await world.sql("UPDATE dead_letter SET died_at = died_at - interval '91 days' WHERE id = $1", old)
    keeper = Housekeeper(world.database)
    await keeper.run_once()
    await keeper.close()
    assert [row["id"] for row in await world.sql("SELECT id FROM dead_letter")] == [young]
    row = await world.sql("SELECT state, error FROM history WHERE run = $1 AND ending = 0", old)
    assert [tuple(each) for each in row] == [(State.DISCARDED, "nobody replayed it within 90 days")]


SELECTIONS = [
    (Selection(), {0, 1, 2, 3}),
    (Selection(error_class="ValueError"), {0}),
    (Selection(error_class="Timeout"), {1}),
    (Selection(error_class="requests.Timeout"), {1}),
    (Selection(error_class="out"), set()),
    (Selection(error_class="%"), set()),
    (Selection(text="FULL"), {2}),
    (Selection(text="100%"), {2}),
    (Selection(text="_isk"), set()),
    (Selection(queue="slow"), {3}),
    (Selection(queue="default"), {0, 1, 2}),
    (Selection(handler_group="fn:other"), {3}),
    (Selection(handler_group="http"), set()),
    (Selection(until=datetime(2026, 1, 1, tzinfo=UTC)), set()),
    (Selection(since=datetime(2026, 1, 1, tzinfo=UTC), error_class="OSError"), {2}),
]


async def test_filters_mean_what_they_say(world: World, subtests: pytest.Subtests):
    slow = Spec(handler=FunctionHandler("other"), queue="slow")
    kinds = [("no such team", "ValueError"), ("slow", "requests.Timeout"), ("disk full: 100%", "OSError")]
    dead = [(await bury(world, 1, Outcome.dead(Ending.FAILED, *each)))[0] for each in kinds]
    (last,) = await world.submit(1, slow)
    await world.sql(
        "INSERT INTO dead_letter (id, scheduled_at, due_at, died_at, fence, tenant, spec, attempt, payload)"
        " SELECT id, now(), now(), now(), 1, tenant, spec, 1, payload FROM run WHERE id = $1",
        last,
    )
    dead.append(last)
    job = await world.job_id(onDemand=True)
    (of_job,) = await bury(world, job=job)
    for selection, meant in SELECTIONS:
        with subtests.test(repr(selection)):
            found = await letters.list_letters(world.database, world.tenant, selection, below=2**63 - 1, limit=50)
            assert {each.id for each in found} - {of_job} == {dead[number] for number in meant}
    found = await letters.list_letters(world.database, world.tenant, Selection(job=job), below=2**63 - 1, limit=50)
    assert [each.id for each in found] == [of_job]


async def test_they_are_listed_page_by_page_and_read_one_by_one(world: World):
    dead = await bury(world, 5)
    first = await world.dead_letters.list(world.tenant, Selection(), limit=3, cursor=None)
    second = await world.dead_letters.list(world.tenant, Selection(), limit=3, cursor=first.next_cursor)
    assert [each.run_id for each in [*first.items, *second.items]] == names(*reversed(dead))
    assert second.next_cursor is None
    row = await world.dead_letters.read(world.tenant, dead[0])
    assert (row.payload, row.error, row.error_class, row.attempt) == (b"{}", "boom", "ValueError", 1)
    globex = await world.another_tenant()
    assert (await world.dead_letters.list(globex, Selection(), limit=3, cursor=None)).items == []
    with pytest.raises(NotFound):
        await world.dead_letters.read(globex, dead[0])


async def test_the_depth_is_told_in_all_and_by_queue(world: World):
    await bury(world, 3)
    await Gauges(world.database).measure()
    counted, sample = telemetry.REGISTRY.get_sample_value, telemetry.SEEN.get_sample_value
    assert sample("foliot_dead_letters") == 3
    assert sample("foliot_queue_dead_letters", {"queue": "default"}) == 3
    replayed = counted("foliot_dead_letters_replayed_total")
    await replay(world, *[row["id"] for row in await world.sql("SELECT id FROM dead_letter")])
    await Gauges(world.database).measure()
    assert sample("foliot_dead_letters") == sample("foliot_queue_dead_letters", {"queue": "default"}) == 0
    assert counted("foliot_dead_letters_replayed_total") == replayed + 3
