"""How long a claimer that found nothing waits."""

from foliot.worker.rest import HINTED, LONGEST, SHORTEST, Rest


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_an_idle_worker_looks_twice_a_second():
    rest = Rest(Clock())
    naps = [rest.nap() for _ in range(20)]
    assert naps[0] == SHORTEST
    assert naps == sorted(naps)
    assert naps[-1] == LONGEST


def test_while_work_keeps_coming_faster_than_hints_every_nap_is_short():
    clock = Clock()
    rest = Rest(clock)
    for _ in range(30):
        rest.found()
        clock.now += HINTED / 4
    assert {rest.nap() for _ in range(20)} == {SHORTEST}


def test_and_when_it_stops_coming_naps_grow_again():
    clock = Clock()
    rest = Rest(clock)
    for _ in range(30):
        rest.found()
        clock.now += HINTED / 4
    clock.now += HINTED
    naps = [rest.nap() for _ in range(20)]
    assert naps[-1] == LONGEST


def test_what_comes_less_often_than_hints_is_left_to_them():
    clock = Clock()
    rest = Rest(clock)
    for _ in range(30):
        rest.found()
        clock.now += 1.0
    rest.found()
    assert [rest.nap() / SHORTEST for _ in range(4)] == [1, 2, 4, 8]
