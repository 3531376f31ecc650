"""How late, how quickly back, how fair: measured by the rules that the reports name."""

import pytest

from chaos.check import Case
from chaos.check.fairness import fair_shares
from chaos.check.quality import AROUND, QUIET, measures
from chaos.check.recovery import BYSTANDERS, too_slow
from chaos.check.waits import first_starts
from chaos.records import POISON, SIDE, Outcome, Phase
from chaos.synthetic.world import BEGIN, rfc3339
from few_records import History

LONG_AGO = "2026-01-01T00:00:00Z"
WORKERS, SCHEDULERS, DATABASE = (
    "worker kill to restart of its runs",
    "scheduler kill to next fire",
    "database accepting to first start",
)


@pytest.fixture
def history() -> History:
    return History()


def test_a_job_of_long_ago_is_not_late_before_it_is_there(history: History):
    history.job("job_1", 10, scheduleAt=LONG_AGO)
    history.run("run_1", 10, (10.5, "w1", 1), job="job_1", scheduled=LONG_AGO)
    assert history.late() == [0.5]


def test_a_job_of_an_instant_to_come_is_late_from_that_instant_on(history: History):
    history.job("job_1", 10, scheduleAt=rfc3339(BEGIN + 20))
    history.run("run_1", 10, (20.25, "w1", 1), job="job_1", scheduled=20)
    assert history.late() == [0.25]


def test_a_back_fill_and_what_waits_for_other_runs_are_not_late(history: History):
    history.job("job_1", 1, every="PT5S")
    history.job("job_2", 1, key="top")
    history.job("job_3", 1, key="below", dependsOn=["top"])
    history.job("job_4", 1, every="PT5S", overlap="queue")
    history.run("run_1", 100, (101, "w1", 1), job="job_1", scheduled=5)
    history.evidence.dump.backfilled = {"job_1": {"op_1": ["run_1"]}}
    history.run("run_2", 100, (100.5, "w1", 2), job="job_2")
    history.run("run_3", 100, (130, "w1", 3), job="job_3")
    history.run("run_4", 105, (130, "w1", 4), job="job_4")
    assert history.late() == [0.5]


def test_what_was_due_in_a_quiet_time_is_late_there_until_the_next_fault_at_least(history: History):
    history.fault("stop", "worker-1", 100, 110, "w1")
    history.run("run_1", 50, (52, "w2", 1))
    history.run("run_2", 97, (120, "w2", 2))
    history.run("run_3", 101, (125, "w2", 3))
    late = measures(Case(history.evidence))["L1"]
    assert (late[QUIET]["count"], late[QUIET]["max"]) == (2, 3.0)
    assert (late[AROUND]["count"], late[AROUND]["max"]) == (1, 24.0)


def test_what_its_owner_held_back_is_not_late(history: History):
    history.job("job_1", 1, scheduleAt=rfc3339(BEGIN + 20))
    history.call("pauseJob", 15, job="job_1")
    history.call("resumeJob", 40, job="job_1")
    history.run("run_1", 1, (40.5, "w1", 1), job="job_1", scheduled=20)
    body = {"handler": "quick", "payload": 1, "queue": SIDE}
    history.call("createRun", 50, body=body, answer={"runId": "run_2"})
    history.run("run_2", 50, (70, "w1", 2))
    assert history.late() == []


def test_a_kill_counts_for_http_runs_too_whose_worker_only_the_fence_tells(history: History):
    history.fault("kill", "worker-0", 10, 10, "w1")
    history.run("run_1", 5, (6, "w1", 1))
    history.attempt("run_1", 1, "completed", 7)
    history.run("run_2", 5, (9, "", 1), (31, "", 5))
    assert history.recovery(WORKERS) == {"faults": 1, "cases": 1, "bound": 20.0, "worst": 21.0}


def test_many_runs_of_one_kill_are_many_cases_of_one_fault(history: History):
    history.fault("kill", "worker-0", 10, 10, "w1")
    history.fault("kill", "worker-1", 110, 110, "w2")
    for number, (began, worker) in enumerate(((9, "w1"), (9.5, "w1"), (109, "w2"))):
        history.run(f"run_{number}", began, (began, worker, number), (began + 15, "w3", 10 + number))
    assert history.recovery(WORKERS) == {"faults": 2, "cases": 3, "bound": 20.0, "worst": 14.5}


def test_a_kill_does_not_count_for_what_was_over_before_it_or_was_called_back(history: History):
    history.fault("kill", "worker-0", 10, 10, "w1")
    history.run("run_1", 5, (6, "w1", 1), (40, "w2", 5))
    history.attempt("run_1", 1, "snoozed", 7)
    history.run("run_2", 5, (9, "w1", 1), (60, "w2", 6))
    history.evidence.dump.decided = {"run_2": [{"deed": "replayed", "at": BEGIN + 59, "attempts": 1, "by": "hand"}]}
    assert history.recovery(WORKERS) == {"faults": 0, "cases": 0, "bound": 20.0}


