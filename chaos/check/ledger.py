"""S17: the occurrence ledger tells the truth: every instant once, no other one, and of each what became of it."""

from collections.abc import Iterator
from typing import Any

from chaos.check.case import Case
from chaos.check.facts import Run
from chaos.check.finding import Finding
from chaos.check.occurrences import Occurrences
from chaos.oracle import MICRO, instant
from chaos.timeline import Gate

Row = dict[str, Any]
_UNDECIDED = frozenset({"due", "expected", "unaccounted"})


def false_ledger(case: Case, found: Occurrences) -> Iterator[Finding]:
    job = found.job
    if job.id not in case.evidence.dump.occurrences:
        return
    rows: dict[int, Row] = {}
    for row in job.ledger:
        at = instant(row["at"])
        if at in rows:
            yield _about(found, "twice", "is listed twice", at)
        rows[at] = row
    yield from _silent(case, found, rows)
    for at, row in rows.items():
        if at / MICRO <= case.cutoff:
            yield from _false(case, found, at, row)


def _silent(case: Case, found: Occurrences, rows: dict[int, Row]) -> Iterator[Finding]:
    """An instant that the job had, or a run of one, is not listed."""
    for at, must in (*found.listed.items(), *found.away.items()):
        if must and at not in rows and not found.budget.may_be_used_up(case, at):
            yield _about(found, "silence", "is not listed", at)
    for at, runs in found.records.items():
        if at in found.listed and at not in rows and any(run.starts for run in runs):
            yield _about(found, "silence", "ran, and is not listed", at, runs[0])


def _false(case: Case, found: Occurrences, at: int, row: Row) -> Iterator[Finding]:
    status, runs = row["status"], found.records.get(at, [])
    made = [run for run in runs if run.status not in {"skipped", "missed"}]
    if at in found.away and status in {"skipped", "moved"} and not made:
        return
    if at not in found.listed:
        yield _about(found, "instant", f"is listed as {status}, and is none of this job's", at)
    elif status in _UNDECIDED:
        yield _about(found, status, f"is still {status}", at)
    elif status == "fired":
        yield from _fired(found, at, row, made)
    elif made:
        yield _about(found, "ran", f"is listed as {status}, and has a run", at, made[0])
    elif status == "missed" and (runs or not found.missed(at)):
        yield _about(found, "missed", "is listed as missed, and is not on record as that", at)
    elif status == "skipped" and not runs and not _may_be_paused(case, found, at):
        yield _about(found, "skipped", "is listed as skipped, and there is no skip on record", at)


def _fired(found: Occurrences, at: int, row: Row, made: list[Run]) -> Iterator[Finding]:
    run = next((each for each in made if each.id == row["runId"]), None)
    if run is None or run.row is None:
        yield _about(found, "fired", f"is listed as fired, and its run {row['runId']} is not on record", at)
    elif (row["runStatus"], row["dueAt"]) != (run.status, run.row["dueAt"]):
        told = f"is listed with a run that is {row['runStatus']} and due {row['dueAt']}; its own row says otherwise"
        yield _about(found, "run", told, at, run)


def _may_be_paused(case: Case, found: Occurrences, at: int) -> bool:
    delta = case.bounds.uncertainty
    standings = found.job.timeline.between(at / MICRO - delta, at / MICRO + delta)
    return any(each is not None and each.gate is Gate.PAUSED for each in standings)


def _about(found: Occurrences, rule: str, message: str, at: int, run: Run | None = None) -> Finding:
    return Finding(
        check="S17",
        rule=rule,
        message=f"the instant {at / MICRO:.6f} {message}",
        run=None if run is None else run.id,
        job=found.job.id,
        at=at / MICRO,
    )
