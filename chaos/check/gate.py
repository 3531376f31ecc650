"""S20: nothing of a paused queue or job begins after the instant that the API named, until somebody resumes it."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from chaos.check.case import Case
from chaos.check.facts import Run
from chaos.check.finding import Finding
from chaos.oracle import seconds
from chaos.records import SIDE, Effect, Operation, Outcome


class Closed(NamedTuple):
    """A time in which the queue, or the job, was paused beyond doubt, and every worker had to know it."""

    begin: float
    end: float


def closed(case: Case) -> list[Closed]:
    return _closed(case, case.evidence.operations, "pauseQueue", "resumeQueue")


def _closed(case: Case, operations: list[Operation], pause: str, resume: str) -> list[Closed]:
    opened = [each for each in operations if each.kind == resume and each.outcome is not Outcome.FAIL]
    found = []
    for each in operations:
        if each.kind != pause or each.outcome is not Outcome.OK or not (each.answer or {}).get("holdsBy"):
            continue
        answer = each.answer or {}
        began = seconds(answer["pausedAt"]) if "pausedAt" in answer else each.completed
        holds = min(seconds(answer["holdsBy"]), began + case.bounds.lease)
        if any(_may_still_open(case, other, each) for other in opened):
            continue
        end = min((other.invoked for other in opened if other.completed > each.invoked), default=math.inf)
        if holds < end:
            found.append(Closed(holds, end))
    return found


def _may_still_open(case: Case, resume: Operation, pause: Operation) -> bool:
    """Asked for before the pause, and not answered: it may take effect after it."""
    unsure = resume.outcome is Outcome.UNKNOWN and resume.invoked < pause.completed
    return unsure and resume.completed + case.bounds.linger > pause.invoked


def begun_behind_the_gate(case: Case) -> Iterator[Finding]:
    if times := closed(case):
        for run in case.runs.values():
            if run.submission is not None and run.submission.body.get("queue") == SIDE:
                yield from _begun(case, run, times, "queue")
    for job in case.jobs.values():
        if times := _closed(case, job.operations, "pauseJob", "resumeJob"):
            for run in job.runs:
                yield from _begun(case, run, times, "job")


def _begun(case: Case, run: Run, times: list[Closed], what: str) -> Iterator[Finding]:
    for start in run.starts:
        shut = next((each for each in times if each.begin + case.bounds.clock < start.at < each.end), None)
        if shut is not None and not _stood_still(case, start, shut):
            message = f"began {start.at - shut.begin:.3f} s after the pause of its {what} held"
            yield Finding(check="S20", rule=f"begun of {what}", message=message, run=run.id, job=run.job, at=start.at)


def _stood_still(case: Case, start: Effect, shut: Closed) -> bool:
    """A process that was stopped between its look at the lease and its first word says that word when it goes on."""
    return any(
        fault.kind in {"stop", "stopSupervisor"}
        and fault.target.startswith("worker")
        and fault.began <= shut.begin
        and fault.ended >= start.at - case.bounds.hush
        for fault in case.faults.upon(case.worker_of(start))
    )


def paused_runs(case: Case) -> list[Run]:
    """Those that had to wait for the gate: handed in while it was shut, or before, and begun when it was open again."""
    times = closed(case)
    return [
        run
        for run in case.runs.values()
        if run.submission is not None
        and run.submission.body.get("queue") == SIDE
        and run.starts
        and any(run.submission.operation.completed < each.end <= run.starts[0].at for each in times)
    ]
