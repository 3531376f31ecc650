"""What a back-fill may run, how much of it at once, and in which order.

S4, S5: each instant of its range once, no other one, and none that it was asked to leave alone. S9, S10: never more at
once than it was asked for, and in its order.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from chaos.check.case import Case
from chaos.check.facts import Job, Run
from chaos.check.finding import Finding
from chaos.check.lines import left_place
from chaos.check.occurrences import Occurrences
from chaos.oracle import MICRO, instant


class Asked(NamedTuple):
    """One back-fill that somebody wanted."""

    at: float
    first: int
    last: int
    reprocess: str

    def covers(self, at: int) -> bool:
        return self.first <= at <= self.last


def backfilled_wrongly(case: Case, found: Occurrences) -> Iterator[Finding]:
    job = found.job
    if not job.backfilled:
        return
    calls = case.backfills.get(job.id, [])
    asked = [_asked(call.first.invoked, call.first.body or {}) for call in calls if not call.refused]
    by_instant: dict[int, list[Run]] = defaultdict(list)
    for run in job.runs:
        if run.id in job.backfilled and run.instant is not None:
            by_instant[run.instant].append(run)
    for at, runs in by_instant.items():
        covering = [each for each in asked if each.covers(at)]
        if not covering or not any(at in each.nominal(at / MICRO - 1, at / MICRO + 1) for each in job.definitions):
            yield _about("S5", job, runs[0], "is none of the instants that somebody wanted to be made up for")
        elif len(runs) > len(covering):
            yield _about("S4", job, runs[-1], f"was made up for {len(runs)} times, and {len(covering)} times asked for")
        elif all(each.reprocess == "none" for each in covering) and _had_run(found, at, covering[0].at):
            yield _about("S4", job, runs[0], "was made up for, and had been run")
    for call in calls:
        if (answer := call.answered) is not None:
            made = [case.runs[run] for run in job.backfills.get((answer.answer or {})["operationId"], ())]
            yield from _crowded(case, job, made, (answer.body or {})["concurrency"])
            yield from _out_of_order(job, made, (answer.body or {})["order"])


def _crowded(case: Case, job: Job, made: list[Run], most: int) -> Iterator[Finding]:
    """Each is made when there is room for it, which the database has dated as it has the ends of the others."""
    under_way: list[float] = []
    for came, run in sorted(((_came(run), run) for run in made), key=lambda each: each[0]):
        under_way = [end for end in under_way if end > came]
        if (ended := left_place(case, run)) is not None:
            under_way.append(ended)
        if len(under_way) > most:
            yield _about("S9", job, run, f"was made up for as one of {len(under_way)} at once, of at most {most}")


def _came(run: Run) -> float:
    """When it was made, or something that came later: a retry has written over it."""
    return run.due or (run.starts[0].at if run.starts else float("inf"))


def _out_of_order(job: Job, made: list[Run], order: str) -> Iterator[Finding]:
    """Only of those of which is known when they were made: a number may be taken long before it is used.

    What is made in one go has one date, and its numbers are in order.
    """
    dated = sorted(((run.due, run) for run in made if run.due is not None), key=lambda each: each[0])
    for (_, before), (_, after) in pairwise(dated):
        at, next_at = before.scheduled or 0.0, after.scheduled or 0.0
        if (next_at < at) if order == "oldest" else (next_at > at):
            yield _about("S10", job, after, f"was made up for after {at:.6f}, and the {order} was to come first")


def _asked(at: float, body: dict[str, Any]) -> Asked:
    return Asked(at, instant(body["from"]), instant(body["until"]), body["reprocess"])


def _had_run(found: Occurrences, at: int, before: float) -> bool:
    return any(run.starts and run.starts[0].at < before for run in found.records.get(at, []))


def _about(check: str, job: Job, run: Run, message: str) -> Finding:
    told = f"the instant {run.scheduled:.6f} {message}"
    return Finding(check=check, rule="backfill", message=told, run=run.id, job=job.id, at=run.scheduled)
