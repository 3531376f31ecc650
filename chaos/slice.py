"""The shortest story of a finding: what was recorded about its run and its job, in order of time, around the moment."""

from collections.abc import Iterator
from typing import Any

import msgspec

from chaos.check import Case, Finding
from chaos.oracle import seconds
from chaos.records import Operation

LONGEST = 40
"""Events that one finding shows."""
_FAULTS_AROUND = 60.0
"""Seconds before the first and after the last event within which faults belong to the story."""

Event = tuple[float, str, dict[str, Any]]


def story(case: Case, finding: Finding) -> list[str]:
    """One line per event; what is far from the finding goes first when there are too many."""
    events = sorted((*_of_run(case, finding), *_of_job(case, finding)), key=lambda event: event[0])
    if events:
        first, last = events[0][0] - _FAULTS_AROUND, events[-1][0] + _FAULTS_AROUND
        faults = [each for each in case.faults.all if each.began <= last and each.ended >= first]
        events += [(each.began, "fault", _plain(each)) for each in faults]
    if finding.at is not None and len(events) > LONGEST:
        moment = finding.at
        events = sorted(events, key=lambda event: abs(event[0] - moment))
    shown = sorted(events[:LONGEST], key=lambda event: event[0])
    left_out = [f"… {len(events) - len(shown)} more"] if len(events) > len(shown) else []
    return [f"{at:.6f} {kind} {msgspec.json.encode(what).decode()}" for at, kind, what in shown] + left_out


def _of_run(case: Case, finding: Finding) -> Iterator[Event]:
    run = case.runs.get(finding.run or "")
    if run is None:
        return
    for effect in (*run.starts, *run.beats, *run.ends, *run.rejected):
        yield effect.at, f"ledger {effect.phase}", _plain(effect)
    if run.submission is not None:
        yield _operation(run.submission.operation)
    if run.row is not None:
        yield seconds(run.row["finishedAt"] or run.row["createdAt"]), "api run", run.row
    for row in run.attempts:
        yield seconds(row["finishedAt"] or row["scheduledAt"]), "api attempt", row


def _of_job(case: Case, finding: Finding) -> Iterator[Event]:
    job = case.jobs.get(finding.job or "")
    if job is None:
        return
    for operation in job.operations:
        yield _operation(operation)
    if job.row is not None:
        yield case.evidence.dump.taken, "api job", job.row
    for run in job.runs:
        if run.id != finding.run and run.row is not None and run.scheduled is not None:
            yield run.scheduled, "api run", run.row


def _operation(operation: Operation) -> Event:
    return operation.invoked, f"client {operation.kind} {operation.outcome}", _plain(operation)


def _plain(record: msgspec.Struct) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(record)
    return plain
