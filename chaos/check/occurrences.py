"""S3, S4, S5: every instant of a schedule has exactly one outcome, and no other instant has any."""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from enum import StrEnum
from functools import cached_property
from itertools import accumulate

from chaos.check.budget import Budget
from chaos.check.case import Case
from chaos.check.excuses import missed_wrongly, skipped_wrongly
from chaos.check.facts import Job, Run
from chaos.check.finding import Finding
from chaos.oracle import MICRO, Definition, seconds
from chaos.records import Outcome
from chaos.timeline import Gate, Standing

_PIECE = 600.0
"""Seconds. Of a day's campaign a job sees a few minutes, and thousands of jobs are asked about."""
_NEVER_RAN = frozenset({"skipped", "cancelled", "missed"})


class Class(StrEnum):
    MUST = "must"
    MUST_NOT = "must not"
    MAY = "may"


class Occurrences:
    """The instants of one job in the judged window, and what became of them."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.classes: dict[int, Class] = {}
        self.owners: dict[int, Definition] = {}
        """Of those that must be, rising: whose they are."""
        self.unsure: set[int] = set()
        """Of those that must be: such as may be one definition's or another's."""
        self.listed: dict[int, bool] = {}
        """Instants that the product's own ledger may show, those of a pause too; whether it must."""
        self.away: dict[int, bool] = {}
        """Likewise: instants that a calendar took away, or moved."""
        self.late: list[tuple[int, int, float]] = []
        """Ranges of missed instants, and when they came up."""
        self.budget = Budget(job)
        self.records: dict[int, list[Run]] = defaultdict(list)
        for run in job.runs:
            if run.id not in job.by_hand and run.instant is not None:
                self.records[run.instant].append(run)

    def missed(self, instant: int) -> bool:
        return any(first <= instant <= last for first, last in self.job.missed) or any(
            run.status == "missed" for run in self.records.get(instant, ())
        )

    def opened(self, instant: int) -> float | None:
        """When one that was missed came up, by the product's own word, if it is known."""
        return max((at for first, last, at in self.late if first <= instant <= last), default=None)

    def sole(self, instant: int) -> Definition | None:
        """The definition that owns it beyond doubt."""
        return None if instant in self.unsure else self.owners.get(instant)

    def after(self, instant: int) -> int | None:
        """The next instant that must be."""
        position = bisect_right(self._rising, instant)
        return self._rising[position] if position < len(self._rising) else None

    def disturbed(self, first: int, last: int, delta: float) -> bool:
        """Whether somebody may have changed the job between two instants: then they are not one stretch of it."""
        begin, end = first / MICRO - delta, last / MICRO + delta
        return any(
            each.invoked <= end and (each.outcome is Outcome.UNKNOWN or each.completed >= begin)
            for each in self.job.operations
            if each.outcome is not Outcome.FAIL
        )

    def going(self, at: float) -> float:
        """Until when those runs of the schedule that had been made by `at` went on."""
        begins, ends = self._spans
        position = bisect_right(begins, at)
        return ends[position - 1] if position else 0.0

    def there(self, decided: float, late: float) -> int:
        """Runs of the schedule that were there when it was `decided` about an instant.

        `late`: how long it may take from the end of one until its transaction has ended, and others are called.
        """
        begins, _ = self._spans
        made = self._made[: bisect_right(begins, decided + late)]
        return sum(end >= decided - late for _, end in made)

    def surplus(self, cutoff: float) -> int:
        """Runs begun by the cut-off that, by their labels, are more than their instants can have."""
        began = {
            instant: sum(bool(run.starts) and run.starts[0].at <= cutoff for run in runs)
            for instant, runs in self.records.items()
        }
        return sum(count - (instant in self.classes) for instant, count in began.items() if count)

    @cached_property
    def _rising(self) -> list[int]:
        return list(self.owners)

    @cached_property
    def _made(self) -> list[tuple[float, float]]:
        ran = (run for runs in self.records.values() for run in runs if run.status not in {"skipped", "missed"})
        return sorted((run.moment("createdAt") or 0.0, run.moment("finishedAt") or math.inf) for run in ran)

    @cached_property
    def _spans(self) -> tuple[list[float], list[float]]:
        return [begin for begin, _ in self._made], list(accumulate((end for _, end in self._made), max))


def all_occurrences(case: Case) -> dict[str, Occurrences]:
    """Jobs with parents have no instants of their own: S22 looks at those."""
    own = (job for job in case.jobs.values() if job.timeline.judged and job.id not in case.graphs.needs)
    found = {job.id: _occurrences(case, job) for job in own}
    for row in (row for rows in case.evidence.dump.missed.values() for row in rows):
        if row["job"] in found and "opened" in row:
            first, last = (round(seconds(row[name]) * MICRO) for name in ("from", "through"))
            found[row["job"]].late.append((first, last, seconds(row["opened"])))
    return found


