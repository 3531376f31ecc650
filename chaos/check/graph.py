"""S22: nothing of a graph begins before its parents have ended as it must be, and all of it comes to its turn, once."""

from collections.abc import Iterator

from chaos.check.case import Case
from chaos.check.facts import Job, Run
from chaos.check.finding import Finding
from chaos.check.lines import left_place
from chaos.check.wiring import Graphs
from chaos.oracle import MICRO
from chaos.records import Outcome

_NEVER = frozenset({"skipped", "missed"})
_LEAVES = frozenset({"cancelJob", "deleteJob"})


def graphs_broken(case: Case) -> Iterator[Finding]:
    graphs = case.graphs
    for name in graphs.needs:
        for run in case.jobs[name].runs:
            parents = graphs.parents(run)
            if run.starts:
                yield from _too_early(case, run, parents)
            elif run.status == "skipped" and not _never_comes(case, parents) and not _was_left_out(case, run):
                yield _about(run, "left out", "was skipped, and all that it waited for came", run.moment("finishedAt"))
        yield from _once_each(graphs, case.jobs[name])


def _too_early(case: Case, run: Run, parents: list[tuple[str, Run | None]]) -> Iterator[Finding]:
    began = run.starts[0].at
    alarms = [_met(case, when, parent) for when, parent in parents if when == "failed"]
    if alarms and not any(met is not None and met <= began + case.bounds.clock for met in alarms):
        yield _about(run, "alarm", "began, and none of those had failed whose failure it waits for", began)
    for when, parent in parents:
        met = _met(case, when, parent)
        if when != "failed" and (met is None or met > began + case.bounds.clock):
            name, status = ("nobody", None) if parent is None else (parent.id, parent.status)
            yield _about(run, "early", f"waits for the {when} of {name}, which is {status}, and began before", began)


def _met(case: Case, when: str, parent: Run | None) -> float | None:
    """When an edge was satisfied; what an end has told stays told, whatever a replay makes of the parent."""
    if parent is None:
        return None
    if when == "success":
        return parent.moment("finishedAt") if parent.status == "completed" else None
    if when == "failed" and parent.status != "failed" and not case.replays(parent):
        return None
    return left_place(case, parent)


def _never_comes(case: Case, parents: list[tuple[str, Run | None]]) -> bool:
    """Whether something that it waits for cannot come any more."""
    alarms = [parent for when, parent in parents if when == "failed"]
    if alarms and all(_met(case, "failed", parent) is None for parent in alarms):
        return True
    return any(when == "success" and (parent is None or parent.status != "completed") for when, parent in parents)


def _once_each(graphs: Graphs, job: Job) -> Iterator[Finding]:
    """Whenever its first parent has a run, so has it: one."""
    own = graphs.runs_of(job.id)
    for instant, above in graphs.runs_of(graphs.needs[job.id][0][0]).items():
        if all(run.status is None or run.status in _NEVER for run in above) and instant not in own:
            continue
        if instant not in own and instant is not None and _had_left(job, instant / MICRO):
            continue
        if len(own.get(instant, [])) != 1:
            message = f"has {len(own.get(instant, []))} runs of {job.id} below it, and not one"
            yield _about(above[0], "join", message, above[0].moment("finishedAt"))


def _was_left_out(case: Case, run: Run) -> bool:
    """Whether its job may have been cancelled between its instant and when that was fired."""
    decided = run.moment("finishedAt")
    return decided is not None and _had_left(case.jobs[run.job or ""], decided + case.bounds.clock)


def _had_left(job: Job, by: float) -> bool:
    """Whether it may have been cancelled by then: what is fired afterwards goes without it."""
    return any(
        each.kind in _LEAVES and each.outcome is not Outcome.FAIL and each.invoked <= by for each in job.operations
    )


def _about(run: Run, rule: str, message: str, at: float | None) -> Finding:
    return Finding(check="S22", rule=rule, message=message, run=run.id, job=run.job, at=at)


def woven(case: Case) -> dict[str, int]:
    """How often graphs went each of their ways."""
    graphs = case.graphs
    runs = [(run, graphs.parents(run)) for name in graphs.needs for run in case.jobs[name].runs]
    begun = [(run, parents) for run, parents in runs if run.starts]
    return {
        "joins": sum(sum(when == "success" for when, _ in parents) > 1 for _, parents in begun),
        "alarms": sum(any(when == "failed" for when, _ in parents) for _, parents in begun),
        "graphs that went on after a replay": sum(
            any(when == "success" and parent is not None and case.replays(parent) for when, parent in parents)
            for _, parents in begun
        ),
        "blocked behind a failure": sum(run.status == "pending" and graphs.may_wait(run) for run, _ in runs),
        "left out of their graph": sum(run.status == "skipped" for run, _ in runs),
    }
