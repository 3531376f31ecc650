"""S31: whoever has a process of its own leaves nobody behind: when it is over, all are gone whom it started."""

from collections.abc import Iterator
from typing import Any

from chaos.check.case import Case
from chaos.check.facts import Run
from chaos.check.finding import Finding
from chaos.oracle import seconds
from chaos.records import Effect

_TOLD = frozenset({"completed", "failed", "timed_out"})
"""Ends that only the worker itself can have told of: by then it has looked after everybody."""


def left_somebody(case: Case) -> Iterator[Finding]:
    """Somebody was alive after the end of the attempt that had started it, or of its worker, or of everything."""
    for run in case.runs.values():
        for start in run.starts:
            if start.isolated and (over := _over(case, run, start)) is not None:
                last = max((each.at for each in (*run.beats, *run.ends) if each.nonce == start.nonce), default=start.at)
                if last - over > case.bounds.guardian:
                    message = f"left somebody behind who was alive {last - over:.1f} s after it was over"
                    yield Finding(check="S31", rule="stray", message=message, run=run.id, job=run.job, at=last)
    if case.evidence.dump.quiet:
        for process in case.evidence.dump.left:
            message = f"the process {process} of a command was there when nothing went on any more"
            yield Finding(check="S31", rule="left", message=message)


def _over(case: Case, run: Run, start: Effect) -> float | None:
    """When everybody whom this attempt had started must have been gone."""
    row, found = run.attempt_of(start.fence), list[float]()
    if row is not None and row["status"] in _TOLD and row["finishedAt"] is not None and not row.get("lateResult"):
        found.append(seconds(row["finishedAt"]))
    if run.status == "completed" and start is max(run.starts, key=lambda each: each.fence):
        found.append(run.moment("finishedAt") or start.at)
    if (worker := case.worker_of(start)) is not None and (death := case.faults.death(worker, start.at)) is not None:
        found.append(death)
    return min(found, default=None)


def commanded(case: Case) -> dict[str, int]:
    """How often commands came to each kind of end; nothing where the machine lets nobody run any."""
    if not case.evidence.settings.get("commands"):
        return {}
    runs = [run for run in case.runs.values() if run.starts and run.submission and is_command(run.submission.body)]
    left = [run for run in runs if run.submission and run.submission.body["payload"].get("leaves")]
    return {
        "commands that left somebody behind": sum(run.status == "completed" for run in left),
        "commands that ran out of time": sum(any(_timed_out(row) for row in run.attempts) for run in left),
        "commands that were cancelled": sum(run.status == "cancelled" for run in left),
    }


def is_command(body: dict[str, Any]) -> bool:
    """Whether a job or a run that was defined like this is one."""
    handler = body.get("handler")
    return isinstance(handler, dict) and handler.get("type") == "command"


def _timed_out(row: dict[str, Any]) -> bool:
    return bool(row["status"] == "timed_out")
