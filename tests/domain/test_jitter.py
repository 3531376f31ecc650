"""A job's place in its jitter window: its own, always the same, spread evenly."""

from collections import Counter
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.jitter import phase

JOBS = st.integers(-(2**63), 2**63 - 1)


@given(JOBS, st.timedeltas(timedelta(milliseconds=1), timedelta(hours=1)))
def test_a_phase_lies_in_the_window_in_whole_milliseconds(job: int, window: timedelta):
    found = phase(job, window)
    assert timedelta() <= found < window
    assert found % timedelta(milliseconds=1) == timedelta()
    assert phase(job, window) == found


@given(JOBS)
def test_without_a_window_there_is_no_phase(job: int):
    assert phase(job, timedelta()) == timedelta()


def test_jobs_are_spread_over_the_window():
    tenths = Counter(phase(job, timedelta(seconds=10)) // timedelta(seconds=1) for job in range(10_000))
    assert set(tenths) == set(range(10))
    assert 850 < min(tenths.values()) <= max(tenths.values()) < 1_150


def test_a_phase_never_moves():
    """Released phases are a promise: another hash would move every jittered job at once."""
    assert phase(1, timedelta(seconds=10)) == timedelta(milliseconds=9_946)
