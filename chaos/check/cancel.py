"""S21: a run that was cancelled is over when the answer says so: nothing of it begins after that, or goes on."""

from collections.abc import Iterator

from chaos.check.case import Case
from chaos.check.facts import Run
from chaos.check.finding import Finding
from chaos.oracle import seconds
from chaos.records import Effect, Operation, Outcome

OVER = frozenset({"cancelled", "completed"})
"""How a run may end that was asked to stop: one of the two has won."""


def cancelled_wrongly(case: Case) -> Iterator[Finding]:
    for each in asked(case):
        run, answer = case.runs.get(each.run or ""), each.answer or {}
        if run is None or run.row is None:
            continue  # S1 and S12 ask where it is
        if answer["status"] in OVER:
            yield from _is_over(case, run, answer["status"], seconds(answer["finishedAt"]))
        elif answer.get("stopsBy"):
            yield from has_stopped(case, run, seconds(answer["cancelRequestedAt"]), seconds(answer["stopsBy"]))
        elif answer["status"] in {"pending", "running"}:
            yield _about(
                run, "unheard", f"was to be cancelled, and the answer is just {answer['status']}", each.completed
            )


def asked(case: Case) -> Iterator[Operation]:
    return (each for each in case.evidence.operations if each.kind == "cancelRun" and each.outcome is Outcome.OK)


def _is_over(case: Case, run: Run, status: str, at: float) -> Iterator[Finding]:
    """It had ended when the answer was given."""
    if run.status != status:
        yield _about(run, "changed", f"was told to be {status}, and is {run.status}", at)
    for each in (*run.starts, *run.beats, *run.ends):
        if each.at > at + case.bounds.clock and not _struck(case, each, at):
            yield _about(run, "alive", f"was alive {each.at - at:.3f} s after it had been {status}", each.at)
            return


def has_stopped(case: Case, run: Run, since: float, until: float, check: str = "S21") -> Iterator[Finding]:
    """Somebody held it: it may have been begun until its holder heard of it, by nobody else, and not be tried again."""
    if run.status not in OVER:
        yield _about(run, "lost", f"was asked to stop, and is {run.status}", since, check)
    before = [start for start in run.starts if start.at <= since]
    after = [start for start in run.starts if start.at > since + case.bounds.clock]
    held = bool(before) and not _was_over(run, before[-1], since)
    if len(after) > (0 if held else 1):
        yield _about(run, "again", "began again after it had been asked to stop", after[-1].at, check)
    for each in (*run.starts, *run.beats, *run.ends):
        if each.at > until + case.bounds.clock and not _struck(case, each, since):
            yield _about(run, "went on", f"was alive {each.at - until:.3f} s after it had to be over", each.at, check)
            return
    ended = run.moment("finishedAt") or 0.0
    holder = case.worker_of(run.starts[-1]) if run.starts else None
    if ended > until + case.bounds.clock and not case.faults.held(holder, since, ended):
        yield _about(run, "late", f"was over {ended - until:.3f} s later than was told", ended, check)


def _was_over(run: Run, start: Effect, at: float) -> bool:
    row = run.attempt_of(start.fence)
    return row is not None and row["finishedAt"] is not None and seconds(row["finishedAt"]) <= at


def _struck(case: Case, effect: Effect, since: float) -> bool:
    """A worker that stood still, or was cut off, hears nothing; what it begins or goes on with is fenced out."""
    return case.faults.held(case.worker_of(effect), since - case.bounds.lease, effect.at)


def _about(run: Run, rule: str, message: str, at: float, check: str = "S21") -> Finding:
    return Finding(check=check, rule=rule, message=message, run=run.id, job=run.job, at=at)


def cancels(case: Case) -> dict[str, int]:
    """How often each side of the race won, and where the run was."""
    answers = [(each.run, each.answer or {}) for each in asked(case)]
    told = [(case.runs.get(name or ""), answer) for name, answer in answers]
    asked_to_stop = [run for run, answer in told if run is not None and answer.get("stopsBy")]
    waiting = [run for run, answer in told if run is not None and answer["status"] == "cancelled"]
    return {
        "cancelled while waiting": sum(not run.starts for run in waiting),
        "cancelled between attempts": sum(bool(run.starts) for run in waiting),
        "cancelled while running": sum(run.status == "cancelled" for run in asked_to_stop),
        "completed before the cancel": sum(answer["status"] == "completed" for _, answer in told),
        "completed in spite of a cancel": sum(run.status == "completed" for run in asked_to_stop),
    }
