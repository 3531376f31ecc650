"""The checker's own reading of rules, phrases and steps of a calendar: by the book, and the same as the product's."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.clockwork import RULES, STEPS
from chaos.forms import phrase_as_cron, rule_as_cron
from chaos.oracle import body_of, definition_of
from foliot.domain.daylight import Dst
from foliot.domain.phrase import parse_phrase
from foliot.domain.rrule import recurring
from foliot.domain.schedule import Recurrence, next_fire, repeating
from foliot.domain.steps import parse_step

ZONES = ("UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe")
MOMENTS = st.datetimes(datetime(2024, 1, 1), datetime(2027, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001


def instants(after: datetime, span: timedelta, **fields: object) -> list[datetime]:
    found = definition_of(body_of(fields)).instants(after.timestamp(), (after + span).timestamp())
    return [datetime.fromtimestamp(0, UTC) + timedelta(microseconds=each) for each in found]


def of_product(recurrence: Recurrence, after: datetime, span: timedelta) -> list[datetime]:
    found: list[datetime] = []
    at = next_fire(recurrence, after)
    while at is not None and at <= after + span:
        found.append(at)
        at = next_fire(recurrence, at)
    return found


def day(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_a_month_is_counted_from_the_beginning():
    found = instants(
        day("2026-01-01T00:00:00+00:00"),
        timedelta(days=130),
        every="P1M",
        timezone="Europe/Berlin",
        scheduleAt="2026-01-31T08:00:00Z",
    )
    assert [f"{each:%m-%dT%H}" for each in found] == ["01-31T08", "02-28T08", "03-31T07", "04-30T07"]


@pytest.mark.parametrize(
    ("gap", "expected"), [("end", ["28T01:30", "29T01:00", "30T00:30"]), ("skip", ["28T01:30", "30T00:30"])]
)
def test_a_step_into_a_gap_follows_the_rule(gap: str, expected: list[str]):
    timing = {"every": "P1D", "timezone": "Europe/Berlin", "dst": {"gap": gap}, "scheduleAt": "2026-03-28T01:30:00Z"}
    found = instants(day("2026-03-28T00:00:00+00:00"), timedelta(days=3), **timing)
    assert [f"{each:%dT%H:%M}" for each in found] == expected


@given(
    written=st.sampled_from([*STEPS, "P3D", "P11M", "P1M1D", "P18M", "P2Y"]),
    zone=st.sampled_from(ZONES),
    anchor=MOMENTS,
    later=st.timedeltas(timedelta(), timedelta(days=1500)),
    gap=st.sampled_from(["end", "skip"]),
    fold=st.sampled_from(["once", "twice"]),
)
@settings(max_examples=60, deadline=None)
def test_steps_are_those_of_the_product(
    written: str, zone: str, anchor: datetime, later: timedelta, gap: str, fold: str
):
    rules = {"gap": gap, "fold": fold}
    ours = instants(
        anchor + later, timedelta(days=90), every=written, timezone=zone, scheduleAt=anchor.isoformat(), dst=rules
    )
    recurrence = repeating(parse_step(written, "every"), zone, anchor, Dst(**rules))
    assert ours == of_product(recurrence, anchor + later, timedelta(days=90))


@given(rule=st.sampled_from([*RULES, "FREQ=DAILY;BYHOUR=9,17"]), zone=st.sampled_from(ZONES), after=MOMENTS)
@settings(max_examples=60, deadline=None)
def test_rules_are_those_of_the_product(rule: str, zone: str, after: datetime):
    ours = instants(after, timedelta(hours=3), rrule=rule, timezone=zone)
    assert ours == of_product(recurring(rule, zone, Dst(), None), after, timedelta(hours=3))


@given(
    phrase=st.one_of(
        st.just("every minute"),
        st.integers(0, 59).map("every hour at :{:02}".format),
        st.tuples(st.integers(0, 23), st.integers(0, 59)).map(lambda time: "every day at {:02}:{:02}".format(*time)),
    ),
    zone=st.sampled_from(ZONES),
    after=MOMENTS,
)
@settings(max_examples=60, deadline=None)
def test_phrases_are_those_of_the_product(phrase: str, zone: str, after: datetime):
    ours = instants(after, timedelta(hours=26), when=phrase, timezone=zone)
    assert ours == of_product(parse_phrase(phrase, zone).recurrence, after, timedelta(hours=26))


def test_what_nobody_here_can_judge_is_refused():
    with pytest.raises(ValueError, match="nobody"):
        rule_as_cron("FREQ=SECONDLY;INTERVAL=7")
    with pytest.raises(ValueError, match="nobody"):
        phrase_as_cron("every other blue moon")
