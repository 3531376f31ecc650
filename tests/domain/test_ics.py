"""iCalendar files as the world writes them: holidays, maintenance windows, and what is wrong with them."""

from contextlib import suppress
from datetime import date, datetime, timedelta
from itertools import count
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.domain.errors import InvalidField
from foliot.domain.eventdays import parse_repeat, repeat_days
from foliot.domain.ics import read_ics
from world import utc

TODAY = date(2026, 6, 1)

HOLIDAYS = """BEGIN:VCALENDAR\r
PRODID:-//Example//Holidays 1.0//EN\r
VERSION:2.0\r
X-WR-CALNAME:Feiertage in Deutschland\r
X-WR-TIMEZONE:Europe/Berlin\r
BEGIN:VEVENT\r
DTSTART;VALUE=DATE:20261225\r
DTEND;VALUE=DATE:20261227\r
DTSTAMP:20260101T000000Z\r
UID:20261225_weihnachten@example\r
SUMMARY:Erster und zweiter Weihnachts\r
 tag\\, gesetzlich\r
TRANSP:TRANSPARENT\r
END:VEVENT\r
BEGIN:VEVENT\r
DTSTART;VALUE=DATE:20200101\r
RRULE:FREQ=YEARLY\r
EXDATE;VALUE=DATE:20280101\r
SUMMARY:Neujahr\r
END:VEVENT\r
BEGIN:VEVENT\r
DTSTART;VALUE=DATE:20261003\r
STATUS:CANCELLED\r
SUMMARY:abgesagt\r
END:VEVENT\r
END:VCALENDAR\r
"""

MAINTENANCE = """BEGIN:VCALENDAR
VERSION:2.0
BEGIN:VTIMEZONE
TZID:America/New_York
BEGIN:STANDARD
DTSTART:20201101T020000
TZOFFSETFROM:-0400
TZOFFSETTO:-0500
END:STANDARD
END:VTIMEZONE
BEGIN:VEVENT
UID:deploy
DTSTART;TZID=America/New_York:20260613T220000
DTEND;TZID=America/New_York:20260614T020000
RRULE:FREQ=WEEKLY;BYDAY=SA;COUNT=3
SUMMARY:Freeze
BEGIN:VALARM
TRIGGER:-PT15M
DURATION:PT5M
END:VALARM
END:VEVENT
BEGIN:VEVENT
UID:deploy
RECURRENCE-ID;TZID=America/New_York:20260620T220000
DTSTART;TZID=America/New_York:20260620T230000
DURATION:PT1H
SUMMARY:Short freeze
END:VEVENT
BEGIN:VEVENT
DTSTART:20260701T080000Z
DTEND:20260701T093000Z
SUMMARY:Audit
END:VEVENT
BEGIN:VEVENT
DTSTART:20260702T080000
DURATION:P1DT2H
END:VEVENT
END:VCALENDAR
"""


def _event(*lines: str) -> str:
    return "\n".join(["BEGIN:VCALENDAR", "BEGIN:VEVENT", *lines, "END:VEVENT", "END:VCALENDAR"])


def test_all_day_events_are_days_off():
    found = read_ics(HOLIDAYS, TODAY)
    assert (found.troubles, found.events, found.timezone) == ([], 2, "Europe/Berlin")
    christmas, *new_years = found.closures
    assert christmas == (date(2026, 12, 25), date(2026, 12, 27), "Erster und zweiter Weihnachtstag, gesetzlich")
    assert christmas.is_day_off
    assert [each.start.year for each in new_years] == [2026, 2027, *range(2029, 2037)]


def test_timed_events_are_windows_by_the_zone_that_they_name():
    found = read_ics(MAINTENANCE, TODAY)
    assert found.troubles == []
    assert [(start, end) for start, end, _ in found.closures] == [
        (utc("2026-06-14 02:00"), utc("2026-06-14 06:00")),
        (utc("2026-06-28 02:00"), utc("2026-06-28 06:00")),
        (utc("2026-06-21 03:00"), utc("2026-06-21 04:00")),
        (utc("2026-07-01 08:00"), utc("2026-07-01 09:30")),
        (datetime(2026, 7, 2, 8), datetime(2026, 7, 3, 10)),  # noqa: DTZ001 - by the calendar's own clock
    ]
    assert not any(each.is_day_off for each in found.closures)


