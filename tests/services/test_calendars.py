"""Jobs that follow calendars, and what happens when a calendar changes."""

import asyncio
from datetime import timedelta
from functools import partial

import msgspec
import pytest

from calendaring import job_on_calendar, put_calendar
from editing import changed
from foliot.domain.calendar import Calendar
from foliot.domain.errors import Conflict, InvalidField, NotFound
from foliot.domain.ids import decode
from foliot.domain.schedule import OnCalendar, canonical_key, next_fire, parse_key
from foliot.services.insights.jobs import draft_again
from foliot.services.recalendar import Recalendar
from foliot.wire.calendars import Calendars
from foliot.wire.job_views import JobView
from foliot.wire.jobs import JobBatch, JobBody, draft_of, drafts_of
from world import World

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
WORKDAYS = ("MON", "TUE", "WED", "THU", "FRI")


@pytest.fixture
async def recalendar(world: World):
    duty = Recalendar(world.database, world.control.move, draft_again)
    yield duty
    await duty.close()


async def _keys(world: World) -> list[str]:
    rows = await world.sql("SELECT schedule.key FROM schedule JOIN job ON job.schedule = schedule.id ORDER BY job.id")
    return [row["key"] for row in rows]


def _number(job: JobView) -> int:
    return decode("job", job.job_id)


async def test_a_job_fires_when_its_calendar_allows_and_not_when_it_does_not(world: World):
    now = await world.value("SELECT clock_timestamp()")
    closed = (now + HOUR).replace(microsecond=0)
    await put_calendar(world, blackouts=[{"from": closed.isoformat(), "until": (closed + 5 * HOUR).isoformat()}])
    job = await job_on_calendar(world, every="PT1H", overlap="allow")
    fired = []
    for _ in range(3):
        fired.append(at := await world.next_at())
        await world.fire(at)
    assert not any(closed <= at < closed + 5 * HOUR for at in fired)
    runs = await world.sql("SELECT scheduled_at FROM run WHERE job = $1 ORDER BY 1", _number(job))
    assert [row["scheduled_at"] for row in runs] == fired


async def test_jobs_with_the_same_recurrence_and_equal_calendars_share_a_schedule(world: World):
    await put_calendar(world, holidays=["2030-12-25", "2031-01-01"])
    await put_calendar(world, "same", holidays=[{"date": "2031-01-01", "name": "New Year"}, {"date": "2030-12-25"}])
    await job_on_calendar(world, every="PT1H")
    await job_on_calendar(world, every="PT1H", calendar="same")
    await job_on_calendar(world, every="PT1H", calendar={"name": "work", "rule": "next"})
    await world.job(every="PT1H")
    one, equal, moving, plain = await _keys(world)
    assert one == equal
    assert len({one, moving, plain}) == 3


async def test_what_a_job_says_of_its_calendar_is_said_back_and_stays_through_an_edit(world: World):
    await put_calendar(world)
    moving = {"name": "work", "rule": "nearest"}
    job = await job_on_calendar(world, every="PT1H", calendar=moving)
    assert msgspec.to_builtins(job.calendar) == moving
    assert (await job_on_calendar(world, every="PT1H", calendar={"name": "work", "rule": "skip"})).calendar == "work"
    known = await world.calendars._book.named(world.tenant, {"work"})
    row = await world.control.change(world.tenant, _number(job), partial(draft_again, world.tenant, calendars=known))
    assert row.timing["calendar"] == moving
    assert (await world.calendars.get(world.tenant, "work")).jobs == 2


async def test_a_name_that_does_not_exist_is_refused_with_those_that_do_the_nearest_first(world: World):
    for name in ("us-holidays", "de-holidays", "other"):
        await put_calendar(world, name)
    with pytest.raises(InvalidField) as refused:
        await job_on_calendar(world, every="PT1H", calendar="de-holiday")
    assert refused.value.field == "calendar"
    assert refused.value.hint == "those that exist: de-holidays, us-holidays, other"


