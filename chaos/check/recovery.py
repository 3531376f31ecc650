"""How quickly the product is back: from each fault to what shows that it is overcome, by one rule for all who ask."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any, Final

from chaos.check.case import Case
from chaos.check.facts import Job, Run
from chaos.check.waits import held_back
from chaos.oracle import MICRO, seconds
from chaos.records import Effect, Fault

PROMISED: Final = {
    "worker kill to restart of its runs": 20.0,
    "scheduler kill to next fire": 10.0,
    "database accepting to first start": 5.0,
}
"""Seconds. A kill counts from the last restart of the database, if that came later."""
_DATABASE: Final = frozenset({"postgresKill", "postgresStop", "diskFull"})
_RESTARTS: Final = frozenset({"postgresKill", "postgresStop"})
_LAG: Final = 1.0
"""Seconds after its kill in which the last words of a process may still arrive."""


def promised(case: Case) -> dict[str, dict[str, Any]]:
    """What we promise, the number of cases, and the worst of them."""
    measured = (_worker_kills(case), _scheduler_kills(case), _database_restarts(case))
    return {
        name: _summary(bound, found) for (name, bound), found in zip(PROMISED.items(), map(list, measured), strict=True)
    }


def too_slow(recovery: dict[str, dict[str, Any]]) -> list[str]:
    """Which promises of recovery were not kept, in words."""
    return [
        f"{name}: {each['worst']:.2f} s, and {each['bound']:g} s is promised"
        for name, each in recovery.items()
        if each.get("worst", 0.0) > each["bound"]
    ]


def restarts(case: Case) -> Iterator[tuple[Fault, float]]:
    """Faults that took a run from its worker, and how long it was until that run began again.

    Left out is what came back because somebody wanted it to, or was kept back by its owner.
    """
    for run in case.restarted:
        if run.id in case.evidence.dump.decided:
            continue
        for before in run.starts:
            again = min((each.at for each in run.starts if each.fence > before.fence), default=None)
            if again is None or held_back(case, run, before.at, again):
                continue
            for fault in _interrupted(case, run, before, again):
                yield fault, max(0.0, again - _since(case, fault, again))


def _interrupted(case: Case, run: Run, before: Effect, again: float) -> Iterator[Fault]:
    """What struck its worker while it held the run: until the attempt was settled, or others began it."""
    until = min(_settled(run, before.fence), again)
    for fault in case.faults.upon(case.worker_of(before)):
        lag = _LAG if fault.kind == "kill" else 0.0
        if before.at <= fault.began + lag and fault.began <= until:
            yield fault


def _settled(run: Run, fence: int) -> float:
    """When the attempt was on record as over: it had failed, snoozed, or run into its time-out; or was lost."""
    row = run.attempt_of(fence)
    return math.inf if row is None or row["finishedAt"] is None else seconds(row["finishedAt"])


def _since(case: Case, fault: Fault, until: float) -> float:
    """From the kill, or the end of another fault; or from the end of the last trouble of the database, if later."""
    base = fault.began if fault.kind == "kill" else fault.ended
    return max([base, *_database_back(case, fault.began, until)])


def _database_back(case: Case, since: float, until: float) -> Iterable[float]:
    return (
        each.ended for each in case.faults.all if each.kind in _DATABASE and each.ended >= since and each.began <= until
    )


def _worker_kills(case: Case) -> Iterator[float]:
    return (took for fault, took in restarts(case) if _is_kill(fault, "worker"))


def _scheduler_kills(case: Case) -> Iterator[float]:
    """How long each job waited for its next fire: some are the survivor's own, others have to be found.

    A run is there when its instant has been fired; when it begins is up to the workers, who may be struck as well.
    """
    fired = [(job, _fires(job)) for job in case.jobs.values()]
    for kill in (fault for fault in case.faults.all if _is_kill(fault, "scheduler")):
        for job, fires in fired:
            position = bisect_left(fires, (kill.ended, 0.0))
            if position < len(fires):
                yield from _next_fire(case, kill, job, *fires[position])


def _next_fire(case: Case, kill: Fault, job: Job, made: float, instant: float) -> Iterator[float]:
    """From the kill, or from the instant if that came later; one that was passed over meanwhile had to be fired too."""
    passed_over = (max(first / MICRO, kill.began) for first, last in job.missed if last / MICRO >= kill.began)
    due = max(kill.began, min([instant, *passed_over]))
    if due <= kill.began + case.faults.aftermath:
        yield max(0.0, made - max([due, *_database_back(case, kill.began, made)]))


def _fires(job: Job) -> list[tuple[float, float]]:
    """When each run of its schedule was made, and for which instant."""
    if not any(each.recurring for each in job.definitions):
        return []
    own = (run for run in job.runs if run.id not in job.by_hand and run.row is not None)
    return sorted((run.moment("createdAt") or 0.0, run.scheduled or 0.0) for run in own)


def _database_restarts(case: Case) -> Iterator[float]:
    """From the database accepting to the first start of what nobody can have claimed before it crashed."""
    crashes = [fault for fault in case.faults.all if fault.kind in _RESTARTS]
    starts = sorted((run.starts[0].at, run.id) for run in case.runs.values() if run.starts) if crashes else []
    for fault in crashes:
        following = map(starts.__getitem__, range(bisect_left(starts, (fault.ended, "")), len(starts)))
        first = next((at for at, name in following if _is_born_after(case.runs[name], fault.ended)), None)
        if first is not None:
            yield first - fault.ended


def _is_born_after(run: Run, at: float) -> bool:
    """Handed in or fired since, or due since."""
    return max(run.moment("createdAt") or 0.0, run.scheduled or 0.0) >= at


def _is_kill(fault: Fault, target: str) -> bool:
    return fault.kind == "kill" and fault.target.startswith(target)


def _summary(bound: float, found: list[float]) -> dict[str, Any]:
    return {"cases": len(found), "bound": bound, **({"worst": round(max(found), 2)} if found else {})}
