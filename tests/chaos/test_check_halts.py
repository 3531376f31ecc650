"""By when what falls to schedulers must have been done: one that stands does it for all."""

import math

import pytest

from chaos.check.bounds import Bounds
from chaos.check.faultbook import FaultBook
from chaos.check.halts import BACK, done_by
from chaos.records import Fault

PAIR = ("scheduler-0", "scheduler-1")
NEEDS = 15.0


def by(*faults: tuple[str, str, float, float], since: float = 105.0, schedulers: tuple[str, ...] = PAIR) -> float:
    """Kind, target, beginning and end of each."""
    bounds = Bounds(schedulers=schedulers)
    struck = [Fault(kind=kind, target=target, began=began, ended=ended) for kind, target, began, ended in faults]
    return done_by(FaultBook(struck, bounds), bounds, since, NEEDS)


def test_in_quiet_times_it_takes_what_it_needs():
    assert by() == 105 + NEEDS


@pytest.mark.parametrize("kind", ["kill", "stop", "partition", "stall", "reset"])
def test_what_happens_to_one_of_two_puts_nothing_off(kind: str):
    assert by((kind, "scheduler-0", 100, 140)) == 105 + NEEDS
    assert by((kind, "scheduler-0", 100, 140), schedulers=("scheduler-0",)) >= 140 + BACK + NEEDS


def test_only_while_both_are_away_it_waits():
    assert by(("stop", "scheduler-0", 100, 140), ("stop", "scheduler-1", 110, 150)) == 140 + BACK + NEEDS
    assert by(("stop", "scheduler-0", 100, 140), ("stop", "scheduler-1", 121, 150)) == 105 + NEEDS


def test_one_that_stands_now_and_then_for_less_than_it_needs_has_not_done_it():
    struck = [("reset", "postgres", at, at) for at in (100.0, 120.0, 140.0)]
    assert by(*struck) == 140 + BACK + NEEDS


@pytest.mark.parametrize("kind", ["postgresKill", "postgresStop", "outage", "diskFull"])
def test_without_the_database_nobody_works(kind: str):
    assert by((kind, "postgres", 100, 110)) == 110 + BACK + NEEDS


def test_beside_more_than_can_be_done_it_may_take_until_that_is_over():
    """Seed 190729: after 42 s without schedulers a schedule of every second was behind by 31 s while a rush went on."""
    assert by(("rush", "workers", 100, 140)) == 140 + BACK + NEEDS


@pytest.mark.parametrize("target", ["api-0", "worker-1"])
def test_who_does_not_schedule_has_no_part_in_it(target: str):
    assert by(("partition", target, 100, 140)) == 105 + NEEDS


@pytest.mark.parametrize("kind", ["delay", "clockJump"])
def test_a_slow_wire_and_a_wrong_clock_keep_nobody_from_it(kind: str):
    assert by((kind, "scheduler-0", 100, 140), schedulers=("scheduler-0",)) == 105 + NEEDS


def test_of_two_that_are_restarted_one_after_the_other_one_is_there():
    assert by(("rollingRestart", "all", 100, 140)) == 105 + NEEDS
    assert by(("rollingRestart", "all", 100, 140), schedulers=("scheduler-0",)) == 140 + BACK + NEEDS


def test_after_the_end_of_everybody_it_is_never_done():
    assert by(("kill", "scheduler-0", 100, math.inf), schedulers=()) == math.inf
