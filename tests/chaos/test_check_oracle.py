"""The checker's own cron and intervals: right by the book, and the same as the product's wherever both are asked."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos import cron, plan
from chaos.oracle import MICRO, body_of, definition_of, duration, patched
from foliot.domain.cron import Dst, fires_after, parse_cron
from foliot.domain.schedule import Every, OnCalendar, next_fire
from foliot.wire.calendars import CalendarBody, calendar_of_body


def at(text):
    return int(datetime.fromisoformat(text).timestamp())


def fires(expression, zone, after, until):
    return [f"{datetime.fromtimestamp(fire, UTC):%dT%H:%M:%S}" for fire in cron.fires(expression, zone, after, until)]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 9 * * *", ["30T09:00:00", "31T09:00:00"]),
        ("0 9 * * MON-FRI", ["30T09:00:00", "31T09:00:00"]),
        ("0 9 * * SUN", []),
        ("0 9 L * *", ["31T09:00:00"]),
        ("0 9 LW * *", ["31T09:00:00"]),
        ("0 9 * * 4L", ["30T09:00:00"]),
        ("0 9 * * 5#5", ["31T09:00:00"]),
        ("0 9 30 * FRI", ["30T09:00:00", "31T09:00:00"]),
        ("0 9 */2 * FRI", ["31T09:00:00"]),
        ("@daily", ["30T00:00:00", "31T00:00:00"]),
        ("30 0 9-10/1 30 JUL *", ["30T09:00:30", "30T10:00:30"]),
        ("0,30 12 30 7 *", ["30T12:00:00", "30T12:30:00"]),
    ],
)
def test_a_field_means_what_the_book_says(expression, expected):
    assert fires(expression, "UTC", at("2026-07-29T23:59:59Z"), at("2026-07-31T23:59:59Z")) == expected


def test_a_fixed_time_in_a_gap_fires_once_at_its_end():
    window = at("2026-03-29T00:00:00Z"), at("2026-03-29T06:00:00Z")
    assert fires("15,30 2 * * *", "Europe/Berlin", *window) == ["29T01:00:00"]


def test_a_fixed_time_in_a_fold_fires_in_the_first_pass_only():
    window = at("2026-10-24T23:00:00Z"), at("2026-10-25T06:00:00Z")
    assert fires("30 2 * * *", "Europe/Berlin", *window) == ["25T00:30:00"]


def test_a_wildcard_among_the_minutes_of_a_fixed_hour_is_a_fixed_time():
    spring = at("2026-03-29T00:00:00Z"), at("2026-03-29T06:00:00Z")
    autumn = at("2026-10-24T23:00:00Z"), at("2026-10-25T06:00:00Z")
    assert fires("*/15 2 * * *", "Europe/Berlin", *spring) == ["29T01:00:00"]
    assert fires("*/30 2 * * *", "Europe/Berlin", *autumn) == ["25T00:00:00", "25T00:30:00"]


def test_a_wildcard_hour_follows_elapsed_time_through_a_fold():
    window = at("2026-10-24T23:59:00Z"), at("2026-10-25T01:59:00Z")
    assert fires("*/30 * * * *", "Europe/Berlin", *window) == [
        "25T00:00:00",
        "25T00:30:00",
        "25T01:00:00",
        "25T01:30:00",
    ]


EXPRESSIONS = st.sampled_from(
    [
        "*/5 * * * *", "30 2 * * *", "*/20 2 * * *", "0 */3 * * *", "*/7 * * * * *", "0 0 L * *", "15 3 * * 5L",
        "0 8 * * 1#2", "@hourly", "5/15 1-5 1,15 * MON-SUN", "0 30 1-3 * * *", "* 2 * * *", "0,30 0-59/10 1,2 * * *",
        "10 2 */2 JAN-MAR,OCT-NOV SUN", "0 12 */10 * 1-5/2",
    ]
)  # fmt: skip
ZONES = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia"]
)
CHANGES = st.sampled_from(
    [
        "2026-03-29T00:00Z", "2026-10-25T00:00Z", "2026-03-08T05:00Z", "2026-11-01T04:00Z", "2026-04-04T14:00Z",
        "2026-10-03T14:00Z", "2011-12-29T20:00Z", "2026-01-31T00:00Z", "2026-07-31T01:00Z",
    ]
)  # fmt: skip

RULES = st.tuples(st.sampled_from(["end", "skip"]), st.sampled_from(["once", "twice"]))


@settings(max_examples=300)
@given(EXPRESSIONS, ZONES, CHANGES, st.integers(-7200, 7200), st.sampled_from([600, 7200, 86400]), RULES)
def test_both_implementations_agree_around_changes_of_the_clocks(expression, zone, change, shift, length, rules):
    after = at(change) + shift
    product = []
    start = datetime.fromtimestamp(after, UTC)
    for fire in fires_after(parse_cron(expression), ZoneInfo(zone), start, Dst(*rules)):
        if fire.timestamp() > after + length:
            break
        product.append(int(fire.timestamp()))
    assert list(cron.fires(expression, zone, after, after + length, *rules)) == product


def instants(begin, end, **body):
    return [instant / MICRO for instant in definition_of(body_of(body)).instants(begin, end)]


def test_a_period_counts_from_the_unix_epoch():
    assert instants(1000, 1090, every="PT30S") == [1020, 1050, 1080]


def test_an_anchored_period_fires_first_at_its_anchor():
    assert instants(1000, 1090, every=30, scheduleAt="1970-01-01T00:17:05.5Z") == [1025.5, 1055.5, 1085.5]


def test_cron_is_silent_before_schedule_at_and_after_ends_at_both_included():
    limits = {"scheduleAt": "1970-01-01T00:18:00Z", "endsAt": "1970-01-01T00:20:00Z"}
    assert instants(1000, 2000, cronExpression="* * * * *", **limits) == [1080, 1140, 1200]


def test_a_window_is_open_at_its_beginning_and_closed_at_its_end():
    assert instants(1020, 1050, every=30) == [1050]


def test_a_new_recurrence_replaces_the_other_one():
    body = body_of({"cronExpression": "* * * * *", "timezone": "Asia/Kolkata", "overlap": "allow"})
    changed = definition_of(patched(body, {"every": "PT1M"}))
    assert (changed.expression, changed.zone, changed.period, changed.overlap) == (None, "UTC", 60 * MICRO, "allow")


def test_null_takes_a_field_away():
    body = body_of({"every": 60, "endsAt": "2026-01-01T00:00:00Z"})
    assert definition_of(patched(body, {"endsAt": None})).ends is None


@pytest.mark.parametrize(
    ("written", "seconds"), [("PT1M30S", 90), ("P1DT1H", 90_000), ("P2W", 1_209_600), ("PT0.5S", 0.5), (7, 7), ("8", 8)]
)
def test_a_duration_is_read_however_it_is_written(written, seconds):
    assert duration(written) == seconds * MICRO


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("skip", [0, 40, 80, 200, 240]),
        ("next", [0, 40, 80, 180, 200, 240]),
        ("previous", [0, 40, 80, 119, 200, 240]),
    ],
)
def test_what_falls_into_a_closed_minute_is_left_out_or_moved_to_its_edge(rule, expected):
    calendar = {"name": "thirds", "rule": rule}
    assert instants(-1, 250, every="PT40S", calendar=calendar) == expected


@pytest.mark.parametrize("rule", ["skip", "next", "previous"])
@pytest.mark.parametrize("period", [2, 7, 20, 45, 100])
@pytest.mark.parametrize("anchor", ["1970-01-01T00:00:00Z", "2026-07-29T12:00:29.833367Z"])
def test_both_implementations_agree_about_the_calendar_of_chaos(rule, period, anchor):
    begin = at("2026-07-29T12:00:30Z")
    body = msgspec.convert(plan.calendar(begin), CalendarBody)
    every = Every(timedelta(seconds=period), datetime.fromisoformat(anchor))
    recurrence = OnCalendar(every, calendar_of_body(body)[0], rule)
    fire, product = datetime.fromtimestamp(begin, UTC), []
    while (fire := next_fire(recurrence, fire)).timestamp() <= begin + 3600:
        product.append(fire.timestamp())
    calendar = {"name": "thirds", "rule": rule}
    assert instants(begin, begin + 3600, every=period, scheduleAt=anchor, calendar=calendar) == product


def test_the_recurrence_itself_knows_no_end():
    ends = definition_of(body_of({"every": 30, "endsAt": "1970-01-01T00:17:10Z"}))
    assert ends.instants(1000, 1090) == [1020 * MICRO]
    assert ends.nominal(1000, 1090) == [1020 * MICRO, 1050 * MICRO, 1080 * MICRO]


def test_what_is_said_and_what_is_usual_are_the_same_definition():
    usual = definition_of(body_of({"every": 30}))
    assert definition_of(body_of({"every": "PT30S", "catchUp": {"mode": "latest", "window": "PT1H"}})) == usual
    assert definition_of(body_of({"every": 30, "jitter": "PT2.5S"})).jitter == 2_500_000
