"""maxRuns, as the checker counts: which instants may rightly have gone without a run."""

from types import SimpleNamespace
from typing import Any

from chaos.check.budget import Budget
from chaos.oracle import MICRO
from chaos.records import Outcome


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
    case: Any = SimpleNamespace(bounds=SimpleNamespace(uncertainty=0.5, linger=5.0))
    budget = _budget(55.0, 56.0)
    assert budget.may_be_used_up(case, 3 * MICRO, 57.0)
    assert not budget.may_be_used_up(case, 3 * MICRO, 9.0)
    assert not _budget(55.0).may_be_used_up(case, 3 * MICRO, 57.0)
