"""So many a second: never more, whenever one looks, and nothing made up for after a pause."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.pace import BURST, allowance, used

START = datetime(2026, 1, 1, tzinfo=UTC)
PACES = st.floats(0.01, 10_000)
PAUSES = st.lists(st.floats(0, 20), min_size=1, max_size=30)
SECOND = timedelta(seconds=1)


def _walk(pace: float, pauses: list[float], wish: int = 10**9) -> list[tuple[datetime, int]]:
    """How many went when, if somebody takes what there is after each pause."""
    now, until, gone = START, None, []
    for pause in pauses:
        count = min(wish, allowance(pace, until, now))
        if count:
            until = used(pace, until, now, count)
        gone.append((now, count))
        now += timedelta(seconds=pause)
    return gone


@given(PACES, PAUSES)
def test_between_any_two_looks_no_more_go_than_the_pace_and_one_burst_allow(pace: float, pauses: list[float]):
    gone = _walk(pace, pauses)
    burst = BURST.total_seconds() * pace + 1
    for first in range(len(gone)):
        for last in range(first, len(gone)):
            seconds = (gone[last][0] - gone[first][0]).total_seconds()
            count = sum(count for _, count in gone[first : last + 1])
            assert count <= seconds * pace + burst + 1 + 1e-5 * pace * (last - first + 1)


@given(PACES, st.floats(0.01, 0.5), st.integers(20, 200))
def test_looked_at_often_enough_the_pace_is_kept(pace: float, pause: float, looks: int):
    gone = _walk(pace, [pause] * looks)
    seconds = pause * (looks - 1)
    assert sum(count for _, count in gone) >= int(seconds * pace * 0.99)


@given(PACES)
def test_the_first_goes_at_once_however_slow_the_pace(pace: float):
    assert allowance(pace, None, START) == 1
    assert allowance(pace, used(pace, None, START, 1), START) <= 1


@given(PACES, st.timedeltas(timedelta(0), timedelta(days=365)))
def test_a_clock_that_was_set_back_costs_one_step_and_not_the_time_it_lost(pace: float, back: timedelta):
    until = used(pace, None, START, 1)
    now = START - back
    assert allowance(pace, used(pace, until, now, 0), now + max(SECOND, SECOND / pace) * 1.01) >= 1
