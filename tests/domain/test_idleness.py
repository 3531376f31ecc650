"""Idle claimers look for what fell due: often, but not all the time, and seldom while they are busy."""

from itertools import pairwise

from foliot.domain.idleness import LOOK_AT_LEAST, LOOK_EVERY, Idleness


def test_who_finds_nothing_looks_at_once_and_then_now_and_then():
    idleness = Idleness()
    looks = [now / 64 for now in range(10 * 64) if idleness.is_time(now / 64)]
    assert looks[0] == 0.0
    gaps = [after - before for before, after in pairwise(looks)]
    assert min(gaps) >= LOOK_EVERY
    assert max(gaps) < LOOK_EVERY + 2 / 64


def test_who_has_just_been_busy_looks_less_often():
    idleness = Idleness()
    looks = []
    for now in range(10 * 64):
        if now % 8 == 0:
            idleness.found(now / 64)
        elif idleness.is_time(now / 64):
            looks.append(now / 64)
    assert looks[0] < LOOK_EVERY
    gaps = [after - before for before, after in pairwise(looks)]
    assert min(gaps) >= LOOK_AT_LEAST
    assert max(gaps) < LOOK_AT_LEAST + 3 / 64


def test_who_was_busy_and_is_idle_again_looks_often_again():
    idleness = Idleness()
    idleness.found(10.0)
    assert idleness.is_time(10.1)
    assert not idleness.is_time(10.1 + LOOK_EVERY - 0.01)
    assert idleness.is_time(10.1 + LOOK_EVERY + 0.01)