def test_a_kill_counts_for_what_is_on_record_as_lost_though_the_ledger_heard_nothing_of_it(history: History):
    history.fault("kill", "worker-0", 10, 10, "wrk_1")
    history.run("run_1", 5, (28.5, "w2", 5))
    history.attempt("run_1", 1, "lost", 26)
    history.attempt("run_1", 5, "completed", 29, "wrk_2")
    assert history.recovery(WORKERS) == {"faults": 1, "cases": 1, "bound": 20.0, "worst": 18.5}


def test_who_was_beside_a_poisonous_run_is_measured_apart_and_promised_nothing(history: History):
    history.fault("poison", "worker-0", 10, 10, "w1")
    for name, handler in (("run_1", "quick"), ("run_2", POISON)):
        history.call("createRun", 5, body={"handler": handler, "payload": 1}, answer={"runId": name})
        history.run(name, 5, (9, "w1", 1), (52 if handler == "quick" else 70, "w2", 5))
    found = measures(Case(history.evidence))["L2"]
    assert found["unpromised"] == {BYSTANDERS: {"faults": 1, "cases": 1, "worst": 42.0}}
    assert found["promised"][WORKERS] == {"faults": 0, "cases": 0, "bound": 20.0}


def test_a_full_disk_excuses_no_slow_recovery_and_a_schedulers_nothing_does(history: History):
    history.fault("kill", "worker-0", 10, 10, "w1")
    history.fault("diskFull", "postgres", 12, 15)
    history.run("run_1", 5, (9, "w1", 1), (33, "w2", 5))
    assert history.recovery(WORKERS)["worst"] == 23.0
    history.fault("kill", "scheduler-0", 110, 110)
    history.fault("postgresKill", "postgres", 111, 115)
    history.job("job_1", 1, every="PT1S", overlap="allow")
    history.run("run_2", 117, (117.1, "w2", 6), job="job_1", scheduled=110.5)
    assert history.recovery(SCHEDULERS)["worst"] == 6.5


def test_a_kill_counts_from_the_restart_of_the_database_if_that_came_later(history: History):
    history.fault("kill", "worker-0", 10, 10, "w1")
    history.fault("postgresKill", "postgres", 12, 15)
    history.run("run_1", 5, (9, "w1", 1), (33, "w2", 5))
    assert history.recovery(WORKERS)["worst"] == 18.0


def test_both_tables_measure_a_restart_by_the_same_rule(history: History):
    history.fault("kill", "worker-0", 10, 10, "w1")
    history.fault("postgresKill", "postgres", 12, 15)
    history.run("run_1", 5, (9, "w1", 1), (33, "w2", 5))
    found = measures(Case(history.evidence))["L2"]
    assert found["by fault"]["kill worker"]["restart"] == found["promised"][WORKERS]["worst"]


def test_a_schedulers_kill_is_felt_by_the_job_that_the_survivor_did_not_own(history: History):
    history.fault("kill", "scheduler-0", 10, 10)
    for name, made in (("job_1", 11.02), ("job_2", 23.5)):
        history.job(name, 1, every="PT1S", overlap="allow")
        history.run(f"of {name}", made, (made + 0.1, "w1", 1), job=name, scheduled=11)
        history.run(f"next of {name}", 24, (24.1, "w1", 2), job=name, scheduled=24)
    assert history.recovery(SCHEDULERS) == {"faults": 1, "cases": 2, "bound": 10.0, "worst": 12.5}


def test_a_job_that_was_behind_before_the_kill_waits_for_its_next_fire_whatever_it_is_for(history: History):
    history.fault("kill", "scheduler-0", 30, 30)
    history.job("job_1", 1, every="PT1S", overlap="allow")
    for instant in range(10, 40):  # twenty seconds late, before and afterwards
        made = instant + 20.5
        history.run(f"of {instant}", made, (made + 0.1, "w1", 1), job="job_1", scheduled=instant)
    assert history.recovery(SCHEDULERS) == {"faults": 1, "cases": 1, "bound": 10.0, "worst": 0.5}


def test_an_instant_that_was_missed_after_a_schedulers_kill_was_not_fired_in_time(history: History):
    history.fault("kill", "scheduler-0", 10, 10)
    history.job("job_1", 1, every="PT20S", overlap="allow")
    history.run("run_1", 60, (60.1, "w1", 1), job="job_1", scheduled=60)
    passed_over = {"job": "job_1", "from": rfc3339(BEGIN + 20), "through": rfc3339(BEGIN + 40)}
    history.evidence.dump.missed = {"acme": [passed_over]}
    assert history.recovery(SCHEDULERS)["worst"] == 40.0


def test_a_start_of_what_was_claimed_before_the_crash_does_not_show_that_the_database_is_back(history: History):
    history.fault("postgresKill", "postgres", 10, 12)
    history.run("claimed before", 9, (12.1, "w1", 1))
    history.run("handed in since", 13, (18.5, "w1", 2))
    history.run("due since", 3, (19, "w1", 3), scheduled=12.5)
    assert history.recovery(DATABASE) == {"faults": 1, "cases": 1, "bound": 5.0, "worst": 6.5}


