"""Who is next among those that wait in a worker."""

from hypothesis import given
from hypothesis import strategies as st

from foliot.worker.lineup import Lineup, Waiting
from worker.making import Gate, claimed, function_spec

SPEC = function_spec()
Place = tuple[int, int]
"""A lane and a rank."""


def waiting(place: Place) -> Waiting:
    lane, rank = place
    return Waiting(claimed(rank=rank), SPEC, "report", Gate().executor, lane)


def lineup_of(*places: Place) -> Lineup:
    lineup = Lineup()
    lineup.add(map(waiting, places))
    return lineup


def place(waiting: Waiting) -> Place:
    return waiting.lane, waiting.run.rank


def drained(lineup: Lineup) -> list[Place]:
    return [place(lineup.take()) for _ in range(len(lineup))]


def test_a_run_that_ranks_before_those_that_wait_already_goes_before_them():
    lineup = lineup_of((1, 10), (1, 20), (1, 30))
    assert place(lineup.take()) == (1, 10)
    lineup.add(map(waiting, [(1, 5), (1, 25)]))
    assert place(lineup.first()) == (1, 5)
    assert drained(lineup) == [(1, 5), (1, 20), (1, 25), (1, 30)]
    assert lineup.first() is lineup.take() is None


def test_lanes_have_turns_in_the_order_in_which_their_runs_came_whatever_the_ranks():
    lineup = lineup_of((1, 1_000), (2, 1), (1, 900), (2, 2))
    assert drained(lineup) == [(1, 900), (2, 1), (1, 1_000), (2, 2)]


def test_what_is_taken_out_leaves_the_others_in_their_order():
    lineup = lineup_of((1, 5), (2, 1), (1, 3), (1, 4), (2, 2), (1, 1))
    removed = lineup.remove(lambda run: run.rank % 2 == 0)
    assert sorted(map(place, removed)) == [(1, 4), (2, 2)]
    assert drained(lineup) == [(1, 1), (2, 1), (1, 3), (1, 5)]


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 9)) | st.none()))
def test_nothing_is_lost_and_equal_ranks_stay_in_their_order(steps):
    lineup, rest = Lineup(), []
    for step in steps:
        if step is not None:
            rest.append(waiting(step))
            lineup.add(rest[-1:])
        elif rest:
            taken = lineup.take()
            assert taken is min((each for each in rest if each.lane == taken.lane), key=lambda each: each.run.rank)
            rest.remove(taken)
        assert {id(each) for each in lineup} == {id(each) for each in rest}
        assert len(lineup) == len(rest)
