"""From where a claim scans: low enough that nothing is left behind, high enough that the dead are not stepped over."""

from foliot.domain.fairness import UNIT
from foliot.domain.marks import FLOOR_SCAN, FULL_SCAN, SLACK, Marks


def scan(marks: Marks, now: float, *lanes: int) -> dict[int, int]:
    lanes = lanes or (1,)
    return dict(zip(lanes, marks.next_scan(now, lanes), strict=True))


def test_the_first_scan_begins_at_zero():
    marks = Marks([1])
    marks.saw(1, 10**9, 10**10)
    assert scan(marks, 0.0) == {1: 0}


def test_the_next_scan_begins_just_below_the_lowest_rank_seen():
    marks = Marks([1, 2])
    scan(marks, 0.0)
    scan(marks, 0.01)
    marks.saw(1, 5_000 * UNIT, 6_000 * UNIT)
    assert scan(marks, 0.02, 1, 2) == {1: 5_000 * UNIT - SLACK, 2: 0}


def test_a_run_ranked_by_an_old_v_is_seen_within_a_tenth_of_a_second_however_fast_the_lane_moves():
    marks, now, rank = Marks([1]), 0.0, 0
    ranks = {}
    for _ in range(500):  # five seconds of a lane that claims 50,000 units in each hundredth of one
        scan(marks, now)
        marks.saw(1, rank, rank + 50_000 * UNIT)
        rank += 50_000 * UNIT
        now += 0.01
        ranks[round(now, 2)] = rank
    published_a_while_ago = ranks[round(now - 1.0, 2)]
    lowest = min(scan(marks, now + step * 0.01)[1] for step in range(int(FLOOR_SCAN * 100) + 2))
    assert 0 < lowest <= published_a_while_ago


def test_the_whole_lane_is_scanned_once_a_minute():
    marks = Marks([1])
    scan(marks, 0.0)
    marks.saw(1, 10**12, 10**12)
    assert scan(marks, 1.0)[1] == 0  # the floor: nothing had been claimed two seconds before
    assert scan(marks, 1.05)[1] > 0
    assert scan(marks, FULL_SCAN + 0.1)[1] == 0


def test_a_rank_is_published_once():
    marks = Marks([1])
    marks.saw(1, 5, 9)
    assert marks.to_publish() == {1: 9}
    marks.saw(1, 3, 8)
    assert marks.to_publish() == {}
