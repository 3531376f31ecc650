"""When each fault was, and how late runs began in each quiet time."""

import pytest

from chaos import course
from chaos.check import Case
from chaos.check.quality import measures
from chaos.check.waits import first_starts
from few_records import History


@pytest.fixture
def history() -> History:
    """Two bursts, each of two faults; the first call comes two seconds after the clock's beginning."""
    made = History()
    made.call("createRun", 2, body={"handler": "quick"}, answer={"runId": "run_0"})
    made.fault("stop", "worker-1", 112, 118, "w1")
    made.fault("kill", "worker-0", 12, 12.26, "w0")
    made.fault("reset", "api-0", 13, 17)
    made.fault("kill", "api-1", 114, 115)
    return made


def test_faults_are_told_in_order_by_seconds_since_the_first_call(history: History):
    told = [tuple(each.values()) for each in course.faults(Case(history.evidence))]
    assert told == [
        (10.0, "kill", "worker-0", 0.3),
        (11.0, "reset", "api-0", 4.0),
        (110.0, "stop", "worker-1", 6.0),
        (112.0, "kill", "api-1", 1.0),
    ]


def test_each_quiet_time_has_its_own_lateness_and_the_last_fault_before_it(history: History):
    starts = ((3, 3.5), (20, 25), (60, 60.25), (70, 72), (111, 111.5), (150, 158))
    for number, (made, began) in enumerate(starts, 1):
        history.run(f"run_{number}", made, (began, "w2", number))
    case = Case(history.evidence)
    times = course.quiet_times(case, first_starts(case))
    told = [(each["from"], each["to"], each["after"], each["count"], each["max"]) for each in times]
    assert told == [
        (1.5, 1.5, None, 1, 0.5),
        (58.2, 109.5, "reset api-0", 3, 2.0),
        (156.0, 156.0, "stop worker-1", 1, 8.0),
    ]
    assert sum(each["count"] for each in times) == measures(case)["L1"]["quiet"]["count"]
