"""S12: how many attempts a run has had, where a worker told of one only when it had lost the run."""

import pytest

from chaos.check import Case
from chaos.check.history import false_attempts
from chaos.synthetic.world import BEGIN, rfc3339
from few_records import History


def miscounted(counts: int, *, known: bool, followed: bool) -> list[str]:
    """What S12 says of a run that counts so many attempts; its first worker told of it in the moment it was lost."""
    history = History()
    history.run("run_1", 1, (2, "w1", 1), *([(25, "w2", 2)] if followed else []))
    history.attempt("run_1", 1, "lost", 20)
    late = {"lateResult": {"recordedAt": rfc3339(BEGIN + 20)}, "errorClass": "lost" if known else None}
    history.evidence.dump.attempts["acme"][0] |= late
    if followed:
        history.attempt("run_1", 2, "failed", 26, number=counts)
    history.evidence.dump.runs["acme"][0] |= {"status": "cancelled", "attempts": counts}
    case = Case(history.evidence)
    return [each.rule for each in false_attempts(case, case.runs["run_1"])]


@pytest.mark.parametrize("followed", [False, True])
def test_what_its_worker_alone_knew_of_and_told_too_late_is_not_counted(followed: bool):
    assert miscounted(int(followed), known=False, followed=followed) == []
    assert miscounted(int(followed) + 1, known=False, followed=followed) == ["count"]


@pytest.mark.parametrize("followed", [False, True])
def test_what_was_known_to_have_begun_when_it_was_lost_is_counted_whatever_its_worker_tells(followed: bool):
    assert miscounted(int(followed) + 1, known=True, followed=followed) == []
    assert miscounted(int(followed), known=True, followed=followed) == ["count"]