async def test_a_batch_names_the_job_whose_calendar_is_unknown(world: World):
    await put_calendar(world)
    plain = {"name": "x", "handler": "noop", "every": 60}
    batch = msgspec.convert({"jobs": [{**plain, "calendar": "work"}, {**plain, "calendar": "werk"}]}, JobBatch)

    async def draft(calendars: Calendars):
        return drafts_of(batch, calendars=calendars)

    with pytest.raises(InvalidField) as refused:
        await world.calendars.resolving(world.tenant, draft)
    assert refused.value.field == "jobs[1].calendar"


async def test_a_batch_asks_once_however_many_jobs_and_names_it_has(world: World, monkeypatch: pytest.MonkeyPatch):
    for name in ("one", "two"):
        await put_calendar(world, name, holidays=[f"2030-01-0{len(name)}"])
    asked = []
    fetch = world.database.fetch

    async def counted(name, *arguments):
        asked.append(name)
        return await fetch(name, *arguments)

    monkeypatch.setattr(world.database, "fetch", counted)
    jobs = [{"name": "x", "handler": "noop", "every": 60, "calendar": ("one", "two")[n % 2]} for n in range(500)]
    batch = msgspec.convert({"jobs": jobs}, JobBatch)

    async def draft(calendars: Calendars):
        return drafts_of(batch, calendars=calendars)

    assert len(await world.calendars.resolving(world.tenant, draft)) == 500
    assert asked == ["calendars_named", "calendar_bodies"]


async def test_only_what_recurs_follows_a_calendar(world: World):
    await put_calendar(world)
    with pytest.raises(InvalidField, match="recurring"):
        await job_on_calendar(world, scheduleAt="2030-01-01T00:00:00Z")


async def test_a_changed_calendar_takes_its_jobs_along_and_says_how_many_are_left(world: World, recalendar: Recalendar):
    await put_calendar(world, holidays=["2030-12-25"])
    jobs = [await job_on_calendar(world, every="PT24H") for _ in range(3)]
    view, is_new = await put_calendar(world, holidays=["2030-12-26"])
    assert (view.jobs, view.pending_jobs, view.version, is_new) == (3, 3, 2, False)
    assert await recalendar.run_once() == 3
    view = await world.calendars.get(world.tenant, "work")
    assert (view.jobs, view.pending_jobs) == (3, 0)
    assert await recalendar.run_once() == 0
    (key,) = {*await _keys(world)}
    assert key.split("|")[-2] == await world.value("SELECT digest FROM calendar")
    assert [(await world.control.read(world.tenant, _number(job))).version for job in jobs] == [2, 2, 2]


async def test_other_names_for_the_same_days_move_nobody(world: World, recalendar: Recalendar):
    await put_calendar(world, holidays=["2030-12-25"])
    job = await job_on_calendar(world, every="PT24H")
    view, _ = await put_calendar(world, holidays=[{"date": "2030-12-25", "name": "Christmas"}])
    assert (view.version, view.pending_jobs) == (2, 0)
    assert await recalendar.run_once() == 0
    assert (await world.control.read(world.tenant, _number(job))).version == 1
    again, _ = await put_calendar(world, holidays=[{"date": "2030-12-25", "name": "Christmas"}])
    assert again.version == 2


@pytest.mark.parametrize("rule", ["skip", "next", "previous", "nearest"])
async def test_instants_up_to_the_move_follow_the_old_calendar_and_later_ones_the_new(
    world: World, recalendar: Recalendar, rule: str
):
    """Old instants that are still to be fired, and those of the new one, each exactly once."""
    now = await world.value("SELECT clock_timestamp()")
    past = (now - 10 * HOUR).replace(minute=0, second=0, microsecond=0)

    def window(first, last):
        return {"from": (past + first * HOUR).isoformat(), "until": (past + last * HOUR).isoformat()}

    old, _ = await put_calendar(world, blackouts=[window(2, 4), window(13, 16)])
    await job_on_calendar(world, every="PT1H", overlap="allow", calendar={"name": "work", "rule": rule})
    (key,) = await _keys(world)
    # As if nobody had fired for ten hours.
    before = parse_key(key, await _bodies(world))
    await world.sql("UPDATE subscription SET after = $1", past)
    await world.sql("UPDATE schedule SET cursor = $1, next_at = $2", past, next_fire(before, past))
    await put_calendar(world, blackouts=[window(6, 8), window(18, 21)])
    assert await recalendar.run_once() == 1
    moved_at = await world.value("SELECT max(after) FROM subscription")
    (key,) = await _keys(world)
    after = parse_key(key, await _bodies(world))
    end = past + DAY
    for _ in range(100):
        at = await world.value("SELECT min(next_at) FROM schedule")
        if at is None or at > end:
            break
        await world.fire(at)
    rows = await world.sql("SELECT scheduled_at FROM run WHERE id > 0 ORDER BY 1")
    assert [row["scheduled_at"] for row in rows] == [*_fires(before, past, moved_at), *_fires(after, moved_at, end)]
    assert old.version == 1


