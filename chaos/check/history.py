"""S11 and S12: what the product tells about a run is true, whole, and told to its owner alone."""

from collections.abc import Iterator
from typing import Any

from chaos.check.case import Case
from chaos.check.command import is_command
from chaos.check.facts import Run
from chaos.check.finding import Finding
from chaos.check.forbidden import REFUSED
from chaos.oracle import MICRO, seconds

_UNCOUNTED = frozenset({"released", "snoozed"})
_NEED_NO_START = frozenset({"released", "lost", "cancelled", "unknown"})
"""The worker may have been gone before the handler said its first word."""


def wrong_tenant(case: Case, run: Run) -> Iterator[Finding]:
    """S11: a run, or what it did, shows up with a tenant that does not own it."""
    owner = case.owner_of(run) or (run.listed[0] if run.listed else None)
    if owner is None:
        return
    strangers = {each.tenant for effects in (run.starts, run.ends) for each in effects if each.tenant != owner}
    strangers.update(tenant for tenant in run.listed if tenant != owner)
    if strangers:
        names = ", ".join(sorted(strangers))
        yield _about(run, "S11", "run", f"belongs to {owner}, and shows up with {names}")


def job_of_another(case: Case) -> Iterator[Finding]:
    """S11: a job is shown to a tenant that does not own it."""
    for tenant, job in case.misplaced:
        yield Finding(check="S11", rule="job", message=f"is shown to {tenant}, or as another's", job=job)


def false_answers(case: Case) -> Iterator[Finding]:
    """S12: the answer to an acknowledged change describes a job that cannot be."""
    for job in case.jobs.values():
        for each in job.timeline.lies:
            message = f"the answer to {each.kind} (operation {each.number}) fits no order in which things can have been"
            yield Finding(check="S12", rule="answer", message=message, job=job.id, at=each.completed)


def false_status(_: Case, run: Run) -> Iterator[Finding]:
    """S12: the run's own row contradicts the ledger."""
    row = run.row
    if row is None:
        if run.submission is not None and run.ends:
            yield _about(run, "S12", "gap", "ran to its end, and the API does not know it")
        return
    if len(run.listed) > len(set(run.listed)):
        yield _about(run, "S12", "repeat", "is listed more than once")
    status = row["status"]
    if status in {"skipped", "missed"} and run.starts:
        yield _about(run, "S12", "ran", f"is {status}, and ran", run.starts[0].at)
    if status == "completed" and not any(not end.failed for end in run.ends):
        yield _about(run, "S12", "success", "is completed, and its handler never came to its end")
    for start in run.starts:
        if start.scheduled_at is not None and run.job is not None:
            label = round(start.scheduled_at * MICRO)
            if abs(label - (run.instant or 0)) > 1:
                yield _about(run, "S12", "label", "was told another scheduledAt than its row has", start.at)


def _only_late(attempt: dict[str, Any]) -> bool:
    """Nobody knew that it had begun before its worker told, too late: it stands for itself, and is not counted.

    Whoever loses a run that was known to have begun says so in an error of its own.
    """
    return bool(attempt.get("lateResult")) and attempt["status"] == "lost" and attempt["errorClass"] is None


def false_attempts(case: Case, run: Run) -> Iterator[Finding]:
    """S12: the attempts on record are not those that the ledger saw."""
    row, rows = run.row, run.attempts
    if row is None or row["finishedAt"] is None or _was_not_read(case, run):
        return
    counted = sum(each["status"] not in _UNCOUNTED and not _only_late(each) for each in rows)
    if counted != row["attempts"]:
        yield _about(run, "S12", "count", f"counts {row['attempts']} attempts, and {counted} are on record")
    fences = {each["fence"] for each in rows}
    if len(fences) < len(rows):
        yield _about(run, "S12", "repeat", "has one attempt on record twice")
    if row["status"] == "completed":
        yield from _success_by(run)
    begun = {each.fence for each in run.starts}
    for each in rows:
        if each["fence"] not in begun and not _may_lack_start(case, each) and not _had_no_word(case, run, each):
            yield _about(run, "S12", "unseen", f"attempt with fence {each['fence']} is on record and never began")
    for start in run.starts:
        if start.fence not in fences and not case.faults.held(
            case.worker_of(start), start.at, start.at + case.bounds.duration
        ):
            yield _about(run, "S12", "unrecorded", f"fence {start.fence} began and is not on record", start.at)


def _was_not_read(case: Case, run: Run) -> bool:
    """Only a sample is looked into of what is plainly well; the attempts of all others are in the dump, or lacking."""
    row = run.row or {}
    well = row["status"] == "completed" and row["attempts"] == 1 and len(run.starts) == 1
    return well and not run.attempts and case.bounds.attempts != "all"


def disordered_times(case: Case, run: Run) -> Iterator[Finding]:
    """S12: something ended before it began, or began before it was made."""
    row = run.row
    if row is None or row["finishedAt"] is None:
        return
    finished, clock = seconds(row["finishedAt"]), case.bounds.clock
    if seconds(row["createdAt"]) > finished + clock:
        yield _about(run, "S12", "times", "was finished before it was made", finished)
    for each in run.attempts:
        if each["startedAt"] is None or each["finishedAt"] is None:
            continue
        begin, end = seconds(each["startedAt"]), seconds(each["finishedAt"])
        if begin > end + clock and not case.faults.jumped(case.holder_of(each["fence"]), end):
            yield _about(run, "S12", "times", f"attempt with fence {each['fence']} ended before it began", end)


def _success_by(run: Run) -> Iterator[Finding]:
    fence = next((each["fence"] for each in run.attempts if each["status"] == "completed"), None)
    if fence is None:
        yield _about(run, "S12", "success", "is completed, and no attempt on record is")
    elif run.ends and not any(end.fence == fence and not end.failed for end in run.ends):
        yield _about(run, "S12", "fence", f"was completed by fence {fence}, whose handler never came to its end")


def _had_no_word(case: Case, run: Run, row: dict[str, object]) -> bool:
    """A command on a busy machine may be ended before it has come to its first word."""
    return row["status"] == "timed_out" and any(is_command(body) for body in case.bodies_of(run))


def _may_lack_start(case: Case, row: dict[str, Any]) -> bool:
    """Whether nobody was called, or what had happened to its worker explains why nothing was heard."""
    if row["status"] in _NEED_NO_START or row.get("errorClass") == REFUSED:  # then nobody was called
        return True
    if row["status"] == "completed":
        return False
    end = seconds(row["finishedAt"])
    return case.faults.held(case.holder_of(row["fence"]), end - case.bounds.duration, end)


def _about(run: Run, check: str, rule: str, message: str, at: float | None = None) -> Finding:
    return Finding(check=check, rule=rule, message=message, run=run.id, job=run.job, at=at)
