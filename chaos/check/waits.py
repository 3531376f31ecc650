"""How late runs began: from when on nothing but the product kept each of them from its first start."""

from collections.abc import Callable
from typing import NamedTuple

from chaos.check.case import Case
from chaos.check.facts import Job, Run
from chaos.oracle import seconds
from chaos.records import QUEUES, SIDE, Effect
from chaos.timeline import Gate


class Wait(NamedTuple):
    """A first start: when, how late, whose."""

    at: float
    late: float
    tenant: str


def first_starts(case: Case) -> list[Wait]:
    """In order of time."""
    waits = _waits_for_others(case)
    return sorted(
        Wait(start.at, max(0.0, start.at - due), start.tenant)
        for run in case.runs.values()
        if run.starts and not waits(start := run.starts[0]) and (due := due_of(case, run)) is not None
    )


def in_quiet(case: Case, wait: Wait) -> Wait | None:
    """What is known of a run whose time came when no fault was on, nor its aftermath; None of all others.

    If it had not begun when the next fault struck, it is known to have been as late as that, and no more is told.
    """
    due = wait.at - wait.late
    if not case.faults.quiet(due):
        return None
    struck = case.faults.next_after(due)
    return wait if wait.at <= struck else Wait(struck, struck - due, wait.tenant)


def due_of(case: Case, run: Run) -> float | None:
    """When a run that has begun should have; None if its owner held it back, or nobody knows any more.

    The instants of a back-fill are past by intent, and so may be that of a one-time job: none is late before it is.
    """
    start = run.starts[0]
    due = start.scheduled_at or run.scheduled
    if due is None:
        return None
    if run.submission is not None:
        due = max(due, run.submission.not_before)
    if run.job is not None and (job := case.jobs.get(run.job)) is not None:
        own = None if run.id in job.backfilled else _due_of_job(job, run, due)
        if own is None:
            return None
        due = own
    return None if held_back(case, run, due, start.at) else due


def held_back(case: Case, run: Run, since: float, until: float) -> bool:
    """Whether its owner may have kept a run from beginning: its queue is paused now and then, or its job was."""
    if run.submission is not None and run.submission.body.get("queue") == SIDE:
        return True
    job = case.jobs.get(run.job or "")
    if job is None:
        return False
    return any(each is not None and each.gate is not Gate.OPEN for each in job.timeline.between(since, until))


def _due_of_job(job: Job, run: Run, due: float) -> float | None:
    if run.submission is not None:
        return due
    if any(each.one_time for each in job.definitions):
        made = [seconds(job.row["createdAt"])] if job.row is not None else []
        return max([due, *made])
    if run.due is None and any(each.jitter for each in job.definitions):
        return None  # it had a place of its own, which its retry has taken
    return max(due, run.due or 0.0)


def _waits_for_others(case: Case) -> Callable[[Effect], bool]:
    """Whether a run may have to wait for other runs, and not only for its time: then it is not late."""
    crowds = case.evidence.settings.get("crowds", {})
    rows = (row for rows_ in case.evidence.dump.jobs.values() for row in rows_)
    jobs = {row["jobId"] for row in rows if row.get("concurrency") or row.get("overlap") in QUEUES}
    jobs |= case.graphs.needs.keys()

    def waits(start: Effect) -> bool:
        return start.concurrency_key is not None or start.tenant in crowds or start.job in jobs

    return waits
