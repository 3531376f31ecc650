"""Which call may have cancelled a run: it was there by then, and ended when those end that are asked to stop."""

import pytest

from chaos.check import Case
from chaos.check.submissions import lost_runs
from chaos.records import Outcome
from chaos.synthetic.world import BEGIN, rfc3339
from tests.few_records import History

ASKED = 100.0


def explained(ended: float, kind: str = "cancelJob", *, made: float = 50.0, history: History | None = None) -> bool:
    """Whether a call at `ASKED` explains a run that had begun, and was cancelled then."""
    history = history or History()
    history.job("job_1", 10.0)
    history.run("run_1", made, (made + 1, "w1", 7), job="job_1")
    history.evidence.dump.runs["acme"][0] |= {"status": "cancelled", "finishedAt": rfc3339(BEGIN + ended)}
    history.call(kind, ASKED, job="job_1", run="run_1")
    return not list(lost_runs(Case(history.evidence)))


@pytest.mark.parametrize("kind", ["cancelJob", "deleteJob", "cancelRun"])
def test_it_ends_with_the_call_or_when_its_worker_had_to_stop(kind: str):
    assert explained(ASKED, kind)
    assert explained(ASKED + 22, kind)
    assert not explained(ASKED + 24, kind)
    assert not explained(ASKED - 1, kind)


def test_an_edit_cancels_nothing():
    assert not explained(ASKED, "changeJob")


def test_what_was_made_later_it_has_not_ended():
    assert not explained(ASKED + 2, made=ASKED + 1)


def test_a_call_that_nobody_answered_may_take_effect_for_a_while():
    for ended, is_so in ((ASKED + 70, True), (ASKED + 90, False)):
        history = History()
        history.call("cancelJob", ASKED, job="job_1", outcome=Outcome.UNKNOWN)
        assert explained(ended, "pauseJob", history=history) is is_so


def test_what_keeps_its_own_worker_from_the_database_puts_it_off():
    for worker, is_so in (("w1", True), ("w2", False)):
        history = History()
        history.fault("reset", "worker-1", ASKED - 10, ASKED + 40, worker)
        assert explained(ASKED + 60, history=history) is is_so


def test_who_held_it_and_never_began_it_is_known_from_what_else_that_worker_did():
    for worker, is_so in (("wrk_1", True), ("wrk_2", False)):
        history = History()
        history.fault("reset", "worker-1", ASKED - 10, ASKED + 40, "w1")
        history.job("job_1", 10.0)
        history.run("run_1", 50.0, job="job_1")
        over = {"status": "cancelled", "finishedAt": rfc3339(BEGIN + ASKED + 60), "workerId": worker}
        history.evidence.dump.runs["acme"][0] |= over
        history.run("run_2", 50.0, (51.0, "w1", 8))
        history.attempt("run_2", 8, "completed", 60.0)
        history.call("cancelJob", ASKED, job="job_1")
        assert (not list(lost_runs(Case(history.evidence)))) is is_so
