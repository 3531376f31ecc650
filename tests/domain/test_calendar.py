"""Calendars: what is open, what follows, and what they make of a schedule."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from itertools import takewhile
from time import process_time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from foliot.domain.calendar import LOOKOUT, Calendar, Weekly, Window, joined
from foliot.domain.cron import Cron
from foliot.domain.errors import InvalidField
from foliot.domain.moving import Taken, destination
from foliot.domain.schedule import (
    Every,
    OnCalendar,
    calendar_of,
    canonical_key,
    gap,
    next_fire,
    parse_key,
    taken_away,
)
from world import utc

SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
WORKDAYS = (0, 1, 2, 3, 4)
YEAR_END = Calendar("Europe/Berlin", WORKDAYS, (date(2026, 12, 25), date(2027, 1, 1)))

instants = st.integers(0, 200 * 24 * 60).map(lambda minutes: utc("2026-09-01") + timedelta(minutes=minutes))
readings = instants.map(lambda at: at.replace(tzinfo=None))
lengths = st.integers(1, 5 * 24 * 60).map(lambda minutes: timedelta(minutes=minutes))
windows = st.builds(lambda start, length: Window(start, start + length), readings | instants, lengths)
weeklies = st.builds(Weekly, st.integers(0, 7 * 1440 - 1), st.integers(1, 1440))
days = st.integers(0, 200).map(lambda number: date(2026, 9, 1) + number * DAY)
calendars = st.builds(
    Calendar,
    st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Havana"]),
    st.sets(st.integers(0, 6), min_size=3).map(tuple),
    st.lists(days, max_size=12).map(tuple),
    st.lists(windows, max_size=4).map(tuple),
    st.lists(weeklies, max_size=2).map(tuple),
)
recurrences = st.sampled_from(
    [
        Cron("0 9 * * *", "Europe/Berlin"),
        Cron("30 2 * * *", "Europe/Berlin"),
        Cron("0 */7 * * *"),
        Cron("15 23 1,15 * *", "Australia/Lord_Howe"),
        Cron("0 12 * * SUN"),
        Every(timedelta(hours=5, minutes=17)),
        Every(timedelta(days=3), utc("2026-01-01 06:30:00.250000")),
    ]
)
rules = st.sampled_from(["skip", "next", "previous", "nearest"])


@settings(deadline=None)
@given(calendars, instants)
def test_the_next_opening_is_open_and_all_before_it_is_closed(calendar, at):
    opening = calendar.next_open(at)
    end = opening or at + LOOKOUT
    assert opening is None or calendar.is_open(opening)
    assert not any(calendar.is_open(at + share * (end - at)) for share in (0, 0.3, 0.7) if at < end)
    assert at == end or not calendar.is_open(end - SECOND)


@settings(deadline=None)
@given(calendars, instants)
def test_the_previous_opening_is_open_and_all_after_it_is_closed(calendar, at):
    opening = calendar.previous_open(at)
    assert opening is None or calendar.is_open(opening)
    if calendar.is_open(at):
        assert opening == at
    elif opening is not None:
        assert not any(calendar.is_open(opening + SECOND + share * (at - opening - SECOND)) for share in (0, 0.5, 1))


@settings(deadline=None)
@given(calendars, instants, lengths)
def test_the_stretches_of_a_time_are_exactly_what_is_closed_in_it(calendar, first, length):
    stretches = calendar.stretches(first, first + length)
    for share in range(20):
        at = first + share / 20 * length
        assert calendar.is_open(at) != any(start <= at < end for start, end in stretches)
    for start, end in stretches:
        assert not calendar.is_open(max(first, start))
        assert end >= first + length or calendar.is_open(end)


@settings(deadline=None)
@given(calendars)
def test_a_calendar_reads_back_as_it_was_and_its_order_does_not_matter(calendar):
    assert Calendar.parse(calendar.body) == calendar
    fields = {name: tuple(reversed(getattr(calendar, name))) for name in ("holidays", "blackouts", "weekly")}
    shuffled = Calendar(calendar.timezone, tuple(reversed(calendar.business_days)), **fields)
    assert shuffled.digest == calendar.digest
    assert Calendar(calendar.timezone, holidays=(date(2040, 1, 1),)).digest != calendar.digest


@settings(deadline=None)
@given(recurrences, calendars, rules)
def test_a_key_reads_back_with_the_calendar_that_it_names(recurrence, calendar, rule):
    following = OnCalendar(recurrence, calendar, rule)
    key = canonical_key(following)
    assert calendar_of(key) == calendar.digest
    assert calendar_of(canonical_key(recurrence)) is None
    assert parse_key(key, {calendar.digest: calendar}) == following


@settings(deadline=None, max_examples=60)
@given(recurrences, calendars, rules, instants)
def test_it_fires_exactly_where_its_nominal_instants_go_once_each(recurrence, calendar, rule, after):
    """Compared with every nominal instant of months, each sent to its destination by itself."""
    until = after + 20 * DAY
    nominals = takewhile(lambda at: at <= until + 3 * LOOKOUT, _fires(recurrence, after - 3 * LOOKOUT))
    expected = sorted({to for at in nominals if (to := destination(calendar, rule, at)) and after < to <= until})
    following = OnCalendar(recurrence, calendar, rule)
    assert list(takewhile(lambda at: at <= until, _fires(following, after))) == expected


@settings(deadline=None, max_examples=25)
@given(recurrences, calendars, rules, instants)
def test_a_later_start_has_no_earlier_fire_and_gaps_agree_with_the_fires(recurrence, calendar, rule, after):
    following = OnCalendar(recurrence, calendar, rule)
    until = after + 20 * DAY
    fires = list(takewhile(lambda at: at <= until, _fires(following, after)))
    found = gap(following, after, until)
    assert (found and (found.first, found.last, found.count)) == ((fires and (fires[0], fires[-1], len(fires))) or None)
    few = gap(following, after, until, most=2)
    assert len(fires) <= 2 or (few.last, few.exact) == (fires[-1], False)


@settings(deadline=None, max_examples=25)
@given(recurrences, calendars, rules, instants)
def test_what_is_taken_away_is_all_that_does_not_fire_at_its_own_time(recurrence, calendar, rule, after):
    until = after + 40 * DAY
    nominals = takewhile(lambda at: at <= until, _fires(recurrence, after))
    expected = [Taken(at, to) for at in nominals if (to := destination(calendar, rule, at)) != at]
    assert list(taken_away(OnCalendar(recurrence, calendar, rule), after, until)) == expected
    assert list(taken_away(recurrence, after, until)) == []


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("skip", None),
        ("next", "2026-12-28 08:00"),  # Christmas is a Friday: Monday, at nine all the same
        ("previous", "2026-12-24 08:00"),
        ("nearest", "2026-12-24 08:00"),
    ],
)
def test_a_run_on_a_day_off_moves_by_days_and_keeps_its_time(rule, expected):
    assert destination(YEAR_END, rule, utc("2026-12-25 08:00")) == (expected and utc(expected))


def test_of_two_days_of_work_that_are_as_near_the_later_is_taken():
    long = Calendar("UTC", holidays=(date(2026, 5, 4), date(2026, 5, 5), date(2026, 5, 6)))
    assert destination(long, "nearest", utc("2026-05-05 09:00")) == utc("2026-05-07 09:00")


@pytest.mark.parametrize(
    ("rule", "at", "expected"),
    [
        ("next", "2026-05-02 23:00", "2026-05-03 06:00"),
        ("previous", "2026-05-02 23:00", "2026-05-02 21:59:59"),
        ("nearest", "2026-05-02 23:00", "2026-05-02 21:59:59"),
        ("nearest", "2026-05-03 05:00", "2026-05-03 06:00"),
        ("skip", "2026-05-03 05:59:59", None),
        ("skip", "2026-05-03 06:00", "2026-05-03 06:00"),
    ],
)
def test_a_run_in_a_blackout_moves_to_its_edge(rule, at, expected):
    weekend = Calendar("UTC", weekly=(Weekly(5 * 1440 + 22 * 60, 8 * 60),))
    assert destination(weekend, rule, utc(at)) == (expected and utc(expected))


def test_runs_that_move_to_the_same_opening_are_one():
    closed = Calendar("UTC", blackouts=(Window(utc("2026-05-01"), utc("2026-05-01 06:30")),))
    following = OnCalendar(Cron("0 * * * *"), closed, "next")
    fires = list(takewhile(lambda at: at <= utc("2026-05-01 07:00"), _fires(following, utc("2026-04-30 22:00"))))
    assert fires == [utc("2026-04-30 23:00"), utc("2026-05-01 06:30"), utc("2026-05-01 07:00")]


def test_a_run_that_would_move_for_longer_than_a_month_is_skipped():
    closed = Calendar("UTC", blackouts=(Window(utc("2026-05-01"), utc("2026-06-10")),))
    following = OnCalendar(Cron("0 0 2,20 * *"), closed, "next")
    assert next_fire(following, utc("2026-05-01")) == utc("2026-06-10")
    assert [to for _, to in taken_away(following, utc("2026-05-01"), utc("2026-06-01"))] == [None, utc("2026-06-10")]


@pytest.mark.parametrize("rule", ["skip", "next", "previous", "nearest"])
def test_a_schedule_that_is_never_allowed_ends_instead_of_searching_for_ever(rule):
    from_now_on = Calendar("UTC", blackouts=(Window(utc("2026-01-01"), utc("2400-01-01")),))
    opens = utc("2400-01-01") if rule == "skip" else None  # nothing is moved for so long
    assert next_fire(OnCalendar(Cron("* * * * *"), from_now_on, rule), utc("2026-03-01")) == opens
    sundays = OnCalendar(Cron("0 9 * * SUN"), Calendar("UTC", WORKDAYS), "skip")
    assert next_fire(sundays, utc("2026-03-01")) is None


def test_a_schedule_finds_its_next_opening_behind_any_number_of_closures():
    hours = [utc("2026-01-01 01:00") + timedelta(hours=number) for number in range(1_599)]
    calendar = Calendar("UTC", blackouts=tuple(Window(hour, hour + timedelta(minutes=1)) for hour in hours))
    hourly = OnCalendar(Cron("0 * * * *"), calendar)
    assert next_fire(hourly, utc("2026-01-01 00:00")) == hours[-1] + timedelta(hours=1)


def test_a_schedule_finds_its_next_opening_behind_a_week_of_small_windows():
    mondays = tuple(Weekly(minute, 1) for minute in range(0, 2 * 1440, 2))
    every_other_minute = OnCalendar(Cron("*/2 * * * *"), Calendar("UTC", weekly=mondays))
    assert next_fire(every_other_minute, utc("2026-06-01 00:00")) == utc("2026-06-03 00:00")


@pytest.mark.parametrize("rule", ["skip", "previous", "next"])
def test_years_of_holidays_are_waited_for(rule):
    days = tuple(date(2026, 6, 1) + timedelta(days=number) for number in range(3_000))
    daily = OnCalendar(Cron("0 9 * * *"), Calendar("UTC", holidays=days), rule)
    opens = datetime.combine(days[-1] + timedelta(days=1), time(9), UTC)
    assert next_fire(daily, utc("2026-06-20 00:00")) == opens


def test_a_blackout_of_readings_follows_the_clocks_and_one_of_instants_does_not():
    night = Window(datetime(2026, 10, 25, 1), datetime(2026, 10, 25, 2, 30))  # noqa: DTZ001 - 02:30 comes twice
    calendar = Calendar("Europe/Berlin", blackouts=(night,))
    assert calendar.next_open(utc("2026-10-24 23:00")) == utc("2026-10-25 01:30")
    assert Calendar("Europe/Berlin", blackouts=(Window(utc("2026-10-25"), utc("2026-10-25 01:00")),)).is_open(
        utc("2026-10-25 01:00")
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"business_days": ()},
        {"business_days": (7,)},
        {"timezone": "Europe/Berlyn"},
        {"business_days": (0,), "weekly": (Weekly(0, 1440),)},
        {"holidays": tuple(date(2000, 1, 1) + number * DAY for number in range(10_001))},
    ],
)
def test_what_makes_no_calendar_is_refused(fields):
    with pytest.raises(InvalidField):
        Calendar(**{"timezone": "UTC", **fields})


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (utc("2026-01-02"), utc("2026-01-01")),
        (utc("2026-01-01"), utc("2026-01-01")),
        (utc("2026-01-01"), datetime(2026, 1, 2)),  # noqa: DTZ001
        (utc("2026-01-01 00:00:00.5"), utc("2026-01-02")),
    ],
)
def test_what_makes_no_window_is_refused(start, end):
    with pytest.raises(InvalidField):
        Window(start, end)


def _fires(recurrence, after):
    while (after := next_fire(recurrence, after)) is not None:
        yield after.astimezone(UTC)


@given(
    st.lists(st.builds(Weekly, st.integers(0, 10_079), st.sampled_from([1, 60, 1_440, 5_000])), min_size=1, max_size=8)
)
def test_windows_of_a_week_are_joined_to_the_same_minutes(windows: list[Weekly]):
    minutes = _minutes(windows)
    assume(len(minutes) < 10_080)
    found = joined(windows)
    assert _minutes(found) == minutes
    assert sum(each.length for each in found) == len(minutes), "none covers what another does"
    assert not {(each.start + each.length) % 10_080 for each in found} & {each.start for each in found}, "none touch"


weeks = st.lists(
    st.builds(Weekly, st.integers(0, 10_079), st.sampled_from([1, 30, 700, 3_000])), min_size=1, max_size=8
)


@given(weeks, st.sampled_from(["Europe/Berlin", "Australia/Lord_Howe", "UTC"]), st.integers(0, 300 * 86_400))
def test_it_is_closed_whenever_one_of_its_windows_is(windows: list[Weekly], zone: str, second: int):
    assume(len(_minutes(windows)) < 10_080)
    calendar, at = Calendar(zone, weekly=tuple(windows)), utc("2026-03-01") + timedelta(seconds=second)
    stretches = [each for window in windows for each in window.around(calendar.zone, at)]
    assert calendar.is_open(at) == (not any(each.start <= at < each.end for each in stretches))


def _minutes(windows: Iterable[Weekly]) -> set[int]:
    return {minute % 10_080 for each in windows for minute in range(each.start, each.start + each.length)}


def test_windows_that_follow_each_other_are_stepped_over_at_once():
    """Of a thousand that touch, each was looked at from the end of each other: seven seconds for each fire."""
    begin = process_time()
    calendar = Calendar("Europe/Berlin", weekly=tuple(Weekly(minute, 2) for minute in range(4_000)))
    assert calendar.next_open(utc("2026-01-05")) == utc("2026-01-07 17:41")
    assert process_time() - begin < 3
