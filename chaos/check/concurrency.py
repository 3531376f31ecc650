"""S9 and S10: never more at once than the limit of a line, and first come first served where the limit is one."""

from collections.abc import Iterator
from itertools import pairwise

from chaos.check.case import Case
from chaos.check.facts import Job, Run
from chaos.check.finding import Finding
from chaos.check.lines import Execution, Line, left_place, lines, stood_still_until


def limits_broken(case: Case) -> Iterator[Finding]:
    """S9, S10: a sweep over all attempts of each line."""
    for line in lines(case):
        executions = line.executions(case)
        yield from _sweep(case, line, executions)
        if not line.is_tenants:
            yield from _zombies(case, line, executions)
        if line.is_strict:
            yield from _beside(case, line, executions)
            yield from _out_of_order(case, line)


def overlaps(case: Case) -> Iterator[Finding]:
    """S9: two scheduled runs at once of a job that skips while one is going."""
    for job in case.jobs.values():
        if not all(each.recurring and each.overlap == "skip" for each in job.definitions):
            continue
        yield from _overlaps_of(case, job)


def _overlaps_of(case: Case, job: Job) -> Iterator[Finding]:
    if job.unsure_by_hand:  # one of its runs may be by hand, and nobody knows which
        return
    ran = sorted((run.starts[0].at, run.id, run) for run in job.runs if run.starts and run.id not in job.by_hand)
    until, holder = 0.0, ""
    for began, _, run in ran:
        if began < until - case.bounds.clock:
            yield _about(run, "S9", "overlap", f"began {until - began:.3f} s before the end of {holder}", began)
        ended = left_place(case, run)
        if ended is not None and ended > until:
            until, holder = ended, run.id


def _sweep(case: Case, line: Line, executions: list[Execution]) -> Iterator[Finding]:
    """Whoever begins may do so if there is room by its own definition, or by that of somebody who goes already."""
    going: list[Execution] = []
    for each in sorted(executions, key=lambda execution: execution.start.at):
        at = each.start.at
        going = [other for other in going if other.counted - case.bounds.clock > at]
        if each.counted - case.bounds.clock > at:
            going.append(each)
            most = max(other.place.limit for other in going)
            if len(going) > most:
                message = f"made {len(going)} at once in the line {line.name}, whose limit is {most}"
                yield _about(each.place.run, "S9", "limit", message, at)


def _zombies(case: Case, line: Line, executions: list[Execution]) -> Iterator[Finding]:
    for each in executions:
        beyond = each.stopped - each.counted
        if beyond <= case.bounds.guardian or any(
            body.get("onDisconnect") == "finish" for body in case.bodies_of(each.place.run)
        ):
            continue
        beyond = min(beyond, each.stopped - stood_still_until(case, each.start, each.stopped))
        if beyond > case.bounds.guardian and any(
            other.place.run is not each.place.run and other.start.at < each.stopped and other.counted > each.counted
            for other in executions
        ):
            message = f"went on for {beyond:.1f} s in the line {line.name} after it had been fenced out"
            yield _about(each.place.run, "S9", "zombie", message, each.counted)


def _beside(case: Case, line: Line, executions: list[Execution]) -> Iterator[Finding]:
    """S10: somebody began while the one before waited for its next attempt; if that was going on, it breaks S9."""
    until, holder = 0.0, ""
    for run in line.in_order:
        began = run.starts[0].at
        if began < until - case.bounds.clock and not any(
            each.place.run is not run and each.start.at <= began < each.counted for each in executions
        ):
            message = f"began in the line {line.name} {until - began:.3f} s before {holder} was through"
            yield _about(run, "S10", "beside", message, began)
        ended = left_place(case, run)
        if ended is not None and ended > until:
            until, holder = ended, run.id


def _out_of_order(case: Case, line: Line) -> Iterator[Finding]:
    """S10: one that was waiting was overtaken by one that came later."""
    free = 0.0
    for before, after in pairwise(line.in_order):
        if (after.scheduled or 0.0, after.id) < (before.scheduled or 0.0, before.id):
            # When the one that came later was called at the earliest: the place was free, and it had been handed in.
            called = max(free, before.submission.since if before.submission is not None else _made(before))
            if stood_in_line(case, after) < called - case.bounds.clock:
                message = f"was overtaken in the line {line.name} by {before.id}, which came later"
                yield _about(after, "S10", "order", message, after.starts[0].at)
        free = max(free, left_place(case, before) or 0.0)


def stood_in_line(case: Case, run: Run) -> float:
    """When it waited there beyond doubt: it was due, and whoever made it had been told so."""
    if run.submission is not None:
        told, due = run.submission.operation.completed, run.submission.due_by
        # What came before its time stands in line when somebody has noticed that it is due.
        return due + case.bounds.lateness if due > told else told
    made = _made(run)
    late = case.bounds.uncertainty if case.faults.quiet(made) else case.bounds.straggler
    return max(run.scheduled or 0.0, made) + late


def _made(run: Run) -> float:
    return run.moment("createdAt") or 0.0


def _about(run: Run, check: str, rule: str, message: str, at: float) -> Finding:
    return Finding(check=check, rule=rule, message=message, run=run.id, job=run.job, at=at)
