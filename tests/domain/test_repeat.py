"""Repeating intervals of ISO 8601: three fields in one text."""

from datetime import UTC, timedelta
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.readings import utc
from foliot.domain.duration import format_duration
from foliot.domain.errors import InvalidField
from foliot.domain.repeat import Repeat, is_repeat, parse_repeat
from foliot.domain.schedule import fires_from, repeating
from foliot.domain.steps import parse_step

INSTANTS = st.integers(0, 10**9).map(lambda seconds: utc(2000, 1, 1) + timedelta(seconds=seconds))


@given(INSTANTS, st.timedeltas(timedelta(seconds=1), timedelta(days=300)), st.none() | st.integers(1, 10**8))
def test_what_is_written_comes_back(start, period, runs):
    head = f"R{'' if runs is None else runs}/{start.isoformat()}"
    found = parse_repeat(f"{head}/{format_duration(period)}")
    assert (found.start, found.number) == (start, runs)
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


@pytest.mark.parametrize(
    ("written", "zone", "fires"),
    [
        ("R3/PT1H/2026-01-01T00:00Z", "UTC", [utc(2025, 12, 31, 21), utc(2025, 12, 31, 22), utc(2025, 12, 31, 23)]),
        ("R2/P1M/2026-03-31T09:00Z", "UTC", [utc(2026, 1, 31, 9), utc(2026, 2, 28, 9)]),
        ("R2/P1D/2026-03-30T09:00+02:00", "Europe/Berlin", [utc(2026, 3, 28, 8), utc(2026, 3, 29, 7)]),
        ("R2/PT24H/2026-03-30T09:00+02:00", "Europe/Berlin", [utc(2026, 3, 28, 7), utc(2026, 3, 29, 7)]),
        ("R1/PT1H/2026-10-25T02:30Z", "Europe/Berlin", [utc(2026, 10, 25, 1, 30)]),  # half past two, again
        ("R2/P1Y1M1DT1H/2026-03-03T02:00Z", "UTC", [utc(2024, 1, 1), utc(2025, 2, 2, 1)]),
    ],
)
def test_so_many_steps_that_lead_to_an_end(written, zone, fires):
    found = parse_repeat(written, zone)
    recurrence = repeating(parse_step(found.step, "every"), zone, found.start)
    assert found.number == len(fires)
    assert list(islice(fires_from(recurrence, found.start), len(fires))) == fires


@given(INSTANTS, st.integers(1, 40), st.sampled_from(["PT90S", "P1D", "P1W", "P2DT3H", "P1M", "P18M"]))
def test_one_more_step_than_so_many_is_the_end(start, number, written):
    """Wherever each month has the day."""
    start = start.replace(day=min(start.day, 28))
    forward = repeating(parse_step(written, "every"), "UTC", start)
    end = next(islice(fires_from(forward, start), number, None))
    assert parse_repeat(f"R{number}/{written}/{end.isoformat()}").start == start


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
        ("R/PT1H/2026-01-01T00:00Z", "goes back from its end for ever"),
        ("R5/PT1H/soon", "not an instant"),
        ("R5/P0D/2026-01-01T00:00Z", "has no length"),
        ("R999999999/P1D/2026-01-01T00:00Z", "before the calendar does"),
        ("R999999999/P1M/2026-01-01T00:00Z", "before the calendar does"),
        ("R999999999/P999DT999H/2026-01-01T00:00Z", "before the calendar does"),
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
