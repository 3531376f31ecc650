"""From where on to look for what is due."""

from datetime import UTC, datetime, timedelta

from foliot.domain.floor import SLACK, WHOLE, Floor
from foliot.domain.shards import EVERYTHING, Look

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_first_look_begins_at_the_beginning():
    assert Floor(Clock()).since(EVERYTHING) is None


def test_a_later_look_begins_a_little_below_what_was_done():
    floor = Floor(Clock())
    floor.since(EVERYTHING)
    floor.reach(EVERYTHING, NOON)
    assert floor.since(EVERYTHING) == NOON - SLACK


def test_now_and_then_a_look_begins_at_the_beginning_again():
    floor = Floor(clock := Clock())
    floor.since(EVERYTHING)
    floor.reach(EVERYTHING, NOON)
    clock.now += WHOLE
    assert floor.since(EVERYTHING) is None
    floor.reach(EVERYTHING, NOON + timedelta(seconds=WHOLE))
    assert floor.since(EVERYTHING) == NOON + timedelta(seconds=WHOLE) - SLACK


def test_shards_that_were_others_a_moment_ago_are_looked_at_from_the_beginning():
    floor = Floor(Clock())
    mine, more = Look(frozenset({1})), Look(frozenset({1, 2}))
    floor.since(mine)
    floor.reach(mine, NOON)
    assert floor.since(more) is None


def test_what_was_done_of_one_look_says_nothing_of_another():
    floor = Floor(Clock())
    mine, others = Look(frozenset({1})), Look(frozenset({2}))
    floor.since(mine)
    floor.reach(others, NOON)
    assert floor.since(mine) is None
