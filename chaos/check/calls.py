"""Which operations are one call, and what an acknowledged call handed in."""

from collections.abc import Container, Iterable
from typing import Any

import msgspec

from chaos.check.facts import Call, Submission
from chaos.oracle import MICRO, duration, seconds
from chaos.records import Operation, Outcome, digest

NO_RUNS = frozenset({"createJob", "createJobs", "backfillJob"})
"""Calls whose answer names no run."""
CREATES = frozenset({"createRun", "createRuns", "runJob", "submitInside"}) | NO_RUNS


def group(operations: Iterable[Operation], kinds: Container[str] = CREATES) -> list[Call]:
    calls: dict[Any, Call] = {}
    for each in operations:
        if each.kind in kinds:
            name: Any = each.number if each.key is None else (each.tenant, each.key)
            if name in calls:
                calls[name].operations.append(each)
            else:
                calls[name] = Call([each])
    return list(calls.values())


def apart(call: Call) -> list[Call]:
    """A call that makes many jobs, as if each had been made by one of its own."""
    if call.first.kind != "createJobs":
        return [call]
    bodies = (call.first.body or {})["jobs"]
    return [Call([_alone(each, number, body) for each in call.operations]) for number, body in enumerate(bodies)]


def _alone(operation: Operation, number: int, body: dict[str, Any]) -> Operation:
    names = (operation.answer or {}).get("jobIds")
    answer = None if names is None else {"jobId": names[number]}
    # What one call makes is there together: numbers of their own would be taken for others.
    return msgspec.structs.replace(operation, kind="createJob", body=body, answer=answer)


def merged(call: Call, answered: Operation) -> Operation:
    """A call that was repeated until it was answered took effect once, at some time since its first try."""
    return Operation(
        number=answered.number,
        client=answered.client,
        tenant=answered.tenant,
        kind=answered.kind,
        invoked=call.first.invoked,
        completed=answered.completed,
        outcome=Outcome.OK,
        body=answered.body,
        answer=answered.answer,
    )


def submitted(operation: Operation) -> list[tuple[str, dict[str, Any]]]:
    answer, body = operation.answer or {}, operation.body or {}
    if operation.kind == "createRuns":
        return list(zip(answer["runIds"], body["runs"], strict=True))
    return [(answer["runId"], body)]


def submission_of(call: Call, operation: Operation, body: dict[str, Any]) -> Submission:
    not_before, due_by = call.first.invoked, operation.completed
    if (run_at := body.get("runAt")) is not None:
        not_before = due_by = seconds(run_at)
    elif (delay := body.get("delay")) is not None:
        not_before += duration(delay) / MICRO
        due_by += duration(delay) / MICRO
    own = operation.kind != "runJob" or "payload" in body
    payload = digest(body.get("payload")) if own else None
    return Submission(operation, body, payload, not_before, due_by, call.first.invoked)
