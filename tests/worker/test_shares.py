"""Dividing claims among lanes: by weight while all have work, and nothing is left lying while one is empty."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.worker.shares import Shares


class Lanes:
    """Stands for the database: so many runs wait in each lane, and a claim takes them as the statement does."""

    def __init__(self, lanes, weights, **waiting):
        self.shares = Shares(lanes, weights)
        self.waiting = Counter({int(lane.removeprefix("lane_")): count for lane, count in waiting.items()})
        self.taken = Counter()

    def claim(self, room):
        """What this claim brought, lane by lane."""
        found = Counter()
        for lane, most in self.shares.divide(room):
            assert most > 0
            count = min(most, room - found.total(), self.waiting[lane])
            if count:
                found[lane] = count
        self.waiting -= found
        self.taken += found
        self.shares.took(found)
        return found


ENDLESS = 10**9
weights = st.integers(1, 10)
rooms = st.lists(st.integers(1, 800), min_size=20, max_size=60)


@settings(max_examples=40)
@given(st.lists(weights, min_size=2, max_size=5), rooms)
def test_lanes_that_always_have_work_are_served_by_weight_whatever_the_size_of_the_claims(chosen, sizes):
    lanes = Lanes(
        {number: f"queue {number}" for number in range(len(chosen))},
        {f"queue {number}": weight for number, weight in enumerate(chosen)},
        **{f"lane_{number}": ENDLESS for number in range(len(chosen))},
    )
    for room in sizes:
        assert lanes.claim(room).total() == room
    for number, weight in enumerate(chosen):
        fair = sum(sizes) * weight / sum(chosen)
        assert abs(lanes.taken[number] - fair) <= max(sizes) * 0.5 + len(chosen)


@settings(max_examples=40)
@given(weights, weights, st.integers(1, 6))
def test_the_lanes_of_a_queue_divide_its_weight(fast, bulk, functions):
    lanes = Lanes(
        {0: "bulk"} | dict.fromkeys(range(1, functions + 1), "fast"),
        {"fast": fast, "bulk": bulk},
        **{f"lane_{number}": ENDLESS for number in range(functions + 1)},
    )
    for _ in range(40):
        lanes.claim(100)
    fair = 4000 * bulk / (fast + bulk)
    assert abs(lanes.taken[0] - fair) <= 100
    for number in range(1, functions + 1):
        assert abs(lanes.taken[number] - (4000 - fair) / functions) <= 100


@given(st.integers(1, 100), st.integers(1, 1000))
def test_an_empty_lane_leaves_its_share_to_the_others(weight, room):
    lanes = Lanes({1: "busy", 2: "empty"}, {"busy": 1, "empty": weight}, lane_1=ENDLESS)
    lanes.claim(room)  # it learns that there is nothing
    assert all(lanes.claim(room) == {1: room} for _ in range(5))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50)), min_size=1, max_size=30), st.integers(1, 100))
def test_nothing_stays_behind_while_there_is_room(arrivals, room):
    lanes = Lanes(dict.fromkeys(range(4), "one"), {"one": 1})
    for lane, count in arrivals:
        lanes.waiting[lane] += count
        lanes.claim(room)
    while lanes.waiting.total():
        assert lanes.claim(room)
    assert lanes.taken.total() == sum(count for _, count in arrivals)


def test_a_lane_that_comes_back_has_neither_credit_nor_debt():
    lanes = Lanes({1: "one", 2: "two"}, {"one": 1, "two": 1}, lane_1=ENDLESS)
    for _ in range(50):
        lanes.claim(100)
    lanes.waiting[2] = ENDLESS
    lanes.claim(100)
    before = lanes.taken.copy()
    for _ in range(10):
        lanes.claim(100)
    assert abs((lanes.taken - before)[2] - 500) <= 100
    del lanes.waiting[1]
    for _ in range(50):
        lanes.claim(100)
    lanes.waiting[1] = ENDLESS
    lanes.claim(100)
    before = lanes.taken.copy()
    for _ in range(10):
        lanes.claim(100)
    assert abs((lanes.taken - before)[1] - 500) <= 100


def test_one_run_in_a_quiet_lane_is_in_the_next_claim():
    lanes = Lanes({1: "busy", 2: "quiet"}, {"busy": 1000, "quiet": 1}, lane_1=ENDLESS)
    for _ in range(5):
        lanes.claim(100)
    lanes.waiting[2] = 1
    assert lanes.claim(100)[2] == 1


def test_a_worker_that_starts_takes_some_of_each():
    lanes = Lanes({1: "fast", 2: "bulk"}, {"fast": 3, "bulk": 1}, lane_1=ENDLESS, lane_2=ENDLESS)
    assert lanes.claim(100) == {1: 75, 2: 25}


def test_the_only_lane_with_work_is_asked_for_all_there_is_room_for():
    """Else every other claim of a worker with many functions, of which one is in use, would be a small one."""
    lanes = Lanes(dict.fromkeys(range(9), "one"), {"one": 1})
    lanes.claim(100)
    for count in (100, 30, 80, 99):
        lanes.waiting[4] += count
        assert lanes.claim(100) == {4: count}


def test_a_lane_that_comes_later_gets_its_share_from_then_on_and_no_credit():
    lanes = Lanes({1: "a"}, {"a": 1}, lane_1=ENDLESS, lane_2=ENDLESS)
    for _ in range(10):
        lanes.claim(100)
    lanes.shares.add({1: "a", 2: "a"})
    assert lanes.shares.lanes == [1, 2]
    for _ in range(10):
        lanes.claim(100)
    assert lanes.taken == {1: 1_500, 2: 500}
