"""When somebody in a line of one has left its place, though its handler went on."""

from typing import Any

import pytest

from chaos.check import Case
from chaos.check.concurrency import limits_broken
from chaos.records import Dump, Effect, Evidence, Operation, Outcome, Phase
from chaos.synthetic.world import BEGIN, rfc3339

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
    effects = [
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
        for fence, run in enumerate(began, 1)
        for place, (phase, at) in enumerate(((Phase.START, began[run]), (Phase.END, ends[run])))
    ]
    dump = Dump(taken=BEGIN + 900, jobs={}, runs={"acme": runs}, attempts={"acme": attempts})
    case = Case(Evidence(seed=1, operations=operations, effects=effects, faults=[], dump=dump))
    return [each.rule for each in limits_broken(case) if each.check == "S9" and each.rule == "limit"]


def _times(finished: float) -> dict[str, str]:
    at = rfc3339(BEGIN)
    return {"scheduledAt": at, "dueAt": at, "createdAt": at, "finishedAt": rfc3339(finished)}


def test_who_is_ended_with_its_workers_lease_has_left_its_place():
    assert rules(ended=15.0) == []


@pytest.mark.parametrize("ended", [1.0, 9.0])
def test_who_is_ended_while_its_worker_is_thought_alive_has_not(ended: float):
    assert rules(ended=ended) == ["limit"]


def test_nor_has_one_of_whose_attempt_the_record_says_that_it_goes_on():
    assert rules(ended=15.0, kept=True) == ["limit"]
