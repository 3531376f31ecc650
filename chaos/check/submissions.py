"""S1, S2, S4: what was acknowledged is there, comes to an end, and is there once."""

from collections import Counter
from collections.abc import Iterator

from chaos.check.calls import apart
from chaos.check.case import Case
from chaos.check.facts import Call, Job, Run
from chaos.check.finding import Finding
from chaos.check.halts import done_by
from chaos.check.newest import explains
from chaos.records import Operation, Outcome, digest
from chaos.timeline import Gate, agrees

TERMINAL = frozenset({"completed", "failed", "cancelled", "skipped", "missed"})
_FAILINGS = frozenset({"failed", "timed_out", "lost", "unknown"})
_CANCELS = frozenset({"cancelRun", "cancelJob", "deleteJob"})
"""Calls that cancel runs. An edit is none of them: what it takes back of a one-time job leaves no row."""


def lost_submissions(case: Case) -> Iterator[Finding]:
    """S1: an acknowledged run or job is nowhere, or a job has lost an acknowledged change."""
    for run in case.runs.values():
        if run.row is None and run.submission is not None and not run.starts and not run.rejected:
            yield Finding(
                check="S1",
                rule="run",
                message="acknowledged, and neither the API nor the ledger has heard of it",
                run=run.id,
                job=run.job,
                at=run.submission.operation.completed,
            )
    for job in case.jobs.values():
        if job.row is None:
            if not any(map(_purges, job.operations)):
                yield Finding(check="S1", rule="job", message="acknowledged, and the API does not show it", job=job.id)
        elif job.timeline.judged and not any(agrees(job.row, each) for each in job.timeline.last if each is not None):
            yield Finding(
                check="S1",
                rule="change",
                message="is not what its owner was told: an acknowledged change is lost, or one nobody made is there",
                job=job.id,
                numbers={"shown": {name: job.row.get(name) for name in ("status", "version", "updatedAt")}},
            )


def lost_runs(case: Case) -> Iterator[Finding]:
    """S2: a run that is due has not come to an end, or to one that nothing explains."""
    if not case.evidence.dump.quiet:
        yield Finding(check="S2", rule="quiet", message="work was still going on when patience ran out")
    for run in case.runs.values():
        status = run.status
        if status == "completed":  # S12 asks whether that is true
            continue
        if status is None:
            if run.submission is not None and run.starts and not run.ends:
                yield _lost(run, "gone", "began, never ended, and the API does not know it any more")
        elif status not in TERMINAL:
            if not _may_wait(case, run):
                yield _lost(run, "unfinished", f"is still {status} although it was due before the cut-off")
        elif status == "failed" and not _has_failed(run):
            yield _lost(run, "unexplained", "is failed, and no attempt on record failed")
        elif status == "cancelled" and not _was_cancelled(case, run):
            yield _lost(run, "unexplained", "is cancelled, and nobody cancelled it")


def left_behind(case: Case) -> Iterator[Finding]:
    """S2: it was somebody's turn, and nobody called."""
    if behind := case.evidence.left_behind:
        message = f"{behind} runs whose turn had come were called by nobody, until the sweeper found them"
        yield Finding(check="S2", rule="left behind", message=message)
    if uncalled := case.evidence.dump.uncalled:
        message = f"in {uncalled} lines there was room for somebody who stood there, and nobody had called it"
        yield Finding(check="S2", rule="left behind", message=message)


def doubled_keys(case: Case) -> Iterator[Finding]:
    """S4: one idempotency key made two resources."""
    for call in case.calls:
        made = {_resource(each.answer) for each in call.operations if each.outcome is Outcome.OK and each.answer}
        if len(made) > 1:
            yield Finding(
                check="S4",
                rule="key",
                message=f"the key {call.first.key!r} of {call.first.tenant} made {len(made)} resources",
                run=next((name for name in sorted(made) if name.startswith("run")), None),
                job=call.first.job or next((name for name in sorted(made) if name.startswith("job")), None),
                numbers={"resources": sorted(made)},
            )
    yield from _unasked_jobs(case)


def unasked_runs(case: Case) -> Iterator[Finding]:
    """S4, S5, S26: an ad-hoc run that no acknowledged and no unanswered call explains."""
    unsure, sure, refused = _handed_in(case.calls)
    left = sum(unsure.values())
    inside = [call.first for call in case.calls if call.first.kind == "submitInside"]
    taken_back = {(each.answer or {}).get("runId") for each in inside if each.outcome is Outcome.FAIL}
    for run in case.runs.values():
        if run.job is not None or run.submission is not None:
            continue
        if run.id in taken_back:
            message = "was handed in inside a transaction that was rolled back, and is there"
            yield Finding(check="S5", rule="rolled back", message=message, run=run.id)
            continue
        payload = next((each.payload for each in run.starts if each.payload), None)
        if payload is None and left:
            left -= 1
        elif payload is not None and unsure[payload]:
            unsure[payload] -= 1
            left -= 1
        elif payload is not None and payload in sure:
            yield Finding(
                check="S4", rule="run", message="is a second run of a call that was acknowledged once", run=run.id
            )
        elif payload is not None and payload in refused:
            yield Finding(check="S26", rule="refused", message="its call was refused, and it is there", run=run.id)
        else:
            yield Finding(check="S5", rule="unknown", message="nobody handed this run in", run=run.id)


