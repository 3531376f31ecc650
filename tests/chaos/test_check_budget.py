"""maxRuns, as the checker counts: which instants may rightly have gone without a run."""

from types import SimpleNamespace
from typing import Any, cast

from chaos.check.bounds import Bounds
from chaos.check.budget import Budget
from chaos.check.faultbook import FaultBook
from chaos.oracle import MICRO
from chaos.records import Fault, Outcome

BOUNDS = Bounds(schedulers=("scheduler-0", "scheduler-1"))


def _case(*faults: Fault) -> Any:
    return SimpleNamespace(bounds=BOUNDS, faults=FaultBook(faults, BOUNDS))


def _budget(*made: float) -> Budget:
    """Of a job with two runs at most, which somebody said again at 10; its runs were made then."""
    definition = SimpleNamespace(max_runs=2, jitter=None)
    job: Any = SimpleNamespace(
        definitions=[definition],
        operations=[
            SimpleNamespace(outcome=Outcome.OK, body={"maxRuns": 2}, invoked=at, completed=at) for at in (0.0, 10.0)
        ],
        timeline=SimpleNamespace(between=lambda _, __: [SimpleNamespace(definition=definition)]),
        runs=[
            SimpleNamespace(id=number, status="completed", moment=lambda _, at=at: at) for number, at in enumerate(made)
        ],
        by_hand=set(),
    )
    return Budget(job)


def test_an_instant_of_before_a_change_is_paid_for_by_what_was_left_when_it_was_decided():
    """A late one stands behind those that are on time, which took what there was."""
    budget = _budget(55.0, 56.0)
    assert budget.may_be_used_up(_case(), 3 * MICRO, 57.0)
    assert not budget.may_be_used_up(_case(), 3 * MICRO, 9.0)
    assert not _budget(55.0).may_be_used_up(_case(), 3 * MICRO, 57.0)


def test_what_is_made_after_an_instant_had_its_turn_takes_nothing_from_it():
    budget = _budget(20.0, 56.0)
    assert budget.may_be_used_up(_case(), 50 * MICRO)
    assert not budget.may_be_used_up(_case(), 15 * MICRO)


def test_its_turn_comes_when_somebody_can_fire():
    halts = [Fault(kind="stop", target=name, began=10.0, ended=50.0) for name in BOUNDS.schedulers]
    assert _budget(20.0, 56.0).may_be_used_up(_case(*halts), 15 * MICRO)
    assert not _budget(20.0, 56.0).may_be_used_up(_case(*halts[:1]), 15 * MICRO)


def test_what_was_spent_of_another_number_is_forgotten():
    """Three of five had been made when it became two."""
    budget = _budget(1.0, 2.0, 3.0, 15.0)
    five, two = (SimpleNamespace(definition=SimpleNamespace(max_runs=most, jitter=None)) for most in (5, 2))
    budget._job.timeline = cast("Any", SimpleNamespace(between=lambda at, _: [five if at < 10 else two]))
    assert not budget.may_be_used_up(_case(), 20 * MICRO)
    assert _budget(1.0, 2.0, 3.0, 15.0).may_be_used_up(_case(), 20 * MICRO)
