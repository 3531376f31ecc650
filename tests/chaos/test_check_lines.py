"""Lines of one: when somebody has left its place though its handler went on, and who came first."""

from typing import Any

import pytest

from chaos.check import Case
from chaos.check.concurrency import limits_broken
from chaos.check.lines import left_place
from chaos.records import Dump, Effect, Evidence, Operation, Outcome, Phase
from chaos.synthetic.world import BEGIN, rfc3339
from few_records import History

STILL = 17.0
"""Seconds for which the first one's worker stood still, just after the handler had begun."""


def rules(*, ended: float, status: str = "cancelled", kept: bool = False) -> list[str]:
    """What S9 says of two of one key: the first is ended by Foliot, which has heard of its start if it `kept` it."""
    began = {"run_1": BEGIN, "run_2": BEGIN + 15.2}
    left = {"run_1": BEGIN + ended, "run_2": BEGIN + 15.9}
    runs = [
        {"runId": run, "jobId": None, "status": told, "attempts": 1, "workerId": "wrk_1", **_times(left[run])}
        for run, told in (("run_1", status), ("run_2", "completed"))
    ]
    attempt = {"runId": "run_1", "jobId": None, "fence": 1, "attempt": 1, "status": "running", "workerId": "wrk_1"}
    attempts = [{**attempt, "startedAt": rfc3339(BEGIN), "finishedAt": None}] if kept else []
    body = {"handler": "strict", "payload": 1, "concurrency": {"limit": 1, "key": "payload.account"}}
    common: dict[str, Any] = {"client": 1, "tenant": "acme", "kind": "createRun", "outcome": Outcome.OK, "body": body}
    operations = [
        Operation(number=n, invoked=BEGIN - 1, completed=BEGIN - 0.9, answer={"runId": run}, **common)
        for n, run in enumerate(began, 1)
    ]
    ends = {"run_1": BEGIN + STILL, "run_2": left["run_2"]}
    effects = _effects({run: (began[run], ends[run]) for run in began})
    dump = Dump(taken=BEGIN + 900, jobs={}, runs={"acme": runs}, attempts={"acme": attempts})
    case = Case(Evidence(seed=1, operations=operations, effects=effects, faults=[], dump=dump))
    return [each.rule for each in limits_broken(case) if each.check == "S9" and each.rule == "limit"]


def _effects(spans: dict[str, tuple[float, float]]) -> list[Effect]:
    """One attempt of each run, by a worker of its own, from its start to its end."""
    return [
        Effect(
            seq=10 * fence + place,
            at=at,
            phase=phase,
            tenant="acme",
            run=run,
            attempt=1,
            fence=fence,
            worker=f"worker-{fence}.1",
            concurrency_key="k",
            payload="",
            nonce=run,
        )
        for fence, (run, span) in enumerate(spans.items(), 1)
        for place, (phase, at) in enumerate(zip((Phase.START, Phase.END), span, strict=True))
    ]


def _times(finished: float, at: float = BEGIN) -> dict[str, str]:
    began = rfc3339(at)
    return {"scheduledAt": began, "dueAt": began, "createdAt": began, "finishedAt": rfc3339(finished)}


def test_who_is_ended_with_its_workers_lease_has_left_its_place():
    assert rules(ended=15.0) == []


@pytest.mark.parametrize("ended", [1.0, 9.0])
def test_who_is_ended_while_its_worker_is_thought_alive_has_not(ended: float):
    assert rules(ended=ended) == ["limit"]


def test_nor_has_one_of_whose_attempt_the_record_says_that_it_goes_on():
    assert rules(ended=15.0, kept=True) == ["limit"]


def order(**when: float) -> list[str]:
    """What S10 says of two of one key. The first call was repeated; the second run came after it, and began before."""
    body = {"handler": "strict", "payload": 1, "concurrency": {"limit": 1, "key": "payload.account"}}
    common: dict[str, Any] = {"client": 1, "tenant": "acme", "kind": "createRun"}
    first = {**common, "key": "one", "body": body | when}
    operations = [
        Operation(number=1, invoked=BEGIN - 9, completed=BEGIN - 8, outcome=Outcome.UNKNOWN, **first),
        Operation(
            number=2, invoked=BEGIN, completed=BEGIN + 0.1, outcome=Outcome.OK, answer={"runId": "run_1"}, **first
        ),
        Operation(
            number=3,
            invoked=BEGIN + 0.5,
            completed=BEGIN + 0.6,
            outcome=Outcome.OK,
            answer={"runId": "run_2"},
            body=body,
            **common,
        ),
    ]
    spans = {"run_2": (BEGIN + 0.7, BEGIN + 0.8), "run_1": (BEGIN + 2.3, BEGIN + 2.4)}
    runs = [
        {
            "runId": run,
            "jobId": None,
            "status": "completed",
            "attempts": 1,
            "workerId": "wrk_1",
            **_times(spans[run][1], at),
        }
        for run, at in (("run_1", BEGIN + 0.05), ("run_2", BEGIN + 0.55))
    ]
    effects = _effects(spans)
    dump = Dump(taken=BEGIN + 900, jobs={}, runs={"acme": runs}, attempts={"acme": []})
    case = Case(Evidence(seed=1, operations=operations, effects=effects, faults=[], dump=dump))
    return [each.rule for each in limits_broken(case) if each.check == "S10"]


def test_who_came_first_must_not_be_overtaken():
    assert order() == ["order"]


def test_whose_time_had_not_come_by_the_call_that_was_answered_may_be():
    """By the first one it had: but nobody knows that it was carried out."""
    assert order(delay=2.0) == []


def test_who_is_let_go_on_and_ends_in_the_same_moment_has_left_its_place_when_it_died():
    history = History()
    history.run("run_1", 1, (1.5, "w1", 1), (3.9, "w1", 5))
    history.attempt("run_1", 1, "failed", 2)
    history.attempt("run_1", 5, "completed", 4, number=2)
    history.evidence.dump.decided = {"run_1": [{"deed": "replayed", "at": BEGIN + 4, "attempts": 1, "by": "hand"}]}
    case = Case(history.evidence)
    assert left_place(case, case.runs["run_1"]) == BEGIN + 2