def _unasked_jobs(case: Case) -> Iterator[Finding]:
    calls = [each for call in case.calls for each in apart(call)]
    names = {(each.first.tenant, (each.first.body or {}).get("name")): each for each in calls}
    for row in case.phantom_jobs:
        call = names.get((row["tenant"], row["name"]))
        if call is not None and call.refused:
            yield Finding(
                check="S26", rule="refused", message="its call was refused, and it is there", job=row["jobId"]
            )
        elif call is not None:
            message = f"is a second job of the call that made {row['name']!r}"
            yield Finding(check="S4", rule="job", message=message, job=row["jobId"])
        else:
            yield Finding(check="S5", rule="job", message="nobody created this job", job=row["jobId"])


def _purges(call: Operation) -> bool:
    return call.kind == "deleteJob" and bool((call.body or {}).get("purge")) and call.outcome is not Outcome.FAIL


def _lost(run: Run, rule: str, message: str) -> Finding:
    return Finding(check="S2", rule=rule, message=message, run=run.id, job=run.job, at=run.scheduled)


def _may_wait(case: Case, run: Run) -> bool:
    due = run.moment("dueAt") or run.scheduled or 0.0
    job = case.jobs.get(run.job or "")
    return due >= case.cutoff or (job is not None and (_may_be_closed(job) or case.graphs.may_wait(run)))


def _may_be_closed(job: Job) -> bool:
    return any(each is not None and each.gate is Gate.PAUSED for each in job.timeline.last)


def _has_failed(run: Run) -> bool:
    return any(each["status"] in _FAILINGS for each in run.attempts)


def _was_cancelled(case: Case, run: Run) -> bool:
    job = case.jobs.get(run.job or "")
    ended = run.moment("finishedAt")
    own = case.cancels.get(run.id, [])
    if job is not None and ended is not None and explains(job, run, ended + case.bounds.clock):
        return True
    return any(
        each.kind in _CANCELS and each.outcome is not Outcome.FAIL and _may_have_cancelled(case, each, run, ended)
        for each in (own if job is None else [*own, *job.operations])
    )


def _may_have_cancelled(case: Case, call: Operation, run: Run, ended: float | None) -> bool:
    """Whether the run was there for the call to end, and did end with it.

    What waits ends in the call's own transaction. What a worker holds is asked to stop: that is over when the worker
    has said so, or its lease has ended and a scheduler has taken the run from it.
    """
    bounds = case.bounds
    over = call.completed + (bounds.linger if call.outcome is Outcome.UNKNOWN else 0.0) + bounds.clock
    if (run.moment("createdAt") or 0.0) > over:
        return False
    if ended is None:
        return True
    stopped = done_by(case.faults, bounds, over, bounds.stop + bounds.straggler)
    return call.invoked - bounds.clock <= ended and (ended <= stopped or ended <= _told_by(case, run, over, stopped))


def _told_by(case: Case, run: Run, asked: float, stopped: float) -> float:
    """When whoever held it could say that it is over.

    A worker that loses much of what it says keeps its lease, and one that is cut off may keep locks that others need.
    """
    by = stopped
    for fault in sorted(
        (each for name in _holders(case, run) for each in case.faults.upon(name)), key=lambda each: each.began
    ):
        if asked <= fault.ended and fault.began <= by:
            by = max(by, fault.ended + case.bounds.stop + case.bounds.straggler)
    return by


def _holders(case: Case, run: Run) -> set[str | None]:
    """By what its handlers said; and who had it last, whose own name is known from what else it did."""
    last = (run.row or {}).get("workerId")
    rows = (row for rows in case.evidence.dump.attempts.values() for row in rows if last and row["workerId"] == last)
    return {last, *(case.worker_of(start) for start in run.starts), *(case.holder_of(row["fence"]) for row in rows)}


def _resource(answer: dict[str, object]) -> str:
    names = (answer.get(name) for name in ("operationId", "jobId", "jobIds", "runId", "runIds"))
    return str(next((name for name in names if name), None))


def _handed_in(calls: list[Call]) -> tuple[Counter[str], set[str], set[str]]:
    """Payloads of ad-hoc runs whose call nobody answered, of those that were acknowledged, and that were refused."""
    unsure: Counter[str] = Counter()
    sure: set[str] = set()
    refused: set[str] = set()
    for call in calls:
        first = call.first
        if first.kind in {"createRun", "createRuns", "submitInside"}:
            body = first.body or {}
            digests = [digest(each.get("payload")) for each in body.get("runs", [body])]
            (unsure if call.unsure else sure if call.answered else refused).update(digests)
    return unsure, sure, refused
