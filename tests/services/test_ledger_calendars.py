"""The ledger of jobs that follow calendars: also what a calendar took away is told, and where it went."""

from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

import pytest

from calendaring import job_on_calendar, put_calendar
from editing import changed
from foliot.domain.calendar import Calendar
from foliot.domain.ids import decode
from foliot.domain.schedule import next_fire, parse_key
from foliot.services import ledger
from foliot.services.insights.jobs import draft_again
from telling import told_of
from world import World

HOUR = timedelta(hours=1)
CLOSED = "the calendar is closed then"


class Past(NamedTuple):
    """An hourly job that has been there since `begin`, and all its nominal instants since."""

    job: int
    begin: datetime
    hours: list[datetime]


async def _past_job(world: World, first: float, last: float, rule: str = "skip", *, ago: int = 10) -> Past:
    """Its calendar is closed from `first` to `last` hours after its beginning; nothing has been fired."""
    now = await world.value("SELECT clock_timestamp()")
    begin = (now - ago * HOUR - HOUR / 2).replace(microsecond=0)  # no hour comes up while a test looks
    window = {"from": (begin + first * HOUR).isoformat(), "until": (begin + last * HOUR).isoformat()}
    await put_calendar(world, "our-secret-days", blackouts=[window])
    calendar = {"name": "our-secret-days", "rule": rule}
    catch_up = {"mode": "all", "window": "P2D"}
    timing = {"every": "PT1H", "scheduleAt": begin.isoformat(), "catchUp": catch_up, "calendar": calendar}
    made = await job_on_calendar(world, **timing, overlap="allow")
    (row,) = await world.sql("SELECT key, digest, body FROM schedule, calendar_body")
    recurrence = parse_key(row["key"], {row["digest"]: Calendar.parse(row["body"])})
    await world.sql("UPDATE subscription SET after = $1", begin)
    await world.sql("UPDATE schedule SET cursor = $1, next_at = $2", begin, next_fire(recurrence, begin))
    hours = [begin + number * HOUR for number in range(1, (now - begin) // HOUR + 1)]
    return Past(decode("job", made.job_id), begin, hours)


async def test_what_the_calendar_took_away_is_skipped_and_the_rest_fired(world: World):
    job, begin, hours = await _past_job(world, 2, 6)
    await world.fire()
    told = await told_of(world, job)
    expected = [(at, "skipped" if begin + 2 * HOUR <= at < begin + 6 * HOUR else "fired") for at in hours]
    assert [(each.at, each.status) for each in told] == expected
    skipped = [each for each in told if each.status == "skipped"]
    assert {each.reason for each in skipped} == {CLOSED}
    assert await told_of(world, job, status="skipped") == skipped
    assert await told_of(world, job, status="fired") == [each for each in told if each.status == "fired"]
    assert not [each for each in told if "secret" in (each.reason or "")]


async def test_what_it_moved_says_where_to_and_is_told_there_with_its_run(world: World):
    job, begin, hours = await _past_job(world, 2, 5.5, "next")
    await world.fire()
    target = begin + 5.5 * HOUR
    told = await told_of(world, job)
    assert [each.at for each in told] == sorted([*hours, target])
    moved = [each for each in told if each.status == "moved"]
    assert [each.at for each in moved] == [begin + number * HOUR for number in (2, 3, 4, 5)]
    assert {each.reason for each in moved} == {f"the calendar moved it to {target:%Y-%m-%dT%H:%M:%SZ}"}
    assert {each.status for each in told if each not in moved} == {"fired"}
    assert await told_of(world, job, status="moved") == moved


async def test_a_run_that_is_still_to_come_and_those_that_will_not_are_told_too(world: World):
    job, begin, _ = await _past_job(world, 20, 22)
    told = await told_of(world, job, since=begin + 18 * HOUR, until=begin + 23 * HOUR)
    assert [(each.status, each.reason) for each in told] == [
        ("expected", None),
        ("skipped", CLOSED),
        ("skipped", CLOSED),
        ("expected", None),
        ("expected", None),
    ]


async def test_what_was_moved_past_an_edit_did_not_take_place_and_says_so(world: World):
    job, begin, hours = await _past_job(world, 9, 20, "next")
    await world.fire()
    assert {each.at for each in await told_of(world, job, status="moved")} == {*hours[8:]}
    await world.control.change(world.tenant, job, changed(every="PT2H", calendar=None))
    assert await told_of(world, job, status="moved") == []
    lost = await told_of(world, job, until=hours[-1], status="skipped")
    assert [each.at for each in lost] == hours[8:]
    assert all((each.reason or "").endswith("when the job has this schedule no more") for each in lost)
    assert [each.status for each in await told_of(world, job, until=begin + 8 * HOUR)] == ["fired"] * 8


async def test_what_was_moved_into_a_pause_is_skipped_until_the_job_goes_on(world: World):
    job, _, hours = await _past_job(world, 9, 20, "next")
    await world.fire()
    await world.control.pause(world.tenant, job)
    paused = await told_of(world, job, until=hours[-1], status="skipped")
    assert [each.at for each in paused] == hours[8:]
    assert all((each.reason or "").endswith("when the job is paused") for each in paused)
    known = await world.calendars._book.named(world.tenant, {"our-secret-days"})
    await world.control.resume(world.tenant, job, partial(draft_again, world.tenant, calendars=known))
    assert [each.at for each in await told_of(world, job, until=hours[-1], status="moved")] == hours[8:]


async def test_pages_are_bounded_and_go_on_where_a_calendar_is_closed_for_long(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    job, _, hours = await _past_job(world, 3, 2_000, ago=400)
    monkeypatch.setattr(ledger, "MOST_LOOKED_AT", 60)
    monkeypatch.setattr(ledger, "_BATCH", 20)
    query = {"since": None, "until": None, "status": "due", "limit": 50}
    pages, cursor = 0, None
    while True:
        page = await world.ledger.occurrences(world.tenant, job, **query, cursor=cursor)
        pages, cursor = pages + 1, page.next_cursor
        if cursor is None:
            break
        assert page.items == []
    assert [each.at for each in page.items] == hours[:2][::-1]
    assert pages == len(hours) // 60 + 1
    assert [each.at for each in await told_of(world, job, limit=50)] == hours
