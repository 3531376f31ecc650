"""S3: an acknowledged back-fill runs what it was asked to make up for, unless its job's owner came between."""

from collections.abc import Iterator
from typing import Any

from chaos.check.case import Case
from chaos.check.facts import Call, Job, Run
from chaos.check.finding import Finding
from chaos.check.occurrences import Occurrences
from chaos.oracle import MICRO, instant
from chaos.records import SIDE, Operation, Outcome
from chaos.timeline import CHANGES


def left_unfilled(case: Case, found: Occurrences) -> Iterator[Finding]:
    for call in case.backfills.get(found.job.id, ()):
        if (answer := call.answered) is not None:
            yield from _left_out(case, found, call, answer)


def _left_out(case: Case, found: Occurrences, call: Call, answer: Operation) -> Iterator[Finding]:
    job, told = found.job, answer.answer or {}
    progress = told.get("progress")
    over = told["operationId"] in case.evidence.dump.filled
    if progress is None or not (over or _had_its_time(case, job, call, answer.completed, progress["total"])):
        return
    made = {case.runs[run].instant for run in job.backfills.get(told["operationId"], ())}
    wanted = _range(job, answer.body or {})
    if not wanted:
        return
    # Whoever was there already when its turn came is not made twice.
    there = {at for at in wanted if any(_goes_on(run, call.first.invoked) for run in found.records.get(at, ()))}
    if (answer.body or {})["reprocess"] == "all":
        if lacking := sorted(wanted - made - there):
            yield _about(job, lacking[0], f"and {len(lacking) - 1} others were to be made up for, and were not")
    elif len(made) + len(there - made) < progress["total"] - progress["skipped"]:
        message = f"and others of its range: {progress['total'] - progress['skipped']} were to be made up for, and "
        yield _about(job, min(wanted), f"{message}{len(made)} were")


def _had_its_time(case: Case, job: Job, call: Call, told: float, count: int) -> bool:
    """Whether it must be through, since nobody closed or changed the job in all that time."""
    bounds, body = case.bounds, call.first.body or {}
    turns = -(-count // body["concurrency"])
    over = case.faults.postponed(told + bounds.lateness + turns * bounds.duration)
    if over > case.cutoff and not case.evidence.dump.quiet:
        return False
    if job.tenant in case.evidence.settings.get("crowds", {}) or any(
        each.get("queue") == SIDE for each in job.bodies()
    ):
        return False  # what may have to wait for others, nobody can say for how long
    return job.timeline.judged and not any(
        each.kind in CHANGES and each.outcome is not Outcome.FAIL and call.first.invoked <= each.completed
        and each.invoked <= over
        for each in job.operations
    )  # fmt: skip


def _range(job: Job, body: dict[str, Any]) -> set[int]:
    """The instants that it is about; none if nobody knows which definition they are of."""
    rules = {each for each in job.definitions if each.recurring}
    if len(rules) != 1:
        return set()
    first, last = instant(body["from"]), instant(body["until"])
    return {at for at in rules.pop().nominal(first / MICRO - 1, last / MICRO) if first <= at <= last}


def _goes_on(run: Run, since: float) -> bool:
    """Whether it may have been under way since then."""
    finished = run.moment("finishedAt")
    return finished is None or finished >= since


def _about(job: Job, at: int, message: str) -> Finding:
    told = f"the instant {at / MICRO:.6f} {message}"
    return Finding(check="S3", rule="backfill", message=told, job=job.id, at=at / MICRO)