async def _bodies(world: World) -> dict[str, Calendar]:
    rows = await world.sql("SELECT digest, body FROM calendar_body")
    return {row["digest"]: Calendar.parse(row["body"]) for row in rows}


def _fires(recurrence, after, until):
    while (after := next_fire(recurrence, after)) is not None and after <= until:
        yield after


async def test_a_scheduler_that_is_killed_in_the_middle_leaves_the_rest_to_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("foliot.services.recalendar.CHUNK", 2)
    await put_calendar(world, holidays=["2030-12-25"])
    for _ in range(4):
        await job_on_calendar(world, every="PT24H")
    await put_calendar(world, holidays=["2030-12-26"])
    done = 0

    async def move(*arguments):
        nonlocal done
        if done:
            raise asyncio.CancelledError
        done += await world.control.move(*arguments)
        return done

    dying = Recalendar(world.database, move, draft_again)
    with pytest.raises(asyncio.CancelledError):
        await dying.run_once()
    await dying.close()
    assert (await world.calendars.get(world.tenant, "work")).pending_jobs == 2
    next_one = Recalendar(world.database, world.control.move, draft_again)
    assert await next_one.run_once() == 2
    await next_one.close()
    assert await world.value("SELECT followed = version FROM calendar")


async def test_two_schedulers_move_each_job_once(world: World):
    await put_calendar(world, holidays=["2030-12-25"])
    jobs = [await job_on_calendar(world, every="PT24H") for _ in range(6)]
    await put_calendar(world, holidays=["2030-12-26"])
    duties = [Recalendar(world.database, world.control.move, draft_again) for _ in range(2)]
    await asyncio.gather(*(duty.run_once() for duty in duties))
    for duty in duties:
        await duty.close()
    assert {(await world.control.read(world.tenant, _number(job))).version for job in jobs} == {2}
    assert await world.count("subscription") == 6


async def test_a_job_that_its_owner_has_changed_meanwhile_is_left_as_it_is(world: World):
    await put_calendar(world, holidays=["2030-12-25"])
    job = _number(await job_on_calendar(world, every="PT24H"))
    await put_calendar(world, holidays=["2030-12-26"])

    async def overtaken(tenant, numbers, redraft):
        await world.control.change(tenant, numbers[0], changed(calendar=None))
        return await world.control.move(tenant, numbers, redraft)

    duty = Recalendar(world.database, overtaken, draft_again)
    assert await duty.run_once() == 0
    await duty.close()
    row = await world.control.read(world.tenant, job)
    assert (row.version, "calendar" in row.timing) == (2, False)
    assert (await world.calendars.get(world.tenant, "work")).jobs == 0


async def test_of_many_that_are_moved_at_once_the_one_that_is_changed_at_that_moment_stays(
    world: World, recalendar: Recalendar
):
    await put_calendar(world, holidays=["2030-12-25"])
    jobs = [_number(await job_on_calendar(world, every="PT24H")) for _ in range(3)]
    await put_calendar(world, holidays=["2030-12-26"])
    async with world.unfinished() as owner:
        await owner.run("lock_job", world.tenant, jobs[1])
        moving = asyncio.create_task(recalendar.run_once())
        await world.until_waiting()
        await owner.execute("UPDATE job SET version = version + 1 WHERE id = $1", jobs[1])
    assert await moving == 2
    assert not await world.value("SELECT followed = version FROM calendar")
    assert await recalendar.run_once() == 1
    assert len({*await _keys(world)}) == 1
    assert await world.count("subscription") == 3


