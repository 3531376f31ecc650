"""S32: of a job that wants only its newest run, the one before ends when a newer one has come."""

from collections.abc import Iterator
from itertools import pairwise

from chaos.check.cancel import has_stopped
from chaos.check.case import Case
from chaos.check.facts import Job, Run
from chaos.check.finding import Finding

_NONE = frozenset({"skipped", "missed"})


def outlived_by_newer(case: Case) -> Iterator[Finding]:
    """As if its owner had asked for it to stop when the newer one was made."""
    for job in case.jobs.values():
        if not only_newest(job) or job.unsure_by_hand:
            continue
        for older, newer in pairwise(_of_schedule(job)):
            made, asked = older.moment("createdAt"), newer.moment("createdAt")
            if made is None or asked is None or made > asked:
                continue  # it came late, after the newer one: it waits for its turn
            # A run is dated when its number is drawn, a moment before it is there.
            since = asked + case.bounds.straggler
            if (older.moment("finishedAt") or since + 1) > since:
                yield from has_stopped(case, older, since, since + case.bounds.stop, check="S32")


def only_newest(job: Job) -> bool:
    return bool(job.definitions) and all(
        each.recurring and each.overlap == "cancelPrevious" for each in job.definitions
    )


def explains(job: Job, run: Run, ended: float) -> bool:
    """Whether a run that was cancelled had made way for a newer one."""
    return only_newest(job) and any(
        (other.scheduled or 0.0) > (run.scheduled or 0.0) and (other.moment("createdAt") or ended) <= ended
        for other in job.runs
        if other.id not in job.by_hand
    )


def _of_schedule(job: Job) -> list[Run]:
    runs = (run for run in job.runs if run.id not in job.by_hand and run.status not in _NONE)
    return sorted(runs, key=lambda run: run.scheduled or 0.0)


def superseded(case: Case) -> dict[str, int]:
    jobs = [job for job in case.jobs.values() if only_newest(job)]
    return {
        "made way for a newer run": sum(
            bool(run.starts) and run.status == "cancelled" for job in jobs for run in job.runs
        )
    }
