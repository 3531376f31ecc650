"""Starts and instants are matched by time alone: what that must not be misled by."""

import pytest

from chaos.check import Case
from chaos.check.blind import mislabelled
from chaos.check.occurrences import all_occurrences
from chaos.synthetic.world import BEGIN, rfc3339
from few_records import History

FIRST, EVERY, OLDEST, CUTOFF = 11, 10, 900, 950


@pytest.fixture
def history() -> History:
    """Nobody fired for a while; then the newest instants came first, and the oldest when all was read already."""
    history = History()
    recurring = {"every": f"PT{EVERY}S", "scheduleAt": rfc3339(BEGIN + FIRST), "overlap": "allow"}
    history.job("job_1", 1, **recurring, catchUp={"mode": "all", "window": "PT10M"})
    for turn, at in enumerate(range(FIRST, CUTOFF, EVERY)):
        begun = at + 0.1 if at < OLDEST else CUTOFF - 1 if at > OLDEST + 2 * EVERY else CUTOFF + 1
        history.run(f"run_{at}", begun, (begun, "w1", turn + 1), job="job_1", scheduled=at)
    history.fault("stop", "scheduler-0", OLDEST - 5, CUTOFF - 2)
    history.evidence.dump.taken += CUTOFF - Case(history.evidence).cutoff + BEGIN
    return history


def _found(history: History) -> list[str]:
    case = Case(history.evidence)
    return [each.message for each in mislabelled(case, all_occurrences(case))]


def test_what_began_after_the_end_takes_nobodys_start(history: History):
    assert _found(history) == []


def test_a_start_that_falls_to_no_instant_is_seen(history: History):
    stray = next(each for each in history.evidence.effects if each.run == "run_51")
    stray.at = BEGIN + 5
    assert _found(history) == ["1 starts belong, by their time, to no instant of the job"]


def test_what_a_pause_held_belongs_to_its_instant_when_that_is_over():
    history = History()
    history.job("job_1", 1, every="PT50S", scheduleAt=rfc3339(BEGIN + FIRST), overlap="allow")
    history.call("pauseJob", FIRST + 1, job="job_1")
    history.call("resumeJob", 400, job="job_1")
    history.run("run_1", FIRST + 0.1, (400.5, "w1", 1), job="job_1", scheduled=FIRST)
    assert _found(history) == []
    history.evidence.operations = history.evidence.operations[:1]
    assert len(_found(history)) == 1
