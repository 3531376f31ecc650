"""S12: the end of an attempt on record is that which its handler came to, with its number, its worker and its time."""

import math
from collections.abc import Iterator
from typing import Any, Final

from chaos.check.case import Case
from chaos.check.facts import Run
from chaos.check.finding import Finding
from chaos.check.poison import poisonous
from chaos.oracle import seconds
from chaos.records import BOOKING, Effect

_BY_ITSELF: Final = frozenset({"completed", "failed"})
"""Endings that follow from what the handler did, and from nothing else."""
_TAKEN: Final = frozenset({"lost", "unknown"})
"""Endings that only the loss of the worker explains."""
_COUNTED: Final = frozenset({"completed", "failed", "timed_out"})
"""Endings that have spent an attempt for certain; another may be on record under the number of those spent before."""
_NEAR: Final = 0.5
"""Seconds before its time-out at which an end may come too late to be heard, on a busy machine."""


def false_ends(case: Case, run: Run) -> Iterator[Finding]:
    """An attempt ended otherwise than its handler said, or at a time at which that cannot have been known."""
    if not run.attempts:
        yield from _ended_in_advance(case, run)
        return
    for row in run.attempts:
        start = next((each for each in run.starts if each.fence == row["fence"]), None)
        if row["finishedAt"] is None:
            continue
        if start is None:
            yield from _lost_unheard(case, run, row)
            continue
        yield from _misnumbered(run, row, start)
        ends = [each for each in run.ends if each.fence == row["fence"]]
        if not row.get("lateResult"):
            yield from _contradicted(case, run, row, start, ends)
            yield from _mistimed(case, run, row, start, ends)


def shared_claims(case: Case) -> Iterator[Finding]:
    """One claim belongs to one worker, and one worker is one process."""
    boots: dict[int | str, str] = {}
    workers = {row["fence"]: row["workerId"] for rows in case.evidence.dump.attempts.values() for row in rows}
    for run in case.runs.values():
        for start in run.starts:
            for name in (start.fence, workers.get(start.fence)):
                if start.worker and name and boots.setdefault(name, start.worker) != start.worker:
                    message = f"{name} is both {boots[name]} and {start.worker}"
                    yield _about(run, "worker", message, start.at)


def _misnumbered(run: Run, row: dict[str, Any], start: Effect) -> Iterator[Finding]:
    if row["attempt"] != start.attempt - (row["status"] not in _COUNTED and row["attempt"] < start.attempt):
        message = (
            f"fence {start.fence} was told that it is attempt {start.attempt}, and is on record as {row['attempt']}"
        )
        yield _about(run, "number", message, start.at)


def _contradicted(case: Case, run: Run, row: dict[str, Any], start: Effect, ends: list[Effect]) -> Iterator[Finding]:
    """Whoever ended well is completed, and whoever failed is not, unless something came between its word and that."""
    status, told = row["status"], {each.failed for each in ends}
    if status == "completed" and told == {True}:
        yield _about(run, "end", f"fence {start.fence} failed, and is on record as completed", ends[0].at)
    heard = max((each.at for each in ends), default=math.inf) + case.bounds.straggler
    went_on = any(each.fence > start.fence for each in run.starts)  # S7 asks why
    broken_off = status == "unknown" and not ends  # by a worker that was told to stop, which is no fault
    if status in _TAKEN and not went_on and not broken_off and not _was_taken(case, run, row, start, heard):
        message = f"fence {start.fence} is on record as {status}, and nothing had happened to its worker"
        yield _about(run, "end", message, start.at)
    if False in told and status not in _TAKEN and not _may_differ(case, run, status, start, ends):
        yield _about(run, "end", f"fence {start.fence} ended well, and is on record as {status}", ends[0].at)


def _lost_unheard(case: Case, run: Run, row: dict[str, Any]) -> Iterator[Finding]:
    """Its handler had said nothing when its worker was lost, and was perhaps never called."""
    finished = seconds(row["finishedAt"])
    since = finished - case.faults.aftermath if row["startedAt"] is None else seconds(row["startedAt"])
    explains = case.faults.took if row["status"] == "lost" else case.faults.held
    if row["status"] in _TAKEN and not explains(case.holder_of(row["fence"]), since, finished):
        message = f"fence {row['fence']} is on record as {row['status']}, and nothing had happened to its worker"
        yield _about(run, "end", message, finished)


def _may_differ(case: Case, run: Run, status: str, start: Effect, ends: list[Effect]) -> bool:
    """Whether an attempt whose handler ended well may be on record as this."""
    bodies, last = case.bodies_of(run), max(each.at for each in ends)
    if status in {"completed", "cancelled"}:  # by whom and when it was cancelled is asked by S2 and S21
        return True
    if status == "timed_out":
        limit = min((float(each.get("timeoutSeconds", 300)) for each in bodies), default=0.0)
        if last - start.at > limit - _NEAR:
            return True
    if status == "failed" and any(each.get("handler") in BOOKING for each in bodies):
        return True  # it says so before its transaction commits, which may fail; S19 looks at what it wrote
    return _was_struck(case, run, start, last + case.bounds.straggler)


def _was_taken(case: Case, run: Run, row: dict[str, Any], start: Effect, heard: float) -> bool:
    """Whether something explains that nobody knows how it ended; and of who is lost, that its worker was lost too."""
    finished = seconds(row["finishedAt"])
    if not _was_struck(case, run, start, min(heard, finished)):
        return False
    return (
        row["status"] != "lost" or poisonous(case, run) or case.faults.took(case.worker_of(start), start.at, finished)
    )


def _was_struck(case: Case, run: Run, start: Effect, until: float) -> bool:
    """Whether what happened to its worker can have kept the attempt's end from being heard."""
    return poisonous(case, run) or case.faults.held(case.worker_of(start), start.at, until)


def _mistimed(case: Case, run: Run, row: dict[str, Any], start: Effect, ends: list[Effect]) -> Iterator[Finding]:
    """By the database's clock, which no fault of these runs sets: nothing ends before its handler has said so."""
    finished, clock = seconds(row["finishedAt"]), case.bounds.clock
    if row["status"] in _BY_ITSELF and ends and min(each.at for each in ends) > finished + clock:
        late = min(each.at for each in ends) - finished
        message = f"fence {start.fence} was {row['status']} {late:.3f} s before its handler came to its end"
        yield _about(run, "in advance", message, finished)


def _ended_in_advance(case: Case, run: Run) -> Iterator[Finding]:
    """The same of a run whose only attempt nobody has looked into."""
    finished = run.moment("finishedAt")
    if run.status == "completed" and finished is not None and len(run.starts) == 1 == len(run.ends):
        late = run.ends[0].at - finished
        if late > case.bounds.clock:
            yield _about(run, "in advance", f"was completed {late:.3f} s before its handler came to its end", finished)


def _about(run: Run, rule: str, message: str, at: float | None = None) -> Finding:
    return Finding(check="S12", rule=rule, message=message, run=run.id, job=run.job, at=at)