def test_a_window_that_repeats_keeps_its_time_of_day_when_the_clocks_change():
    found = read_ics(
        _event("DTSTART;TZID=Europe/Berlin:20261018T010000", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;COUNT=2"), TODAY
    )
    assert [start for start, _, _ in found.closures] == [utc("2026-10-17 23:00"), utc("2026-10-24 23:00")]


def test_a_window_that_the_clocks_skip_is_left_out_and_the_others_are_read():
    berlin = ["DTSTART;TZID=Europe/Berlin:20260322T020000", "DTEND;TZID=Europe/Berlin:20260322T030000"]
    found = read_ics(_event(*berlin, "RRULE:FREQ=WEEKLY;BYDAY=SU;COUNT=3"), TODAY)
    assert (found.troubles, found.events) == ([], 1)
    assert [(start, end) for start, end, _ in found.closures] == [
        (utc("2026-03-22 01:00"), utc("2026-03-22 02:00")),
        (utc("2026-04-05 00:00"), utc("2026-04-05 01:00")),
    ]


@pytest.mark.parametrize(
    ("start", "until", "last"),
    [
        ("DTSTART;TZID=America/New_York:20260613T220000", "20260620T220000", "2026-06-21 02:00"),  # the same clock
        ("DTSTART;TZID=America/New_York:20260613T220000", "20260620T215959", "2026-06-14 02:00"),
        ("DTSTART;TZID=America/New_York:20260613T220000", "20260621T020000Z", "2026-06-21 02:00"),
        ("DTSTART;TZID=America/New_York:20260613T220000", "20260621T015959Z", "2026-06-14 02:00"),
        ("DTSTART;TZID=Asia/Tokyo:20260613T080000", "20260620T080000", "2026-06-19 23:00"),
        ("DTSTART:20260613T220000Z", "20260620T220000", "2026-06-20 22:00"),
    ],
)
def test_an_end_without_a_zone_is_read_by_the_clock_of_the_event(start, until, last):
    found = read_ics(_event(start, "DURATION:PT1H", f"RRULE:FREQ=WEEKLY;UNTIL={until}"), TODAY)
    assert found.troubles == []
    assert found.closures[-1].start == utc(last)


def test_days_off_that_end_at_a_time_end_with_its_day():
    found = read_ics(_event("DTSTART;VALUE=DATE:20260601", "RRULE:FREQ=DAILY;UNTIL=20260603T000000Z"), TODAY)
    assert [each.start.day for each in found.closures] == [1, 2, 3]


@pytest.mark.parametrize(
    ("event", "exception"),
    [
        (["DTSTART;TZID=Europe/Berlin:20260601T003000", "DURATION:PT1H"], "EXDATE;VALUE=DATE:20260603"),
        (["DTSTART;TZID=Europe/Berlin:20260601T003000", "DURATION:PT1H"], "EXDATE:20260602T223000Z"),
        (["DTSTART;VALUE=DATE:20260601"], "EXDATE;VALUE=DATE:20260603"),
        (["DTSTART;VALUE=DATE:20260601"], "EXDATE;TZID=Europe/Berlin:20260603T000000"),
    ],
)
def test_an_exception_may_name_the_day_or_the_time(event, exception):
    found = read_ics(_event(*event, "RRULE:FREQ=DAILY;COUNT=4", exception), TODAY)
    assert found.troubles == []
    assert len(found.closures) == 3
    named = utc("2026-06-02 22:30") if "TZID=Europe/Berlin:20260601" in event[0] else date(2026, 6, 3)
    assert named not in [each.start for each in found.closures]


def test_what_changes_all_repetitions_from_one_on_is_told_and_the_series_stays():
    series = ["UID:x", "DTSTART:20260601T100000Z", "DURATION:PT1H", "RRULE:FREQ=DAILY;COUNT=3", "END:VEVENT"]
    change = ["BEGIN:VEVENT", "UID:x", "RECURRENCE-ID;RANGE=THISANDFUTURE:20260602T100000Z", "STATUS:CANCELLED"]
    found = read_ics(_event(*series, *change), TODAY)
    assert [(trouble.line, "THISANDFUTURE" in trouble.message) for trouble in found.troubles] == [(10, True)]
    assert [each.start.day for each in found.closures] == [1, 2, 3]


def test_an_all_day_event_that_ends_where_it_begins_is_one_day():
    found = read_ics(_event("DTSTART;VALUE=DATE:20260601", "DTEND;VALUE=DATE:20260601"), TODAY)
    assert found.closures == [(date(2026, 6, 1), date(2026, 6, 2), "")]


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        (["SUMMARY:never"], 2, "no DTSTART"),
        (["DTSTART;VALUE=DATE:20260231"], 3, "no date that exists"),
        (["DTSTART:tomorrow"], 3, "no date that exists"),
        (["DTSTART:20260101T100000"], 2, "no length"),
        (["DTSTART:20260101T100000", "DTEND:20260101T090000"], 4, "no length"),
        (["DTSTART:20260101T100000", "DURATION:1h"], 4, "no duration"),
        (["DTSTART;VALUE=DATE:20260101", "DURATION:PT3H"], 4, "whole days"),
        (["DTSTART;VALUE=DATE:20260101", "DTEND:20260102T000000Z"], 4, "another kind"),
        (["DTSTART;TZID=W. Europe Standard Time:20260101T100000", "DURATION:PT1H"], 3, "unknown time zone"),
        (["DTSTART;VALUE=DATE:20260101", "RRULE:FREQ=HOURLY"], 4, "FREQ=HOURLY"),
        (["DTSTART;VALUE=DATE:20260101", "RRULE:FREQ=YEARLY;BYSETPOS=1"], 4, "BYSETPOS"),
        (["DTSTART;VALUE=DATE:20260101", "RRULE:FREQ=DAILY;COUNT=2;UNTIL=20270101"], 4, "both"),
        (["DTSTART;VALUE=DATE:20260101", "EXDATE;VALUE=DATE:2026"], 4, "no date"),
        (["DTSTART;VALUE=DATE:20260101", "DTEND;VALUE=DATE:20280101"], 4, "longer than a year"),
        (
            ["DTSTART:20260101T100000Z", "DURATION:PT1H", "RECURRENCE-ID;RANGE=THISANDFUTURE:20260101T100000Z"],
            5,
            "RANGE=THISANDFUTURE is not understood",
        ),
    ],
)
def test_what_cannot_be_read_is_told_by_its_line_and_the_rest_is_read(lines, line, message):
    good = "BEGIN:VEVENT\nDTSTART;VALUE=DATE:20260601\nEND:VEVENT\nEND:VCALENDAR"
    found = read_ics(_event(*lines).replace("END:VCALENDAR", good), TODAY)
    (trouble,) = found.troubles
    assert trouble.line == line
    assert message in trouble.message
    assert [each.start for each in found.closures] == [date(2026, 6, 1)]


