"""When the checker says that a run was given up too early, and when not."""

from typing import Any

import pytest

from chaos.check import Case
from chaos.check.retries import given_up_early
from chaos.records import Dump, Evidence, Operation, Outcome
from chaos.synthetic.world import BEGIN, rfc3339

EARLY = "gave up early"


def rules(
    attempts: str,
    *,
    status: str = "failed",
    replayed: tuple[float, int] | None = None,
    kind: str = "OnPurpose",
    job: list[dict[str, Any]] | None = None,
    **body: Any,
) -> list[str]:
    """What S2 says of a run with these attempts, one a second; `job`: its definitions, one after the other."""
    rows = [
        {
            "runId": "run_1",
            "jobId": None,
            "fence": number,
            "attempt": number,
            "status": ended,
            "errorClass": kind if ended in {"failed", "timed_out"} else None,
            "workerId": "wrk_1",
            "startedAt": rfc3339(BEGIN + number - 0.5),
            "finishedAt": rfc3339(BEGIN + number),
        }
        for number, ended in enumerate(attempts.split(), 1)
    ]
    at = rfc3339(BEGIN)
    times = {"scheduledAt": at, "dueAt": at, "createdAt": at, "finishedAt": rfc3339(BEGIN + len(rows))}
    run = {"runId": "run_1", "jobId": "job_1" if job else None, "status": status, "attempts": len(rows), **times}
    dump = Dump(taken=BEGIN + 900, jobs={}, runs={"acme": [run]}, attempts={"acme": rows})
    if replayed is not None:
        at_, spent = replayed
        dump.decided = {"run_1": [{"deed": "replayed", "at": BEGIN + at_, "attempts": spent, "by": "hand"}]}
    common: dict[str, Any] = {"client": 1, "tenant": "acme", "outcome": Outcome.OK}
    calls = [("createRun", None, {"handler": "quick", "payload": 1, **body}, {"runId": "run_1"})]
    if job:
        first, *changes = job
        made = {"jobId": "job_1", **first}
        calls = [("createJob", None, {"name": "one", **first}, made), *(("changeJob", "job_1", c, {}) for c in changes)]
    operations = [
        Operation(number=n, kind=k, job=j, body=b, answer=a, invoked=BEGIN + n, completed=BEGIN + n + 0.1, **common)
        for n, (k, j, b, a) in enumerate(calls, 1)
    ]
    case = Case(Evidence(seed=1, operations=operations, effects=[], faults=[], dump=dump))
    return [each.rule for each in given_up_early(case, case.runs["run_1"])]


@pytest.mark.parametrize(
    ("attempts", "retries", "said"),
    [
        ("failed", 0, []),
        ("failed", 3, [EARLY]),
        ("failed failed failed", 3, [EARLY]),
        ("failed timed_out failed failed", 3, []),
        ("failed lost snoozed released", 1, [EARLY]),
        ("failed lost failed", 1, []),
    ],
)
def test_a_run_is_given_up_when_all_its_retries_are_used(attempts: str, retries: int, said: list[str]):
    assert rules(attempts, maxRetries=retries) == said


def test_three_retries_are_the_default_and_none_if_delivered_at_most_once():
    assert rules("failed failed failed") == [EARLY]
    assert rules("failed", delivery="atMostOnce") == []


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("Permanent", []),
        ("http:404", []),
        ("refused", []),
        ("http:409", [EARLY]),
        ("http:500", [EARLY]),
        ("timeout", [EARLY]),
    ],
)
def test_what_is_permanent_is_not_tried_again(kind: str, said: list[str]):
    assert rules("failed", kind=kind) == said


def test_a_rule_for_one_kind_of_error_may_allow_fewer():
    assert rules("failed", maxRetries=3, retry=[{"on": ["ValueError"], "never": True}]) == []
    assert rules("failed", maxRetries=3, retry=[{"on": ["ValueError"], "maxRetries": 1}]) == [EARLY]


def test_who_was_there_when_three_workers_died_is_quarantined():
    assert rules("lost lost lost") == []
    assert rules("lost lost") == [EARLY]
    assert rules("lost lost lost failed") == [EARLY]


def test_every_replay_gives_all_retries_anew():
    assert rules("failed failed failed failed", maxRetries=1, replayed=(2.5, 2)) == []
    assert rules("failed failed failed", maxRetries=1, replayed=(2.5, 2)) == [EARLY]
    assert rules("failed completed", status="completed", maxRetries=1, replayed=(1.5, 1)) == [EARLY]
    assert rules("failed failed completed", status="completed", maxRetries=1, replayed=(2.5, 2)) == []


def test_what_ends_in_the_moment_of_a_replay_belongs_to_the_turn_that_its_number_says():
    assert rules("failed failed failed failed", maxRetries=1, replayed=(3.0, 2)) == []
    assert rules("failed failed failed failed", maxRetries=1, replayed=(2.0, 2)) == []
    assert rules("failed failed failed failed", maxRetries=1, replayed=(2.0, 1)) == [EARLY]


def test_a_job_may_have_allowed_fewer_when_the_run_was_made():
    assert rules("failed", job=[{"maxRetries": 3}]) == [EARLY]
    assert rules("failed", job=[{"maxRetries": 3}, {"maxRetries": 0}]) == []


def test_only_what_is_delivered_at_most_once_ends_as_unknown():
    assert rules("unknown") == ["unknown"]
    assert rules("unknown", delivery="atMostOnce") == []
