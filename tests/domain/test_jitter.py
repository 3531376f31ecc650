"""A job's place in its jitter window: its own, always the same, spread evenly."""

from collections import Counter
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.jitter import phase, place_in

MILLI = timedelta(milliseconds=1)
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


ROOMS = st.timedeltas(timedelta(milliseconds=1), timedelta(hours=2))


@given(st.timedeltas(timedelta(), timedelta(hours=1)).map(lambda each: each // MILLI * MILLI), ROOMS)
def test_a_place_lies_before_the_next_instant_and_is_the_phase_if_there_is_room(own: timedelta, room: timedelta):
    assert timedelta() <= place_in(own, room) < room
    assert place_in(own, own + timedelta(milliseconds=1)) == place_in(own, None) == own


def test_places_are_spread_over_the_room_there_is():
    minute = timedelta(minutes=1)
    places = [place_in(phase(job, timedelta(hours=1)), minute) for job in range(10_000)]
    sixths = Counter(place // timedelta(seconds=10) for place in places)
    assert 1_450 < min(sixths.values()) <= max(sixths.values()) < 1_900


def test_jobs_are_spread_over_the_window():
    tenths = Counter(phase(job, timedelta(seconds=10)) // timedelta(seconds=1) for job in range(10_000))
    assert set(tenths) == set(range(10))
    assert 850 < min(tenths.values()) <= max(tenths.values()) < 1_150


def test_a_phase_never_moves():
    """Released phases are a promise: another hash would move every jittered job at once."""
    assert phase(1, timedelta(seconds=10)) == timedelta(milliseconds=9_946)
