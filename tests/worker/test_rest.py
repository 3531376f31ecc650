"""How long a claimer waits for something to come."""

from datetime import timedelta

from foliot.worker.rest import BRISK, HINTED, LONGEST, SHORTEST, Rest

NONE = timedelta()


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def _after_a_stream(clock: Clock, gap: timedelta) -> Rest:
    """Something was found a moment ago, as many times before, always that far apart."""
    rest = Rest(clock)
    for _ in range(50):
        clock.now += gap.total_seconds()
        rest.found()
    return rest


def test_an_idle_worker_looks_twice_a_second():
    rest = Rest(Clock())
    assert rest.patience() == NONE
    naps = [rest.nap() for _ in range(20)]
    assert naps[0] == SHORTEST
    assert naps == sorted(naps)
    assert naps[-1] == LONGEST


def test_while_work_comes_faster_than_hints_claims_wait_for_it():
    clock = Clock()
    rest = _after_a_stream(clock, HINTED / 4)
    for _ in range(3):
        clock.now += HINTED.total_seconds() / 4
        assert rest.patience() == HINTED


def test_and_wait_no_more_soon_after_it_stops_coming():
    clock = Clock()
    rest = _after_a_stream(clock, HINTED / 4)
    clock.now += 2 * HINTED.total_seconds()
    assert rest.patience() == NONE
    assert [rest.nap() for _ in range(20)][-1] == LONGEST


def test_two_finds_in_a_row_are_no_stream():
    clock = Clock()
    rest = Rest(clock)
    for _ in range(2):
        clock.now += HINTED.total_seconds() / 4
        rest.found()
    assert rest.patience() == NONE


def test_what_comes_less_often_than_hints_is_left_to_them():
    clock = Clock()
    rest = _after_a_stream(clock, 2 * BRISK)
    assert rest.patience() == NONE
    assert [rest.nap() / SHORTEST for _ in range(4)] == [1, 2, 4, 8]
