"""The occurrence ledger: every instant of every job has a fate, and no fate is told that was not."""

from datetime import datetime, timedelta

import pytest

from editing import changed
from filling import begin, finish
from foliot.domain.errors import InvalidField, NotFound
from operating import operator
from telling import told_of
from world import World

MINUTE = timedelta(minutes=1)


async def _past_job(world: World, minutes: int = 30, **fields) -> tuple[int, list[datetime]]:
    """A job of every minute that has been there for so long, and its instants since; nothing has been fired."""
    timing = {"every": "PT1M", "scheduleAt": world.half_way(MINUTE)}
    job = await world.job_id(**timing, **{"overlap": "allow", **fields})
    await world.make_overdue(by=minutes * MINUTE)
    first = await world.next_at()
    return job, [first + number * MINUTE for number in range(minutes)]


async def test_what_fired_is_told_with_its_run_whether_it_waits_or_is_over(world: World):
    job, instants = await _past_job(world, 3, catchUp={"mode": "all"})
    await world.fire()
    worker = await world.worker()
    await worker.settle((await worker.claim())[:1])
    told = await told_of(world, job)
    assert [each.at for each in told] == instants
    assert {each.status for each in told} == {"fired"}
    assert sorted(each.run_status or "" for each in told) == ["completed", *["running"] * (len(instants) - 1)]
    assert {each.run_id for each in told} >= {
        (await world.insights.runs(world.tenant, status="completed", state=None, job=job, limit=1, cursor=None))
        .items[0]
        .run_id
    }


@pytest.mark.parametrize(
    ("catch_up", "reason"),
    [
        ({"mode": "none"}, "nothing"),
        ({"mode": "latest"}, "later one"),
        ({"mode": "all", "window": "PT5M"}, "window"),
    ],
)
async def test_missed_instants_say_why(world: World, catch_up: dict[str, str], reason: str):
    job, instants = await _past_job(world, 30, catchUp=catch_up)
    await world.fire()
    told = await told_of(world, job)
    assert [each.at for each in told] == instants
    missed = [each for each in told if each.status == "missed"]
    assert missed
    assert {each.status for each in told} <= {"missed", "fired"}
    assert all(reason in (each.reason or "") for each in missed)
    assert await told_of(world, job, status="missed") == missed


async def test_an_overlap_is_a_skip_with_its_reason(world: World):
    job, instants = await _past_job(world, 3, overlap="skip", catchUp={"mode": "all"})
    await world.fire()
    told = await told_of(world, job)
    assert sorted(each.status for each in told) == ["fired", *["skipped"] * (len(instants) - 1)]
    assert {each.reason for each in told} == {None, "the previous run was still going"}


async def test_instants_of_a_pause_are_skipped_whether_it_lasts_or_is_over(world: World):
    job, instants = await _past_job(world, 10, catchUp={"mode": "all"})
    await world.fire()
    await world.control.pause(world.tenant, job)
    await world.sql("UPDATE job SET paused_at = paused_at - interval '5 minutes'")
    await world.sql("UPDATE past_subscription SET until = until - interval '5 minutes'")
    told = await told_of(world, job)
    assert {each.at for each in told} == set(instants)
    await world.resume(job)
    rows = await world.sql("SELECT after, until, paused FROM past_subscription WHERE job = $1 ORDER BY after", job)
    assert [row["paused"] for row in rows] == [False, True]
    assert rows[0]["until"] == rows[1]["after"]
    assert [each.status for each in await told_of(world, job)] == [each.status for each in told]


@pytest.mark.parametrize("set_back", ["0", "20 minutes"])
async def test_no_instant_lies_between_a_pause_and_what_comes_after_it(world: World, set_back: str):
    hourly = {"every": "PT1H", "scheduleAt": world.half_way(timedelta(hours=1))}
    job = await world.job_id(**hourly)
    await world.job_id(**hourly)  # keeps the schedule awake
    await world.control.pause(world.tenant, job)
    await world.sql("UPDATE schedule SET cursor = clock_timestamp() + $1::text::interval", set_back)
    await world.resume(job)
    ended = await world.value("SELECT until FROM past_subscription WHERE job = $1 AND paused", job)
    assert ended == await world.value("SELECT after FROM subscription WHERE job = $1", job)


async def test_what_is_paused_now_is_told_without_a_row_for_each(world: World):
    before = await world.value("SELECT clock_timestamp()")
    job = await world.job_id(every="PT1M")
    await world.control.pause(world.tenant, job)
    await world.sql("UPDATE job SET paused_at = paused_at - interval '1 hour'")
    told = await told_of(world, job, until=before)
    assert len(told) in {59, 60, 61}
    assert {(each.status, each.reason) for each in told} == {("skipped", "the job was paused")}
    assert await world.count("history") == 0


async def test_an_edit_leaves_each_instant_with_the_definition_that_had_it(world: World):
    job, instants = await _past_job(world, 10, catchUp={"mode": "all"})
    await world.fire()
    edited = await world.value("SELECT clock_timestamp()")
    await world.control.change(world.tenant, job, changed(every="PT17S"))
    told = await told_of(world, job, until=edited)
    assert [each.at for each in told] == instants
    assert {each.status for each in told} == {"fired"}


