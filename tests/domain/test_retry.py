"""Retries: how long to wait, and when to stop."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.domain.errors import InvalidField
from foliot.domain.retry import LONGEST_RETRY_AFTER, Again, Backoff, Stop, StopReason, decide, delay

NEARLY_ONE = 1 - 2**-53
TICK = timedelta(microseconds=1)
chances = st.floats(0, 1, exclude_max=True)


@st.composite
def backoffs(draw):
    longest = draw(st.timedeltas(timedelta(0), timedelta(days=30)))
    initial = draw(st.timedeltas(timedelta(0), longest))
    return Backoff(initial, draw(st.floats(1, 10)), longest)


@settings(deadline=None)
@given(backoffs(), st.integers(1, 10**9), chances)
def test_a_delay_lies_between_zero_and_the_maximum_for_any_number_of_failures(backoff, failures, chance):
    assert timedelta(0) <= delay(backoff, failures, chance) <= backoff.max


@settings(deadline=None)
@given(backoffs(), st.integers(1, 60), chances)
def test_a_delay_is_its_share_of_the_growing_ceiling(backoff, failures, chance):
    ceiling = min(backoff.max.total_seconds(), backoff.initial.total_seconds() * backoff.factor ** (failures - 1))
    assert delay(backoff, failures, chance).total_seconds() == pytest.approx(ceiling * chance, rel=1e-6, abs=2e-6)


@settings(deadline=None)
@given(backoffs(), st.integers(1, 10**9), chances, chances)
def test_more_chance_or_more_failures_never_mean_a_shorter_delay(backoff, failures, one, other):
    low, high = sorted((one, other))
    assert delay(backoff, failures, low) <= delay(backoff, failures, high)
    assert delay(backoff, failures, low) <= delay(backoff, failures + 1, low) + TICK


@settings(deadline=None)
@given(backoffs(), st.integers(1, 10**9))
def test_jitter_is_full_so_the_lowest_chance_waits_not_at_all(backoff, failures):
    assert delay(backoff, failures, 0.0) == timedelta(0)


def test_the_default_ceiling_doubles_from_one_second_to_ten_minutes():
    ceilings = [round(delay(Backoff(), failures, NEARLY_ONE).total_seconds(), 3) for failures in range(1, 13)]
    assert ceilings == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]


@settings(deadline=None)
@given(st.integers(1, 50), st.integers(0, 50), backoffs(), st.booleans(), chances)
def test_a_run_is_tried_once_and_then_as_often_as_it_may_be_retried(failures, max_retries, backoff, permanent, chance):
    verdict = decide(
        failures=failures,
        max_retries=max_retries,
        backoff=backoff,
        permanent=permanent,
        retry_after=None,
        chance=chance,
    )
    if permanent:
        assert verdict == Stop(StopReason.PERMANENT)
    elif failures >= max_retries + 1:
        assert verdict == Stop(StopReason.EXHAUSTED)
    else:
        assert verdict == Again(delay(backoff, failures, chance))


@settings(deadline=None)
@given(backoffs(), st.timedeltas(timedelta(days=-1), timedelta(days=400)), chances)
def test_retry_after_is_kept_as_a_minimum_up_to_a_day(backoff, asked, chance):
    verdict = decide(failures=1, max_retries=1, backoff=backoff, permanent=False, retry_after=asked, chance=chance)
    assert isinstance(verdict, Again)
    assert verdict.delay >= min(asked, LONGEST_RETRY_AFTER)
    assert verdict.delay <= max(timedelta(0), min(asked, LONGEST_RETRY_AFTER)) + backoff.max


def test_runs_turned_away_together_do_not_come_back_together():
    verdicts = [
        decide(
            failures=3,
            max_retries=9,
            backoff=Backoff(),
            permanent=False,
            retry_after=timedelta(minutes=1),
            chance=chance,
        )
        for chance in (0.0, 0.5)
    ]
    assert verdicts == [Again(timedelta(seconds=60)), Again(timedelta(seconds=62))]


def test_a_delay_needs_a_failure():
    with pytest.raises(ValueError, match="follows a failure"):
        delay(Backoff(), 0, 0.5)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"initial": timedelta(seconds=-1)}, "backoff.initial"),
        ({"initial": timedelta(minutes=11)}, "backoff.initial"),
        ({"factor": 0.5}, "backoff.factor"),
        ({"factor": 10.5}, "backoff.factor"),
        ({"factor": float("nan")}, "backoff.factor"),
        ({"max": timedelta(days=31)}, "backoff.max"),
        ({"max": timedelta(seconds=-1)}, "backoff.max"),
    ],
)
def test_a_backoff_out_of_bounds_is_refused_by_field(change, field):
    with pytest.raises(InvalidField) as refused:
        Backoff(**change)
    assert refused.value.field == field