def test_a_line_that_is_none_is_told_too():
    found = read_ics(_event("DTSTART;VALUE=DATE:20260601", "no colon here"), TODAY)
    assert [trouble.line for trouble in found.troubles] == [4]
    assert len(found.closures) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html>not found</html>",
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20260101\n",
        "BEGIN:VCALENDAR\nEND:VEVENT\nEND:VCALENDAR",
        "BEGIN:VCALENDAR\nX:" + "x" * (1 << 20) + "\nEND:VCALENDAR",
        "BEGIN:VCALENDAR\n"
        + "BEGIN:VEVENT\nDTSTART;VALUE=DATE:19700101\nRRULE:FREQ=DAILY\nEND:VEVENT\n" * 3
        + "END:VCALENDAR",
        "BEGIN:VCALENDAR\n" + "BEGIN:VEVENT\nEND:VEVENT\n" * 10_001 + "END:VCALENDAR",
    ],
)
def test_what_is_no_calendar_is_refused_whole(text):
    with pytest.raises(InvalidField):
        read_ics(text, TODAY)


@settings(deadline=None)
@given(st.text(alphabet='BEGIN:VCALDRTSUMY;=,0123456789\n "\\', max_size=200))
def test_no_text_breaks_it(text):
    with suppress(InvalidField):
        read_ics(_event(*text.split("\n")), TODAY)


