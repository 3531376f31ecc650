"""Repeating intervals of ISO 8601: three fields in one text."""

from datetime import UTC, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.readings import utc
from foliot.domain.duration import format_duration
from foliot.domain.errors import InvalidField
from foliot.domain.repeat import Repeat, is_repeat, parse_repeat
from foliot.domain.steps import parse_step

INSTANTS = st.integers(0, 10**9).map(lambda seconds: utc(2000, 1, 1) + timedelta(seconds=seconds))


@given(INSTANTS, st.timedeltas(timedelta(seconds=1), timedelta(days=300)), st.none() | st.integers(1, 10**8))
def test_what_is_written_comes_back(start, period, runs):
    head = f"R{'' if runs is None else runs}/{start.isoformat()}"
    found = parse_repeat(f"{head}/{format_duration(period)}")
    assert (found.start, found.runs) == (start, runs)
    assert parse_step(found.step, "every") == parse_step(format_duration(period), "every")
    between = parse_repeat(f"{head}/{(start + period).isoformat()}")
    assert between._replace(step="") == found._replace(step="")
    assert parse_step(between.step, "every").clock == period
    assert is_repeat(head)


def test_the_usual_forms():
    assert parse_repeat("R/2026-01-01T00:00Z/PT1H") == Repeat("PT1H", utc(2026, 1, 1), None)
    assert parse_repeat("r5/20260101T010000+0100/p1m") == Repeat("P1M", utc(2026, 1, 1), 5)
    assert parse_repeat("R3/PT10M") == Repeat("PT10M", None, 3)
    assert parse_repeat("R/2026-01-01T00:00Z/PT1H").start.tzinfo is UTC


def test_the_time_between_two_instants_is_elapsed_time_even_if_it_is_days():
    step = parse_step(parse_repeat("R/2026-01-01T00:00Z/2026-01-03T00:00Z").step, "every")
    assert not step.is_calendrical
    assert step.clock == timedelta(days=2)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("R0/2026-01-01T00:00Z/PT1H", "never fires"),
        ("R/2026-01-01T00:00/PT1H", "lacks its offset"),
        ("R/2026-01-01/PT1H", "lacks its offset"),
        ("R/yesterday/PT1H", "not an instant"),
        ("R/2026-01-01T00:00Z/2025-01-01T00:00Z", "ends before it begins"),
        ("R/PT1H/2026-01-01T00:00Z", "counts backwards"),
        ("R/2026-01-01T00:00Z/PT0H0", "not a duration"),
        ("R/2026-01-01T00:00Z/P0D", "has no length"),
        ("R/2026-01-01T00:00Z/soon", "not an instant"),
        ("R-1/2026-01-01T00:00Z/PT1H", "not a repeating interval"),
        ("R5", "not a repeating interval"),
        ("R/a/b/c", "not a repeating interval"),
        ("really", "not a repeating interval"),
    ],
)
def test_the_rest_is_refused(written, message):
    with pytest.raises(InvalidField, match=message) as refused:
        parse_repeat(written)
    assert refused.value.field == "every"
    assert refused.value.hint


@pytest.mark.parametrize("written", ["PT1H", 60, 1.5, "60", None])
def test_what_is_no_repeating_interval_is_known_as_such(written):
    assert not is_repeat(written)
