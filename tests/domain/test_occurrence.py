"""The fates of instants: which there are, newest first, and what a calendar's taking one away means."""

from datetime import date, timedelta
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.domain.calendar import Calendar, Weekly
from foliot.domain.cron import Cron
from foliot.domain.misfire import USUAL
from foliot.domain.moving import Taken
from foliot.domain.occurrence import Fate, Nominal, Stretch, by_calendar, newest_first
from foliot.domain.schedule import Every, OnCalendar, next_fire, taken_away
from world import utc

SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
BEGIN = utc("2026-11-02")
MONDAY = utc("2026-11-09 09:00")
SATURDAY = utc("2026-11-07 09:00")

recurrences = st.sampled_from(
    [
        Cron("0 9 * * *", "Europe/Berlin"),
        Cron("*/20 0 * * *"),
        Cron("0 12 1 * *"),
        Every(timedelta(hours=5, minutes=17)),
        Every(timedelta(days=3), utc("2026-01-01 06:30:00.250000")),
    ]
)
calendars = st.sampled_from(
    [
        Calendar("Europe/Berlin", (0, 1, 2, 3, 4), (date(2026, 11, 11),)),
        Calendar("UTC", weekly=(Weekly(22 * 60, 1440), Weekly(5 * 1440, 90))),
        Calendar("UTC", (6,)),
    ]
)
rules = st.sampled_from(["skip", "next", "previous", "nearest"])


def _fires(recurrence, after, until):
    while (after := next_fire(recurrence, after)) is not None and after <= until:
        yield after


@settings(deadline=None)
@given(recurrences, calendars, rules, st.integers(0, 60 * 86_400), st.integers(0, 40 * 86_400))
def test_all_that_fires_and_all_that_was_taken_away_is_there_once_the_newest_first(
    recurrence, calendar, rule, after, length
):
    after = BEGIN + after * SECOND
    until = after + length * SECOND
    following = OnCalendar(recurrence, calendar, rule)
    found = list(newest_first(following, after, until))
    assert [each.at for each in found] == sorted({each.at for each in found}, reverse=True)
    assert [each.at for each in found if each.taken is None] == [*_fires(following, after, until)][::-1]
    assert [each.taken for each in found if each.taken is not None] == [*taken_away(following, after, until)][::-1]
    assert {*_fires(recurrence, after, until)} <= {each.at for each in found}
    assert [*newest_first(recurrence, after, until)] == [
        Nominal(at) for at in [*_fires(recurrence, after, until)][::-1]
    ]


def test_the_newest_of_many_are_found_without_looking_at_all(monkeypatch):
    """Open for a minute a week, every second: between two fires may lie 600,000 that were taken away."""
    calendar = Calendar("UTC", weekly=(Weekly(0, 7 * 1440 - 1),))
    looked = 0

    def counted(recurrence, after):
        nonlocal looked
        looked += 1
        return next_fire(recurrence, after)

    monkeypatch.setattr("foliot.domain.occurrence.next_fire", counted)
    monkeypatch.setattr("foliot.domain.schedule.next_fire", counted)
    found = list(islice(newest_first(OnCalendar(Every(SECOND), calendar), BEGIN, BEGIN + 30 * DAY), 1_000))
    assert len(found) == 1_000
    assert looked < 5_000


WEEKDAYS = (0, 1, 2, 3, 4)
DAILY = Cron("0 9 * * *")
WORK = OnCalendar(DAILY, Calendar("UTC", WEEKDAYS), "next")


def _stretch(after, until, *, schedule=1, paused=False, recurrence=WORK):
    return recurrence, Stretch(schedule=schedule, after=after, until=until, cursor=until, paused=paused, catch_up=USUAL)


def _told(moved_to, *owned, known_from=BEGIN):
    told = by_calendar(Taken(SATURDAY, moved_to), 1, owned, known_from)
    return told.fate, told.reason


def test_what_the_calendar_does_not_allow_is_skipped():
    assert _told(None, _stretch(BEGIN, MONDAY)) == (Fate.SKIPPED, "the calendar is closed then")


def test_what_it_moved_is_moved_if_the_same_schedule_has_that_time_too():
    moved = (Fate.MOVED, "the calendar moved it to 2026-11-09T09:00:00Z")
    assert _told(MONDAY, _stretch(BEGIN, MONDAY)) == moved
    assert _told(MONDAY, _stretch(BEGIN, SATURDAY), _stretch(SATURDAY, MONDAY + DAY)) == moved


@pytest.mark.parametrize(
    ("holiday", "goal"), [(date(2026, 12, 25), "2026-11-09T09:00:00Z"), (date(2026, 11, 9), "2026-11-10T09:00:00Z")]
)
def test_what_a_changed_calendar_moves_too_is_told_where_that_one_moved_it(holiday, goal):
    changed = OnCalendar(DAILY, Calendar("UTC", WEEKDAYS, (holiday,)), "next")
    later = _stretch(SATURDAY + HOUR, MONDAY + 5 * DAY, schedule=2, recurrence=changed)
    for moved_to in (MONDAY, None):
        told = _told(moved_to, later, _stretch(BEGIN, SATURDAY + HOUR))
        assert told == (Fate.MOVED, f"the calendar moved it to {goal}")


def test_what_it_moved_to_where_the_job_does_not_run_is_skipped_and_says_why():
    half_past = _stretch(SATURDAY + HOUR, MONDAY + DAY, schedule=2, recurrence=Cron("30 9 * * *"))
    reasons = [
        _told(MONDAY, _stretch(BEGIN, SATURDAY + HOUR), half_past),
        _told(MONDAY, _stretch(BEGIN, SATURDAY + HOUR), _stretch(SATURDAY + HOUR, MONDAY, paused=True)),
        _told(SATURDAY - DAY, _stretch(SATURDAY - HOUR, MONDAY)),
    ]
    assert {fate for fate, _ in reasons} == {Fate.SKIPPED}
    assert [reason.rpartition(", ")[2] for _, reason in reasons] == [
        "when the job has this schedule no more",
        "when the job is paused",
        "before the job had this schedule",
    ]


def test_what_moved_to_where_nobody_remembers_is_moved():
    assert _told(SATURDAY - DAY, _stretch(SATURDAY - HOUR, MONDAY), known_from=SATURDAY - HOUR)[0] is Fate.MOVED
