"""Durations: what is accepted, what is refused, and the way back."""

import math
from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.domain.duration import format_duration, parse_duration
from foliot.domain.errors import InvalidField

lengths = st.timedeltas(timedelta(0), timedelta.max)
counts = st.integers(0, 10_000)


@settings(deadline=None)
@given(lengths)
def test_every_length_survives_the_round_trip(length):
    assert parse_duration(format_duration(length), "every") == length


@settings(deadline=None)
@given(counts, counts, counts, counts, st.integers(0, 999_999))
def test_the_parts_of_a_duration_add_up(days, hours, minutes, seconds, micros):
    text = f"P{days}DT{hours}H{minutes}M{seconds}.{micros:06d}S"
    parts = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, microseconds=micros)
    assert parse_duration(text, "every") == parts


@settings(deadline=None)
@given(st.integers(0, 10**12), st.sampled_from([int, str, float]))
def test_a_plain_number_is_seconds(seconds, kind):
    assert parse_duration(kind(seconds) if kind is not float else seconds / 8, "timeout") == (
        timedelta(seconds=seconds) if kind is not float else timedelta(seconds=seconds) / 8
    )


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("PT90S", timedelta(seconds=90)),
        ("PT1H30M", timedelta(hours=1, minutes=30)),
        ("P1D", timedelta(days=1)),
        ("P1DT2H", timedelta(days=1, hours=2)),
        ("P2W", timedelta(weeks=2)),
        ("PT0.5S", timedelta(milliseconds=500)),
        ("PT0,000001S", timedelta(microseconds=1)),
        ("pt15m", timedelta(minutes=15)),
        (" PT0S ", timedelta(0)),
        ("1.25", timedelta(seconds=1.25)),
        (0.1, timedelta(milliseconds=100)),
    ],
)
def test_the_usual_forms_are_understood(text, length):
    assert parse_duration(text, "every") == length


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(0), "PT0S"),
        (timedelta(seconds=90), "PT90S"),
        (timedelta(seconds=120), "PT2M"),
        (timedelta(minutes=90), "PT90M"),
        (timedelta(hours=26), "PT26H"),
        (timedelta(weeks=2), "P14D"),
        (timedelta(seconds=1, microseconds=20), "PT1.00002S"),
    ],
)
def test_the_canonical_text_is_one_number_of_the_largest_whole_unit(length, text):
    assert format_duration(length) == text


@pytest.mark.parametrize(
    ("text", "meant"),
    [("5m", "PT5M"), ("90 seconds", "PT90S"), ("1h", "PT1H"), ("30 mins", "PT30M"), ("2d", "P2D"), ("1 week", "P1W")],
)
def test_what_people_write_elsewhere_is_answered_with_what_it_is_here(text, meant):
    with pytest.raises(InvalidField) as refused:
        parse_duration(text, "every")
    assert refused.value.hint == f"did you mean {meant}?"
    parse_duration(meant, "every")


def test_nobody_is_told_that_milliseconds_are_minutes():
    with pytest.raises(InvalidField) as refused:
        parse_duration("5ms", "every")
    assert "did you mean" not in refused.value.hint


@pytest.mark.parametrize("text", ["P1M", "P1Y", "P1Y2M3DT4H", "P3M1D"])
def test_months_and_years_are_refused_with_a_way_out(text):
    with pytest.raises(InvalidField, match="no fixed length") as refused:
        parse_duration(text, "every")
    assert refused.value.field == "every"
    assert "PT15M" in refused.value.hint


@pytest.mark.parametrize(
    "value",
    [
        *["", "P", "PT", "P1DT", "P1", "PT1", "1H", "PT1S1M", "PT1.5M", "PT.5S", "PT0.1234567S", "P-1D", "PT1H ago"],
        *["-PT5S", "-1", -1, -0.001, math.nan, math.inf, -math.inf, True, "nan", "1e3", "PT٣S", "P1D\x00"],
        *[10**30, 1e300, "9" * 400, "P999999999999D", "PT" + "9" * 18 + "H"],
    ],
)
def test_all_else_is_refused_by_name(value):
    with pytest.raises(InvalidField) as refused:
        parse_duration(value, "jitter")
    assert refused.value.field == "jitter"
    assert refused.value.hint


@settings(deadline=None)
@given(st.text("PTWDHMS0123456789.,- ", max_size=12) | st.text(max_size=12) | st.floats() | st.integers())
def test_whatever_is_sent_is_a_length_or_a_refusal(value):
    with suppress(InvalidField):
        assert parse_duration(value, "every") >= timedelta(0)


def test_a_negative_length_has_no_text():
    with pytest.raises(ValueError, match="never negative"):
        format_duration(timedelta(seconds=-1))