async def test_what_has_come_and_is_not_dealt_with_is_due_and_what_will_come_is_expected(world: World):
    job, instants = await _past_job(world, 5)
    now = await world.value("SELECT clock_timestamp()")
    told = await told_of(world, job, until=now + 3 * MINUTE)
    assert [each.status for each in told] == [*["due"] * len(instants), *["expected"] * 3]
    assert [each.at for each in told[: len(instants)]] == instants


async def test_an_open_firing_is_due_until_its_chunk_has_come(world: World):
    job, instants = await _past_job(world, 2, catchUp={"mode": "all"})
    while await world.advance():
        pass
    assert {each.status for each in await told_of(world, job)} == {"due"}
    await world.fire()
    assert [each.status for each in await told_of(world, job)] == ["fired"] * len(instants)


async def test_an_instant_of_which_nothing_tells_is_called_so(world: World):
    job, instants = await _past_job(world, 3, catchUp={"mode": "all"})
    await world.fire()
    await world.sql("DELETE FROM run WHERE job = $1 AND scheduled_at = $2", job, instants[1])
    await world.sql("DELETE FROM firing")
    told = await told_of(world, job)
    assert [each.status for each in told] == ["fired", "unaccounted", *["fired"] * (len(instants) - 2)]


async def test_a_late_run_that_is_over_is_found_though_its_id_is_much_younger(world: World):
    job, instants = await _past_job(world, 600, catchUp={"mode": "all", "window": "PT24H"})
    await world.fire()
    worker = await world.worker()
    while taken := await worker.claim():
        await worker.settle(taken)
    told = await told_of(world, job, limit=100, until=instants[-1])
    assert [each.at for each in told] == instants
    assert {(each.status, each.run_status) for each in told} == {("fired", "completed")}


async def test_what_was_missed_stays_missed_and_says_which_run_a_backfill_made_of_it(world: World):
    job, instants = await _past_job(world, 10, catchUp={"mode": "none"})
    await world.fire()
    missed = [each.at for each in await told_of(world, job, status="missed")]
    await begin(world, job, since=instants[0], until=missed[-1])
    async with operator(world) as duty:
        assert {*missed} <= {*await finish(world, duty)}
    told = [each for each in await told_of(world, job) if each.at in missed]
    assert {(each.status, each.run_id) for each in told} == {("missed", None)}
    made = (await world.insights.runs(world.tenant, status=None, state=None, job=job, limit=99, cursor=None)).items
    assert {each.backfill_run_id for each in told} == {run.run_id for run in made if run.scheduled_at in missed}


async def test_an_instant_that_was_opened_on_time_and_made_hours_later_is_found(world: World):
    """By a scheduler that hung between the two: nothing says that it was late."""
    job = await world.job_id(every="PT24H")
    await world.make_overdue(by=timedelta(days=2))
    at = await world.next_at()
    await world.fire(at)
    worker = await world.worker()
    await worker.settle(await worker.claim())
    (told,) = await told_of(world, job, until=at)
    assert (told.at, told.status, told.run_status) == (at, "fired", "completed")


async def test_gaps_are_told_per_tenant_newest_first(world: World):
    _, instants = await _past_job(world, 30, catchUp={"mode": "none"})
    other = await world.another_tenant()
    await world.fire()
    page = await world.ledger.gaps(world.tenant, since=None, until=None, limit=10, cursor=None)
    assert page.items[-1].first == instants[0]
    assert {(gap.jobs, gap.name) for gap in page.items} == {(1, "report")}
    assert sum(gap.instants for gap in page.items) in {len(instants), len(instants) - 1}
    assert (await world.ledger.gaps(other, since=None, until=None, limit=10, cursor=None)).items == []


async def test_pages_of_gaps_follow_each_other(world: World):
    await world.job_id(every="PT1M", overlap="allow", catchUp={"mode": "all", "window": "PT5M"})
    await world.job_id(every="PT1M", catchUp={"mode": "none"})
    await world.make_overdue(by=30 * MINUTE)
    await world.fire()
    whole = await world.ledger.gaps(world.tenant, since=None, until=None, limit=100, cursor=None)
    assert len(whole.items) > 3
    found, cursor = [], None
    while True:
        page = await world.ledger.gaps(world.tenant, since=None, until=None, limit=2, cursor=cursor)
        found += page.items
        if (cursor := page.next_cursor) is None:
            break
    assert found == whole.items


async def test_wrong_questions_are_answered_clearly(world: World):
    job = await world.job_id()
    with pytest.raises(InvalidField, match="gone"):
        await told_of(world, job, status="gone")
    with pytest.raises(InvalidField, match="ours"):
        await told_of(world, job, cursor="yesterday")
    with pytest.raises(InvalidField, match="ours"):
        await world.ledger.gaps(world.tenant, since=None, until=None, limit=1, cursor="yesterday")
    with pytest.raises(NotFound):
        await world.ledger.occurrences(
            await world.another_tenant(), job, since=None, until=None, status=None, limit=1, cursor=None
        )