def _occurrences(case: Case, job: Job) -> Occurrences:
    """Class every instant, and lay the job's scheduled runs beside them."""
    found = Occurrences(job)
    begin, end = _judged_window(case, job)
    recurring = {each: set(each.instants(begin, end)) for each in job.definitions if each.recurring}
    delta = case.bounds.uncertainty
    away = {each: set(each.away(begin, end)) for each in recurring if each.rule is not None}
    for instant in set().union(*away.values()):
        standings = job.timeline.between(instant / MICRO - delta, instant / MICRO + delta)
        found.away[instant] = all(each is not None and _owns(each, instant, away) for each in standings)
    for instant in sorted(set().union(*recurring.values())):
        at = instant / MICRO
        standings = job.timeline.between(at - delta, at + delta)
        owning = [each for each in standings if each is not None and _owns(each, instant, recurring)]
        if owning:
            found.listed[instant] = len(owning) == len(standings)
        firing = [each for each in owning if each.gate is Gate.OPEN]
        if len(firing) == len(standings):
            found.classes[instant] = Class.MUST
            found.owners[instant] = firing[0].definition
            if any(each.definition != firing[0].definition for each in firing):
                found.unsure.add(instant)
        elif firing:
            found.classes[instant] = Class.MAY
    return found


def _judged_window(case: Case, job: Job) -> tuple[float, float]:
    """Somewhat more than the job's own time: in whole pieces, so that jobs with the same expression share an answer."""
    since, until = job.timeline.span()
    delta = case.bounds.uncertainty
    begin = max(case.began, (since - delta) // _PIECE * _PIECE)
    return begin, max(begin, min(case.cutoff, (until + delta) // _PIECE * _PIECE + _PIECE))


def check_occurrences(case: Case, found_of: dict[str, Occurrences]) -> Iterator[Finding]:
    for found in found_of.values():
        yield from _silences(case, found)
        yield from _one_time_silence(case, found.job)
        yield from _doubles(found)
        yield from _phantoms(case, found)


def _owns(standing: Standing, instant: int, recurring: dict[Definition, set[int]]) -> bool:
    return standing.gate is not Gate.CANCELLED and instant in recurring.get(standing.definition, ())


def _silences(case: Case, found: Occurrences) -> Iterator[Finding]:
    """S3: an instant that must have an outcome has none, or one that it must not have."""
    for instant, class_ in found.classes.items():
        if class_ is not Class.MUST:
            continue
        runs = found.records.get(instant, [])
        if found.missed(instant):
            if complaint := missed_wrongly(case, found, instant):
                yield _about("S3", "missed", complaint, found.job, instant)
        elif not runs:
            if not found.budget.may_be_used_up(case, instant):
                yield _about("S3", "silence", "has no run, no skip and no miss on record", found.job, instant)
        elif runs[0].status == "skipped" and (complaint := skipped_wrongly(case, found, runs[0])):
            yield _about("S3", "skipped", complaint, found.job, instant, runs[0])


def _one_time_silence(case: Case, job: Job) -> Iterator[Finding]:
    since = job.timeline.between(case.cutoff, case.evidence.dump.taken)
    instants = {each.definition.at if each is not None and each.definition.one_time else None for each in since}
    if len(instants) != 1 or (instant := instants.pop()) is None or instant / MICRO > case.cutoff:
        return
    if not any(run.instant == instant for run in job.runs):
        yield _about("S3", "one-time", "has no run on record", job, instant)


def _doubles(found: Occurrences) -> Iterator[Finding]:
    """S4: one instant, several runs. A one-time job that was moved there again may have run there again."""
    for instant, runs in found.records.items():
        again = 0
        if instant not in found.classes:
            again = sum("scheduleAt" in (each.body or {}) for each in found.job.operations if each.kind == "changeJob")
        if len(runs) > 1 + again:
            names = ", ".join(sorted(run.id for run in runs))
            yield _about("S4", "instant", f"has {len(runs)} runs: {names}", found.job, instant, runs[-1])


def _phantoms(case: Case, found: Occurrences) -> Iterator[Finding]:
    """S5: a run of an instant that its job did not have, or a start behind a closed gate."""
    job = found.job
    unsure = sorted(each.invoked for each in job.unsure_by_hand)
    one_time = {each.at for each in job.definitions if each.one_time}
    for instant, runs in found.records.items():
        if instant in found.classes or instant in one_time or instant / MICRO > case.cutoff:
            continue
        for run in runs:
            made = run.moment("createdAt") or (run.starts[0].at if run.starts else 0.0)
            if unsure and unsure[0] <= made + case.bounds.clock:
                unsure.pop(0)
            elif run.starts or run.status not in _NEVER_RAN:
                yield _about("S5", "instant", "is none of this job's instants, and ran", job, instant, run)
    for run in job.runs:
        yield from _behind_a_closed_gate(case, job, run, one_time)


def _behind_a_closed_gate(case: Case, job: Job, run: Run, one_time: set[int | None]) -> Iterator[Finding]:
    hold = case.bounds.hold + case.bounds.duration
    for start in run.starts:
        standings = job.timeline.between(start.at - hold, start.at)
        if run.instant in one_time and run.id not in job.by_hand:
            is_open = any(
                each is not None and each.gate is Gate.OPEN and each.definition.at == run.instant for each in standings
            )
        else:
            is_open = any(each is not None and each.gate is Gate.OPEN for each in standings)
        if not is_open and not case.faults.held(case.worker_of(start), start.at - hold, start.at):
            yield Finding(
                check="S5",
                rule="closed",
                message="began although its job had been paused, cancelled or moved long before",
                run=run.id,
                job=job.id,
                at=start.at,
            )


def _about(check: str, rule: str, message: str, job: Job, instant: int, run: Run | None = None) -> Finding:
    return Finding(
        check=check,
        rule=rule,
        message=f"the instant {instant / MICRO:.6f} {message}",
        run=None if run is None else run.id,
        job=job.id,
        at=instant / MICRO,
    )
