"""S19: what a handler writes in the transaction of its success is there exactly once if it succeeded, and else not."""

from collections.abc import Iterator

from chaos.check.case import Case
from chaos.check.facts import Run
from chaos.check.finding import Finding
from chaos.records import BOOKING


def booked_wrongly(case: Case) -> Iterator[Finding]:
    booked = case.evidence.dump.booked
    for run in case.runs.values():
        if run.id in booked or _books(run):
            yield from _wrong(run, booked.get(run.id, []))
    for name in booked.keys() - case.runs.keys():
        yield Finding(check="S19", rule="unknown", message="left an effect, and nobody knows the run", run=name)


def _books(run: Run) -> bool:
    return run.submission is not None and run.submission.body.get("handler") in BOOKING and run.row is not None


def _wrong(run: Run, fences: list[int]) -> Iterator[Finding]:
    if len(fences) > 1:
        yield _about(run, "twice", f"left its effect {len(fences)} times, by the fences {fences}")
    elif fences and run.status != "completed":
        yield _about(run, "leftover", f"is {run.status}, and its effect is there")
    elif not fences and run.status == "completed":
        yield _about(run, "missing", "is completed, and its effect is not there")
    elif fences:
        by = next((row["fence"] for row in run.attempts if row["status"] == "completed"), fences[0])
        if by != fences[0]:
            yield _about(run, "fence", f"was completed by fence {by}, and its effect is that of {fences[0]}")


def _about(run: Run, rule: str, message: str) -> Finding:
    at = run.starts[-1].at if run.starts else None
    return Finding(check="S19", rule=rule, message=message, run=run.id, job=run.job, at=at)
