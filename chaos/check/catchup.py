"""S15: of the instants that came up late those were run that their job still wanted, and no others.

That something was run and should not have been is judged of instants that nobody can have handled within their grace,
because no scheduler was running: whatever the product may say of itself, they were late. That something was left out is
judged of all.
"""

import math
from collections.abc import Iterator

from chaos.check.case import Case
from chaos.check.facts import Job, Run
from chaos.check.finding import Finding
from chaos.check.halts import FIRES, done_by
from chaos.check.occurrences import Occurrences
from chaos.oracle import MICRO, Definition


def caught_up_wrongly(case: Case, found: Occurrences) -> Iterator[Finding]:
    bounds = case.bounds
    for begin, end in case.faults.unattended:
        first, last = begin + bounds.straggler, end - bounds.grace - bounds.hush
        late = [each for each in found.owners if first <= each / MICRO <= last and each not in found.unsure]
        for instant in late:
            yield from _unwanted(found, instant, end)
        yield from _several(case, found, late)
    if found.job.missed and any(each.catch_up == "all" for each in found.job.definitions):
        for instant in found.owners:
            if found.missed(instant):
                yield from _left_out(case, found, instant)


def _unwanted(found: Occurrences, instant: int, end: float) -> Iterator[Finding]:
    owner = found.owners[instant]
    if not (runs := _runs(found, instant)):
        return
    if owner.catch_up == "none":
        yield _about("none", "came up late, and was run although the job catches up with nothing", found.job, runs[0])
    elif end - instant / MICRO > owner.window / MICRO + 1:
        message = f"came up later than the {owner.window // MICRO} s that the job allows, and was run"
        yield _about("window", message, found.job, runs[0])


def _left_out(case: Case, found: Occurrences, instant: int) -> Iterator[Finding]:
    """It came up, or had to, while it was still inside the window, and yet it is recorded as missed.

    What had to come up within its grace is no question of catching up: S3 asks for that.
    """
    owner, at = found.sole(instant), instant / MICRO
    if owner is None or owner.catch_up != "all":
        return
    opened = found.opened(instant)
    noticed = min(done_by(case.faults, case.bounds, at, FIRES), math.inf if opened is None else opened)
    if not case.bounds.grace < noticed - at < owner.window / MICRO:
        return
    if not found.budget.may_be_used_up(case, instant, opened or 0.0):
        message = f"the instant {at:.6f} was left out although the job catches up with all"
        yield Finding(check="S15", rule="all", message=message, job=found.job.id, at=at)


def _several(case: Case, found: Occurrences, late: list[int]) -> Iterator[Finding]:
    before: tuple[int, Definition, Run] | None = None
    for instant in late:
        owner = found.owners[instant]
        if owner.catch_up != "latest" or not (runs := _runs(found, instant)):
            continue
        if before and before[1] == owner and not found.disturbed(before[0], instant, case.bounds.uncertainty):
            message = f"came up late together with that of {before[2].id}, and the job catches up with the latest alone"
            yield _about("latest", message, found.job, runs[0])
        before = (instant, owner, runs[0])


def _runs(found: Occurrences, instant: int) -> list[Run]:
    return [run for run in found.records.get(instant, []) if run.status != "skipped"]


def _about(rule: str, message: str, job: Job, run: Run) -> Finding:
    return Finding(check="S15", rule=rule, message=message, run=run.id, job=job.id, at=run.scheduled)
