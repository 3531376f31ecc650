"""S5 to S8 and S10: what was executed was asked for, as it was asked for, once, and not before its time."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from chaos.check.case import Case
from chaos.check.facts import Run
from chaos.check.finding import Finding
from chaos.check.poison import poisonous
from chaos.check.retries import FAILED, is_at_most_once, most_retries
from chaos.oracle import seconds
from chaos.records import SNOOZE, Effect

_GIVEN_UP = frozenset({"failed", "timed_out", "released", "snoozed", "cancelled"})
"""Endings on record after which another attempt needs no further reason."""


def phantom_execution(case: Case, run: Run) -> Iterator[Finding]:
    """S5: a run that the product itself does not know began, or one received somebody else's payload."""
    if not run.starts:
        return
    if not run.known and run.job is not None:
        yield _about(run, "S5", "unknown", "ran, and neither a client nor the product knows it", run.starts[0].at)
        return
    expected = _payloads(case, run)
    for start in run.starts:
        if expected and start.payload and start.payload not in expected:
            yield _about(run, "S5", "payload", "received another payload than was handed in", start.at)


def zombie_write(case: Case, run: Run) -> Iterator[Finding]:
    """S6: a result was taken from a fence that had been overtaken, or a finished run changed again."""
    completed = [each for each in run.attempts if each["status"] == "completed"]
    if completed and run.row is not None and run.row["status"] != "completed":
        yield _about(run, "S6", "changed", f"had completed, and is {run.row['status']} now")
    if len(run.attempts) < 2 and len(run.starts) < 2:
        return
    if completed and (later := [each for each in run.attempts if each["fence"] > completed[0]["fence"]]):
        yield _about(run, "S6", "changed", f"went on after it had completed: {len(later)} attempts followed")
    for row in run.attempts:
        overtaken = [each for each in run.starts if each.fence > row["fence"]]
        if not overtaken or row["finishedAt"] is None or row.get("lateResult"):
            continue  # what came too late is told as such, and changed nothing
        taken, granted = seconds(row["finishedAt"]), min(each.at for each in overtaken)
        if taken > granted + case.bounds.clock:
            message = f"fence {row['fence']} was let write {taken - granted:.3f} s after a higher one had begun"
            yield _about(run, "S6", "zombie", message, taken)


def unexplained_duplicate(case: Case, run: Run) -> Iterator[Finding]:
    """S7: an attempt followed another that had not failed, and no fault had taken its worker."""
    failures = sum(each["status"] in FAILED for each in run.attempts)
    if failures and failures > (1 + (most := most_retries(case, run))) * (1 + len(case.replays(run))):
        yield _about(run, "S7", "retries", f"failed {failures} times, and {most} retries were allowed")
    if len(run.starts) < 2 or is_at_most_once(case, run):
        return
    for before, after in pairwise(run.starts):
        if before.fence == after.fence:
            yield _about(run, "S7", "twice", f"the attempt with fence {after.fence} began twice", after.at)
        elif not _justified(case, run, before, after):
            message = f"began again with fence {after.fence} although {before.fence} had neither failed nor been lost"
            yield _about(run, "S7", "unexplained", message, after.at)


def at_most_once_broken(case: Case, run: Run) -> Iterator[Finding]:
    """S8: a run that may begin once at most began again, fault or not."""
    if len(run.starts) < 2 or not is_at_most_once(case, run):
        return
    turns = Counter(bisect_right(case.replays(run), start.at + case.bounds.clock) for start in run.starts)
    if (most := max(turns.values())) > 1:  # each replay is a turn of its own
        yield _about(run, "S8", "twice", f"is at-most-once and began {most} times", run.starts[1].at)


def early_start(case: Case, run: Run) -> Iterator[Finding]:
    """S10: a run began before its time."""
    if not run.starts:
        return
    start = run.starts[0]
    due = start.scheduled_at or run.scheduled or 0.0
    if run.submission is not None:
        due = max(due, run.submission.not_before)
    elif run.job is not None:
        due = max(due, run.due or 0.0)
    if start.at < due - case.bounds.early:
        yield _about(run, "S10", "early", f"began {due - start.at:.3f} s before its time", start.at)


def woken_early(case: Case, run: Run) -> Iterator[Finding]:
    """S10: a run that asked to be called again later was called sooner."""
    if len(run.starts) < 2:
        return
    for row in run.attempts:
        if row["status"] != "snoozed" or row["finishedAt"] is None:
            continue
        following = [start for start in run.starts if start.fence > row["fence"]]
        woken = min((start.at for start in following), default=None)
        if woken is not None and woken < (due := seconds(row["finishedAt"]) + SNOOZE) - case.bounds.early:
            yield _about(run, "S10", "woken", f"was called again {due - woken:.3f} s too soon", woken)


def _payloads(case: Case, run: Run) -> set[str]:
    if run.submission is not None and run.submission.digest is not None:
        return {run.submission.digest}
    job = case.jobs.get(run.job or "")
    if job is None or not job.timeline.judged:
        return set()
    if run.submission is not None:
        standings = job.timeline.between(run.submission.since, run.submission.operation.completed)
        return {each.definition.payload for each in standings if each is not None}
    if job.unsure_by_hand:
        return set()
    if run.id in job.backfilled:  # it follows the definition of when its turn came
        return {each.payload for each in job.definitions}
    at, delta = run.scheduled or 0.0, case.bounds.uncertainty
    standings = job.timeline.between(at - delta, at + delta)
    owners = {each.definition.payload for each in standings if each is not None and each.definition.recurring}
    return owners | {each.payload for each in job.definitions if each.at == run.instant}


def _justified(case: Case, run: Run, before: Effect, after: Effect) -> bool:
    """Whether the older claim had been given up by its own worker, or taken from it because of a fault."""
    older, newer = (before, after) if before.fence < after.fence else (after, before)
    row = run.attempt_of(older.fence)
    given_up = row is not None and row["status"] in _GIVEN_UP and row["finishedAt"] is not None
    if row is not None and given_up and seconds(row["finishedAt"]) <= newer.at + case.bounds.clock:
        return True
    if row is None and any(end.failed and end.fence == older.fence and end.at <= newer.at for end in run.ends):
        return True
    # What happened to its worker when the result had long been told cannot have cost it.
    told = max((end.at for end in run.ends if end.fence == older.fence), default=after.at)
    until = min(after.at, told + case.bounds.straggler)
    worker = case.worker_of(older)
    may_be_lost = row is None or row["status"] != "lost" or case.faults.took(worker, before.at, after.at)
    return poisonous(case, run) or (may_be_lost and case.faults.held(worker, before.at, until))


def _about(run: Run, check: str, rule: str, message: str, at: float | None = None) -> Finding:
    return Finding(check=check, rule=rule, message=message, run=run.id, job=run.job, at=at)