async def test_what_is_moved_keeps_all_but_its_schedule(world: World, recalendar: Recalendar):
    await put_calendar(world, holidays=["2030-12-25"])
    fields = {"every": "PT24H", "key": "mine", "labels": {"team": "x"}, "maxRuns": 7, "jitter": "PT5M"}
    job = _number(await job_on_calendar(world, **fields, catchUp={"mode": "all", "window": "PT6H"}, overlap="allow"))
    kept = (
        "SELECT name, kind, gate, timing, labels, runs_left, calendar, key, job.payload, s.payload, job.spec, s.spec,"
        " s.tenant, s.exclusive, until, closed, catch_up, catch_up_window, phase, counted"
        " FROM job JOIN subscription s ON s.job = job.id WHERE job.id = $1"
    )
    before = await world.sql(kept, job)
    await put_calendar(world, holidays=["2030-12-26"])
    assert await recalendar.run_once() == 1
    assert await world.sql(kept, job) == before


async def test_a_paused_job_follows_too_and_goes_on_by_the_new_calendar(world: World, recalendar: Recalendar):
    await put_calendar(world, holidays=["2030-12-25"])
    job = _number(await job_on_calendar(world, every="PT24H"))
    await world.control.pause(world.tenant, job)
    await put_calendar(world, holidays=["2030-12-26"])
    assert await recalendar.run_once() == 1
    assert await world.status(job) == "paused"
    known = await world.calendars._book.named(world.tenant, {"work"})
    await world.control.resume(world.tenant, job, partial(draft_again, world.tenant, calendars=known))
    (key,) = await _keys(world)
    assert key == canonical_key(OnCalendar(parse_key("every|PT24H|-"), known.found["work"].calendar))


async def test_a_draft_of_an_older_calendar_is_made_again_and_never_stored(world: World):
    await put_calendar(world, holidays=["2030-12-25"])
    body = msgspec.convert({"name": "x", "handler": "noop", "every": 3600, "calendar": "work"}, JobBody)
    tries = 0

    async def create(calendars: Calendars):
        nonlocal tries
        draft = draft_of(body, calendars=calendars)
        tries += 1
        if tries == 1:  # between reading the calendar and storing the job
            await put_calendar(world, holidays=["2030-12-26"])
        return await world.control.create(world.tenant, draft, render=lambda row: b"")

    await world.calendars.resolving(world.tenant, create)
    assert tries == 2
    (key,) = await _keys(world)
    assert key.split("|")[-2] == await world.value("SELECT digest FROM calendar")


async def test_a_change_of_the_calendar_waits_for_jobs_that_are_being_stored(world: World, recalendar: Recalendar):
    """Otherwise the job would follow the older version for ever, and nobody would know."""
    await put_calendar(world, holidays=["2030-12-25"])
    number = await world.value("SELECT id FROM calendar")
    async with world.unfinished() as owner:
        await owner.run("hold_calendars", [number])
        changing = asyncio.create_task(put_calendar(world, holidays=["2030-12-26"]))
        await world.until_waiting()
        assert not changing.done()
    await changing


async def test_a_calendar_that_jobs_follow_is_not_deleted_and_those_are_named(world: World):
    await put_calendar(world)
    job = await job_on_calendar(world, every="PT1H")
    with pytest.raises(Conflict, match=job.job_id):
        await world.calendars.delete(world.tenant, "work")
    await world.control.cancel(world.tenant, _number(job))
    assert (await world.calendars.delete(world.tenant, "work")).name == "work"
    with pytest.raises(NotFound):
        await world.calendars.get(world.tenant, "work")
    assert (await world.insights.job(world.tenant, "acme", _number(job))).calendar == "work"


async def test_the_next_run_of_a_job_that_begins_later_is_the_first_that_its_calendar_allows(world: World):
    await put_calendar(world, businessDays=WORKDAYS)
    timing = {"cronExpression": "0 9 * * *", "scheduleAt": "2031-03-01T00:00:00Z"}  # a Saturday
    made = await job_on_calendar(world, **timing)
    assert made.next_run_at.isoformat() == "2031-03-03T09:00:00+00:00"
    assert (await world.insights.job(world.tenant, "acme", _number(made))).next_run_at == made.next_run_at
    page = await world.insights.jobs(
        world.tenant, "acme", status=None, name=None, label=None, schedule_type=None, limit=5, cursor=None
    )
    assert [each.next_run_at for each in page.items] == [made.next_run_at]
