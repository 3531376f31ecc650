"""From where a claim scans: low enough that nothing is left behind, high enough that the dead are not stepped over."""

from itertools import pairwise

from foliot.domain.fairness import UNIT
from foliot.domain.marks import FEW, FLOOR_SCAN, RECENT, SLACK, TELL_AGAIN, Marks

STEP = UNIT // 4
"""Between two runs of one tenant at the usual priority."""


def scan(marks: Marks, now: float, *lanes: int) -> dict[int, int]:
    lanes = lanes or (1,)
    return dict(zip(lanes, marks.next_scan(now, lanes), strict=True))


def test_the_first_scan_begins_at_zero():
    marks = Marks([1])
    marks.saw(1, [10**9, 10**10], 0.0)
    assert scan(marks, 0.0) == {1: 0}


def test_the_next_scan_begins_just_below_the_lowest_rank_seen():
    marks = Marks([1, 2])
    scan(marks, 0.0)
    scan(marks, 0.01)
    marks.saw(1, [5_000 * UNIT, 6_000 * UNIT], 0.01)
    assert scan(marks, 0.02, 1, 2) == {1: 5_000 * UNIT - SLACK, 2: 0}


def test_a_run_ranked_by_an_old_v_is_seen_within_a_tenth_of_a_second_however_fast_the_lane_moves():
    marks, now, rank = Marks([1]), 0.0, 0
    ranks = {}
    for _ in range(500):  # five seconds of a lane that claims 50,000 units in each hundredth of one
        scan(marks, now)
        marks.saw(1, [rank, rank + 50_000 * UNIT], now)
        rank += 50_000 * UNIT
        now += 0.01
        ranks[round(now, 2)] = rank
    published_a_while_ago = ranks[round(now - 1.0, 2)]
    lowest = min(scan(marks, now + step * 0.01)[1] for step in range(int(FLOOR_SCAN * 100) + 2))
    assert 0 < lowest <= published_a_while_ago


def _drive(marks: Marks, claims: int, runs: int, every: float) -> tuple[list[tuple[float, int]], list[int]]:
    """Twenty tenants that keep a pace: the highest rank at each time, and marks of scans but for the floor's."""
    highest, seen, rank = [(0.0, 0)], [], 0
    for number in range(1, claims + 1):
        now = number * every
        (mark,) = marks.next_scan(now, [1])
        if marks.next_scan(now, [1]) == [mark]:
            seen.append(mark)
        ranks = [rank + (place // 20 + 1) * STEP for place in range(runs)]
        marks.saw(1, ranks, now)
        rank = ranks[-1]
        highest.append((now, rank))
    return highest, seen


def test_however_many_tenants_there_are_a_scan_steps_over_half_a_second_of_claims():
    """By ranks alone it were 160,000 runs: sixteen seconds of them, which a held transaction keeps there."""
    marks = Marks([1])
    highest, seen = _drive(marks, 1_000, runs=100, every=0.01)
    now, last = highest[-1]
    stepped_over = (last - marks.next_scan(now, [1])[0]) // STEP * 20
    assert 0.9 * RECENT * 10_000 < stepped_over < 1.1 * RECENT * 10_000
    assert all(later >= earlier for earlier, later in pairwise(seen))


def test_what_was_ranked_by_a_v_of_a_moment_ago_is_in_the_next_scan():
    marks = Marks([1])
    highest, _ = _drive(marks, 400, runs=100, every=0.01)
    now, _ = highest[-1]
    told = next(rank for at, rank in reversed(highest) if at <= now - RECENT)
    assert marks.next_scan(now, [1])[0] <= told


def test_at_a_modest_pace_what_comes_late_is_in_the_next_scan_all_the_same():
    marks = Marks([1])
    highest, _ = _drive(marks, 50, runs=20, every=1.0)
    now, _ = highest[-1]
    assert FEW > 50 * 20
    assert marks.next_scan(now, [1])[0] == 0


def test_a_straggler_pulls_the_mark_down_to_itself_and_no_further():
    marks = Marks([1])
    highest, _ = _drive(marks, 1_000, runs=100, every=0.01)
    now, last = highest[-1]
    straggler = last - 50_000 // 20 * STEP
    marks.saw(1, [straggler, last + 1], now)
    assert marks.next_scan(now, [1]) == [straggler]


def test_no_scan_but_the_first_ones_begins_at_zero():
    marks = Marks([1])
    _, seen = _drive(marks, 1_000, runs=100, every=0.01)
    scans = [scan(marks, 10.0 + number / 10)[1] for number in range(2_000)]
    assert seen[0] == 0
    assert min(scans) > 0


def test_a_rank_is_published_once_and_now_and_then_again():
    marks = Marks([1, 2])
    assert marks.to_publish(0.0) == {}
    marks.saw(1, [5, 9], 0.1)
    assert marks.to_publish(0.2) == {1: 9}
    marks.saw(1, [3, 8], 0.3)
    assert marks.to_publish(0.4) == {}
    assert marks.to_publish(TELL_AGAIN) == {1: 9}, "it may have been lost on its way, or with the server"
    assert marks.to_publish(TELL_AGAIN + 0.1) == {}


def test_a_lane_that_comes_later_is_scanned_from_its_beginning_whatever_the_others_have_seen():
    marks = Marks([1])
    for tick in range(40):
        marks.next_scan(tick / 10, [1])
        marks.saw(1, [10**12 + tick], tick / 10)
    before = marks.next_scan(4.0, [1])
    marks.add([1, 2])
    assert marks.next_scan(4.05, [1, 2]) == [marks.next_scan(4.06, [1])[0], 0]
    assert marks.next_scan(5.0, [2, 1])[0] == 0
    assert before[0] > 0
