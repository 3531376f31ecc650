"""Runs are shared in turns: nobody gets more than it wants, and nobody who wants more gets less than another."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.sharing import may_serve, share

WANTS = st.lists(st.integers(0, 50), max_size=20)


@given(WANTS, st.integers(0, 200), st.integers(1, 60))
def test_the_places_are_those_that_are_wanted_up_to_the_most(wants: list[int], most: int, together: int):
    assert len(share(wants, most, together)) == min(sum(wants), most)


@given(WANTS, st.integers(0, 200), st.integers(1, 60))
def test_however_few_runs_there_are_nobody_is_left_behind(wants: list[int], most: int, together: int):
    """The first n places are taken in order when only n runs were found."""
    got: Counter[int] = Counter()
    for owner in share(wants, most, together):
        got[owner] += 1
        assert got[owner] <= wants[owner]
        for index, want in enumerate(wants):
            assert got[index] >= min(want, got[owner] - together)


def test_a_single_run_goes_to_the_one_who_waits_longest():
    assert share([5, 5, 5], 100)[0] == 0


def test_a_star_serves_every_queue_and_nothing_serves_none():
    assert may_serve(["*"], "mail")
    assert may_serve(["mail"], "mail")
    assert not may_serve(["mail"], "default")
    assert not may_serve([], "*")