def test_a_recovery_is_too_slow_beyond_its_bound_only():
    found = {"a": {"cases": 1, "worst": 5.0, "bound": 5.0}, "b": {"cases": 0, "bound": 5.0}}
    assert not too_slow(found)
    assert too_slow(found | {"c": {"cases": 2, "worst": 5.01, "bound": 5.0}}) == ["c: 5.01 s, and 5 s is promised"]


def shares_of_a_backlog(history: History) -> list[float]:
    """Where one tenant gets three times as much as another for ten seconds, all of it late, and more is left."""
    begin = 20 - BEGIN % 10
    for number in range(360):
        for phase in (Phase.START, Phase.END):
            at = begin + number / 20
            history.effect(phase, at, f"run_{number}", "w1", number, None, BEGIN + at - 12)
            history.evidence.effects[-1].tenant = "acme" if number % 4 else "globex"
    return shares(history)


def shares(history: History) -> list[float]:
    case = Case(history.evidence)
    return [round(each, 3) for each in fair_shares(case, first_starts(case))]


@pytest.mark.parametrize(("weight", "index"), [(1, 0.8), (3, 1.0)])
def test_shares_are_compared_by_weight_where_several_have_a_backlog(history: History, weight: int, index: float):
    history.call("weighTenant", 0, body={"weight": weight})
    assert shares_of_a_backlog(history) == [index]


@pytest.mark.parametrize(("stopped", "shares"), [(["scheduler-0"], [0.8]), (["scheduler-0", "scheduler-1"], [])])
def test_a_weight_counts_when_a_scheduler_has_ranked_by_it_what_waits(
    history: History, stopped: list[str], shares: list[float]
):
    history.evidence.settings["schedulers"] = ["scheduler-0", "scheduler-1"]
    for name in stopped:
        history.fault("stop", name, 1, 19)
    history.call("weighTenant", 2, body={"weight": 1})
    assert shares_of_a_backlog(history) == shares


@pytest.mark.parametrize(("worker", "found"), [(["w1"], []), ([], [0.8])])
def test_shares_are_compared_where_all_workers_are_well(history: History, worker: list[str], found: list[float]):
    history.fault("stop", "worker-1" if worker else "api-1", 1, 2, *worker)
    assert shares_of_a_backlog(history) == found


def test_who_got_all_that_it_wanted_is_short_of_nothing(history: History):
    """A few runs that had waited for a worker to be back, beside many."""
    begin = 20 - BEGIN % 10
    for number in range(360):
        for phase in (Phase.START, Phase.END):
            at = begin + number / 20
            history.effect(phase, at, f"run_{number}", "w1", number, None, BEGIN + at - 12)
            history.evidence.effects[-1].tenant = "globex" if number % 4 == 0 and number < 100 else "acme"
    assert shares(history) == []


def test_without_a_backlog_nobody_is_short_of_anything(history: History):
    begin = 20 - BEGIN % 10
    for number in range(120):
        at = begin + number / 20
        for phase in (Phase.START, Phase.END):
            history.effect(phase, at, f"run_{number}", "w1", number, None, BEGIN + at - (number % 3))
            history.evidence.effects[-1].tenant = "acme" if number % 4 else "globex"
    case = Case(history.evidence)
    assert fair_shares(case, first_starts(case)) == []


def test_a_duplicate_belongs_to_the_fault_that_cost_its_run_the_worker(history: History):
    history.fault("poison", "worker-0", 10, 10, "w1")
    history.run("run_1", 5, (6, "w1", 1), (90, "w2", 2))
    duplicates = measures(Case(history.evidence))["L5"]
    assert (duplicates["quiet"], duplicates["around faults"]) == (0, 1)


def test_a_duplicate_that_no_fault_explains_is_one_of_quiet_times(history: History):
    history.fault("poison", "worker-1", 10, 10, "w2")
    history.run("run_1", 5, (6, "w1", 1), (90, "w2", 2))
    duplicates = measures(Case(history.evidence))["L5"]
    assert (duplicates["quiet"], duplicates["around faults"]) == (1, 0)


def test_a_call_is_answered_by_either_api_or_not_at_all(history: History):
    history.call("createRun", 10, outcome=Outcome.FAIL)
    history.call("createRun", 10.1, repeats=1, status=201)
    history.call("createRun", 20, outcome=Outcome.FAIL)
    history.call("createRun", 30, outcome=Outcome.UNKNOWN, abandoned=True)
    availability = measures(Case(history.evidence))["L6"]
    assert (availability["calls"], availability["answered"], availability["at the first try"]) == (2, 0.5, 0.0)


@pytest.mark.parametrize(("target", "calls"), [("api-1", 0), ("all", 0), ("api-0", 2), ("worker-1", 2)])
def test_who_asks_only_an_api_that_a_fault_is_on_learns_nothing_of_the_other(history: History, target: str, calls: int):
    """Whether it was answered or not: else only the bad ones would be left out."""
    history.fault("rollingRestart" if target == "all" else "partition", target, 5, 15)
    history.call("createRun", 10, outcome=Outcome.UNKNOWN, status=503, api=1)
    history.call("createRun", 11, status=201, api=1)
    availability = measures(Case(history.evidence))["L6"]
    assert (availability["calls"], availability["answered"]) == (calls, calls / 4)
