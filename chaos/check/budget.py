"""S16: a schedule makes no more runs of a job than its owner allowed since the number was last set.

How many are left is counted down when a run is made, whichever definition its instant belongs to. So runs are counted
by when they were made, between two changes of the number; while a change may be under way, nothing is counted.
"""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from chaos.check.case import Case
from chaos.check.facts import Job, Run
from chaos.check.finding import Finding
from chaos.check.halts import FIRES, done_by
from chaos.oracle import MICRO
from chaos.records import Outcome

if TYPE_CHECKING:
    from chaos.check.occurrences import Occurrences


class Epoch(NamedTuple):
    """A time in which nobody set the number anew."""

    begin: float
    end: float
    most: int
    made: list[Run]


class Budget:
    """What one job may spend, and has spent."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.limited = any(each.max_runs is not None for each in job.definitions)

    def epochs(self, case: Case) -> Iterator[Epoch]:
        """Those in which the number is known."""
        if not self.limited:
            return
        runs = [run for run in self._job.runs if run.id not in self._job.by_hand and run.status != "skipped"]
        for begin, end in _between(self._changes(case)):
            standings = self._job.timeline.between(begin, end)
            numbers = [each.definition.max_runs for each in standings if each is not None]
            known = [number for number in numbers if number is not None]
            if known and len(known) == len(numbers):
                made = [run for run in runs if begin < _made(run) < end and self._counts(case, run)]
                yield Epoch(begin, end, max(known), made)

    def may_be_used_up(self, case: Case, instant: int, decided: float = 0.0) -> bool:
        """Whether an instant may rightly have gone without: there may have been no run left for it.

        `decided`: when that was found, if it is known. Else it was within the grace, or as soon as somebody could. What
        was made after that has taken nothing from it. What came up late stands behind all that was on time then, and is
        paid for by the number that was set in the meantime.
        """
        if not self.limited:
            return False
        at = instant / MICRO
        bounds = case.bounds
        end = decided + bounds.clock if decided else max(at + bounds.grace, done_by(case.faults, bounds, at, FIRES))
        numbers = {each.definition.max_runs for each in self._job.timeline.between(at, end) if each is not None}
        least = min((number for number in numbers if number is not None), default=math.inf)
        begin = self._renewed(case, at)
        # One that is skipped when its place in the jitter window has come was made, and counts.
        spent = sum(
            begin < _made(run) <= end
            and (run.status != "skipped" or any(each.jitter for each in self._job.definitions))
            for run in self._job.runs
            if run.id not in self._job.by_hand
        )
        return spent >= least

    def _renewed(self, case: Case, at: float) -> float:
        """Since when runs count at the latest: another number was set, for certain, and all begins anew.

        The same number once more changes nothing.
        """
        renewed = -math.inf
        for begin, end in self._changes(case):
            before, after = (self._numbers(moment) for moment in (begin, end))
            if end <= at and len(after) == 1 and not before & after:
                renewed = begin
        return renewed

    def _numbers(self, at: float) -> set[int | None]:
        return {each.definition.max_runs for each in self._job.timeline.between(at, at) if each is not None}

    def _changes(self, case: Case) -> list[tuple[float, float]]:
        """When the number may have been set, in order."""
        bounds, found = case.bounds, []
        for each in self._job.operations:
            if each.outcome is not Outcome.FAIL and "maxRuns" in (each.body or {}):
                over = each.completed + (bounds.linger if each.outcome is Outcome.UNKNOWN else 0.0)
                found.append((each.invoked - bounds.uncertainty, over + bounds.uncertainty))
        return sorted(found)

    def _counts(self, case: Case, run: Run) -> bool:
        """Whether its instant belongs to a definition with a number, beyond doubt."""
        at, delta = run.scheduled or 0.0, case.bounds.uncertainty
        standings = self._job.timeline.between(at - delta, at + delta)
        return all(each is not None and each.definition.max_runs is not None for each in standings)


def too_many_runs(case: Case, found: "Occurrences") -> Iterator[Finding]:
    job = found.job
    if job.unsure_by_hand:  # one of its runs may be by hand, and nobody knows which
        return
    for epoch in found.budget.epochs(case):
        if len(epoch.made) > epoch.most:
            last = max(epoch.made, key=_made)
            message = f"has {len(epoch.made)} runs, and {epoch.most} were allowed"
            yield Finding(check="S16", rule="runs", message=message, run=last.id, job=job.id, at=_made(last))


def _between(changes: list[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """The gaps between changes, from the end of the first: before it there was no job, or no number."""
    reached = math.inf
    for begin, end in changes:
        if reached < begin:
            yield reached, begin
        reached = end if reached == math.inf else max(reached, end)
    if changes:
        yield reached, math.inf


def _made(run: Run) -> float:
    return run.moment("createdAt") or (run.starts[0].at if run.starts else 0.0)