@pytest.mark.parametrize(
    ("rule", "first", "expected"),
    [
        ("FREQ=YEARLY;COUNT=3", "2024-02-29", ["2024-02-29", "2028-02-29", "2032-02-29"]),
        ("FREQ=YEARLY;BYMONTH=11;BYDAY=4TH;COUNT=2", "2026-11-26", ["2026-11-26", "2027-11-25"]),
        ("FREQ=YEARLY;BYMONTH=5;BYDAY=-1MO;UNTIL=20280601", "2026-05-25", ["2026-05-25", "2027-05-31", "2028-05-29"]),
        ("FREQ=YEARLY;BYDAY=1MO;COUNT=2", "2026-01-05", ["2026-01-05", "2027-01-04"]),
        ("FREQ=MONTHLY;BYMONTHDAY=-1;COUNT=3", "2026-01-31", ["2026-01-31", "2026-02-28", "2026-03-31"]),
        ("FREQ=MONTHLY;COUNT=2", "2026-01-31", ["2026-01-31", "2026-03-31"]),
        (
            "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR;COUNT=4",
            "2026-06-05",
            ["2026-06-05", "2026-06-15", "2026-06-19", "2026-06-29"],
        ),
        (
            "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,MO;WKST=SU;COUNT=3",
            "2026-06-07",
            ["2026-06-07", "2026-06-08", "2026-06-21"],
        ),
        ("FREQ=DAILY;INTERVAL=10;UNTIL=20260625T000000Z", "2026-06-01", ["2026-06-01", "2026-06-11", "2026-06-21"]),
        ("FREQ=WEEKLY;BYDAY=TU;COUNT=2", "2026-06-01", ["2026-06-01", "2026-06-02"]),
    ],
)
def test_rules_repeat_as_the_standard_says(rule, first, expected):
    days = repeat_days(parse_repeat(rule), date.fromisoformat(first), (date.min, date(2040, 1, 1)), count())
    assert [day.isoformat() for day in days] == expected


@settings(deadline=None)
@given(
    st.sampled_from(["YEARLY", "MONTHLY", "WEEKLY", "DAILY"]),
    st.integers(1, 5),
    st.dates(date(2020, 1, 1), date(2026, 1, 1)),
    st.dates(date(2020, 1, 1), date(2030, 1, 1)),
)
def test_days_rise_from_the_first_and_stay_within_the_horizon(frequency, interval, first, since):
    horizon = first + timedelta(days=1500)
    repeat = parse_repeat(f"FREQ={frequency};INTERVAL={interval}")
    days = list(repeat_days(repeat, first, (first, horizon), count()))
    assert days[0] == first
    assert days == sorted(set(days))
    assert days[-1] <= horizon
    later = list(repeat_days(repeat, first, (since, horizon), count()))
    assert [day for day in later if day >= since] == [day for day in days if day >= since]


def _hostile(lines: str, start: str = "00010101", uid: str = "a") -> str:
    return f"BEGIN:VEVENT\nUID:{uid}\nDTSTART;VALUE=DATE:{start}\n{lines}END:VEVENT\n"


_DAYS = [(date(1600, 1, 1) + timedelta(days=number)).strftime("%Y%m%d") for number in range(50_000)]


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(_hostile(f"RECURRENCE-ID:{','.join(_DAYS)}\n") + _hostile("") * 5_000, id="shared exceptions"),
        pytest.param(
            _hostile(f"RRULE:FREQ=DAILY;BYMONTHDAY={'31,' * 200_000}31\n", "20260101"), id="a rule of a megabyte"
        ),
        pytest.param(
            "".join(_hostile("RRULE:FREQ=YEARLY;COUNT=9999;BYDAY=99MO\n", uid=str(n)) for n in range(98)),
            id="whole years",
        ),
        pytest.param(
            f"BEGIN:VEVENT\nDTSTART;TZID={'/a' * 200_000}:20260101T000000\nEND:VEVENT\n", id="a zone in parts"
        ),
    ],
)
def test_no_file_keeps_a_processor_for_long(events: str):
    """Each of these took from half a minute to hours."""
    begin = process_time()
    read_ics(f"BEGIN:VCALENDAR\n{events}END:VCALENDAR", TODAY)
    assert process_time() - begin < 5


def test_a_year_is_as_many_steps_as_it_has_weeks():
    steps = iter(range(1_000))
    assert list(repeat_days(parse_repeat("FREQ=YEARLY;COUNT=9;BYDAY=99MO"), TODAY, (TODAY, date(2036, 1, 1)), steps))
    assert next(steps) == 11 * 53


def test_what_would_take_too_long_to_follow_is_told_and_not_followed():
    endless = "BEGIN:VEVENT\nDTSTART;VALUE=DATE:19000101\nRRULE:FREQ=DAILY;COUNT=40000\nEND:VEVENT\n"
    found = read_ics(f"BEGIN:VCALENDAR\n{endless * 20}END:VCALENDAR", TODAY)
    assert found.closures == []
    assert len(found.troubles) == 16
    assert "too many" in found.troubles[0].message
