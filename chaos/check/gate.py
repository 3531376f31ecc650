"""S20: nothing of a paused queue begins after the instant that the API named, until somebody resumes it."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from chaos.act import SIDE
from chaos.check.case import Case
from chaos.check.facts import Run
from chaos.check.finding import Finding
from chaos.oracle import seconds
from chaos.records import Effect, Operation, Outcome


class Closed(NamedTuple):
    """A time in which the queue was paused beyond doubt, and every worker had to know it."""

    begin: float
    end: float


def closed(case: Case) -> list[Closed]:
    changes = [each for each in case.evidence.operations if each.kind in {"pauseQueue", "resumeQueue"}]
    opened = [each for each in changes if each.kind == "resumeQueue" and each.outcome is not Outcome.FAIL]
    found = []
    for each in changes:
        if each.kind != "pauseQueue" or each.outcome is not Outcome.OK or not (each.answer or {}).get("holdsBy"):
            continue
        answer = each.answer or {}
        holds = min(seconds(answer["holdsBy"]), seconds(answer["pausedAt"]) + case.bounds.lease)
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
    times = closed(case)
    if not times:
        return
    for run in case.runs.values():
        if run.submission is None or run.submission.body.get("queue") != SIDE:
            continue
        for start in run.starts:
            shut = next((each for each in times if each.begin + case.bounds.clock < start.at < each.end), None)
            if shut is not None and not _stood_still(case, start, shut):
                late = start.at - shut.begin
                message = f"began {late:.3f} s after the pause of its queue held"
                yield Finding(check="S20", rule="begun", message=message, run=run.id, at=start.at)


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
