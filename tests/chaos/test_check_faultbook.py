"""What the nemesis did explains what it can have brought about, and nothing else."""

import pytest

from chaos.check.bounds import Bounds
from chaos.check.faultbook import FaultBook
from chaos.records import Fault

BOUNDS = Bounds()
AFTERMATH = BOUNDS.lease + BOUNDS.slack


def book(kind: str, target: str = "worker-1", workers: tuple[str, ...] = ("w1",)) -> FaultBook:
    """One fault, from second 100 to 110."""
    return FaultBook([Fault(kind=kind, target=target, began=100, ended=110, workers=list(workers))], BOUNDS)


@pytest.mark.parametrize("kind", ["kill", "stop", "partition", "halfOpen", "stall", "reset", "cutAfterCommit"])
def test_what_happened_to_a_worker_may_have_cost_it_a_lease_for_a_while_and_no_other(kind: str):
    assert book(kind).held("w1", 90, 100)
    assert book(kind).held("w1", 110 + AFTERMATH, 200)
    assert not book(kind).held("w1", 111 + AFTERMATH, 200)
    assert not book(kind).held("w2", 90, 100)


@pytest.mark.parametrize("worker", ["w1", None])
@pytest.mark.parametrize("kind", ["clockJump", "delay"])
def test_a_wrong_clock_and_a_slow_wire_cost_no_lease(kind: str, worker: str | None):
    assert not book(kind).held(worker, 90, 120)


def test_who_is_unknown_may_be_any_worker_but_none_that_was_dead_by_then():
    late = 101 + BOUNDS.straggler
    assert book("kill").held(None, 99, 120)
    assert not book("kill").held(None, late, 120)
    assert not book("poison").held(None, late, 120)
    assert book("stop").held(None, late, 120)
    assert book("kill", target="api-0").held(None, late, 120)  # the gateway: who comes through it lives on


def test_who_is_unknown_may_have_suffered_from_what_struck_everybody():
    assert book("postgresKill", target="postgres", workers=()).held(None, 111, 120)
    assert not book("reset", target="api-1", workers=()).held(None, 100, 120)
