"""The last of so many instants, beside counting them one by one."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.readings import ZONES, utc
from foliot.domain.counted import MOST, nth_fire
from foliot.domain.daylight import USUAL, Dst
from foliot.domain.errors import InvalidField
from foliot.domain.rrule import recurring
from foliot.domain.schedule import Every, next_fire, repeating
from foliot.domain.steps import Step

INSTANTS = st.integers(0, 20 * 365 * 86_400).map(lambda seconds: utc(2020, 1, 1) + timedelta(seconds=seconds))
STEPS = st.builds(
    Step,
    months=st.sampled_from([0, 0, 1, 6]),
    days=st.sampled_from([0, 1, 7]),
    clock=st.sampled_from([timedelta(seconds=90), timedelta(hours=2)]),
)
RULES = st.sampled_from([Dst(gap, fold) for gap in ("end", "skip") for fold in ("once", "twice")])


def one_by_one(recurrence, start, number):
    at = start - timedelta(microseconds=1)
    for _ in range(number):
        at = next_fire(recurrence, at)
    return at


@settings(max_examples=150, deadline=None)
@given(STEPS, st.sampled_from(ZONES), INSTANTS, RULES, st.integers(1, 60))
def test_steps_agree_with_counting(step, zone, start, rules, number):
    recurrence = repeating(step, zone, start, rules)
    assert nth_fire(recurrence, start, number, "every") == one_by_one(recurrence, start, number)


@pytest.mark.parametrize("rule", ["FREQ=DAILY;BYHOUR=2;BYMINUTE=30", "FREQ=WEEKLY;INTERVAL=2", "FREQ=HOURLY"])
def test_rules_agree_with_counting(rule):
    start = utc(2026, 3, 20, 12)
    recurrence = recurring(rule, "Europe/Berlin", USUAL, start)
    for number in (1, 2, 10, 11, 250):
        assert nth_fire(recurrence, start, number, "rrule") == one_by_one(recurrence, start, number)


def test_large_numbers_of_even_steps_are_not_counted_one_by_one():
    start = utc(2026, 1, 1)
    assert nth_fire(Every(timedelta(seconds=1), start), start, 10**9, "every") == start + timedelta(seconds=10**9 - 1)
    assert nth_fire(Every(timedelta(days=300), start), start, 10**9, "every") is None
    assert nth_fire(repeating(Step(1), "Europe/Berlin", start), start, 10**9, "every") is None


def test_large_numbers_of_others_are_refused_with_what_to_write_instead():
    start = utc(2026, 1, 1)
    rule = recurring("FREQ=DAILY", "UTC", USUAL, start)
    assert nth_fire(rule, start, MOST, "rrule") == start + timedelta(days=MOST - 1)
    with pytest.raises(InvalidField, match="1,000 instants") as refused:
        nth_fire(rule, start, MOST + 1, "rrule")
    assert (refused.value.field, "endsAt" in refused.value.hint) == ("rrule", True)


def test_a_rule_that_ends_with_the_calendar_has_no_last_one():
    start = utc(9990, 1, 1)
    assert nth_fire(recurring("FREQ=YEARLY", "UTC", USUAL, start), start, 30, "rrule") is None
