"""How quickly the product is back: from each fault to what shows that it is overcome, by one rule for all who ask."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from chaos.check.case import Case
from chaos.check.facts import Job, Run
from chaos.check.poison import poisonous
from chaos.check.waits import held_back
from chaos.oracle import MICRO, seconds
from chaos.records import Fault

PROMISED: Final = {
    "worker kill to restart of its runs": 20.0,
    "scheduler kill to next fire": 10.0,
    "database accepting to first start": 5.0,
}
"""Seconds. A worker's kill counts from the last restart of the database, if that came later."""
BYSTANDERS: Final = "poison to restart of who was beside it"
"""Measured, and not promised: whoever may have been the one that killed its worker waits for its turn to run alone."""
_RESTARTS: Final = frozenset({"postgresKill", "postgresStop", "outage"})
_LAG: Final = 1.0
"""Seconds after its kill in which the last words of a process may still arrive."""


class Restart(NamedTuple):
    """A run that a fault took from its worker, and how long it was until it began again."""

    run: Run
    fault: Fault
    took: float


class _Case(NamedTuple):
    fault: Fault
    took: float


class _Hold(NamedTuple):
    """A worker's claim of a run."""

    since: float
    fence: int
    worker: str | None


def promised(case: Case) -> dict[str, dict[str, Any]]:
    """What we promise, of how many faults it was measured, in how many cases, and the worst of them."""
    measured = (_worker_kills(case), _scheduler_kills(case), _database_restarts(case))
    return {
        name: _summary(bound, found) for (name, bound), found in zip(PROMISED.items(), map(list, measured), strict=True)
    }


def unpromised(case: Case) -> dict[str, dict[str, Any]]:
    """As `promised`, of what we only measure."""
    found = (each for each in restarts(case) if each.fault.kind == "poison" and not poisonous(case, each.run))
    beside = [_Case(each.fault, each.took) for each in found]
    return {BYSTANDERS: _summary(None, beside)}


def too_slow(recovery: dict[str, dict[str, Any]]) -> list[str]:
    """Which promises of recovery were not kept, in words."""
    return [
        f"{name}: {each['worst']:.2f} s, and {each['bound']:g} s is promised"
        for name, each in recovery.items()
        if each.get("worst", 0.0) > each["bound"]
    ]


def restarts(case: Case) -> Iterator[Restart]:
    """What faults took from its worker, and how long it was until it began again.

    Left out is what came back because somebody wanted it to, or was kept back by its owner.
    """
    for run, holds in _holds(case):
        if run.id in case.evidence.dump.decided:
            continue
        for hold in holds:
            again = min((each.at for each in run.starts if each.fence > hold.fence), default=None)
            if again is None or held_back(case, run, hold.since, again):
                continue
            for fault in _interrupted(case, run, hold, again):
                yield Restart(run, fault, max(0.0, again - _since(case, fault, again)))


def _holds(case: Case) -> Iterator[tuple[Run, list[_Hold]]]:
    """By run: what the ledger saw begin; and what is on record as lost, though its handler never said a word."""
    for run in case.runs.values():
        if not run.starts or (len(run.starts) < 2 and len(run.attempts) < 2):
            continue
        holds = [_Hold(each.at, each.fence, case.worker_of(each)) for each in run.starts]
        begun = {each.fence for each in run.starts}
        silent = (row for row in run.attempts if row["status"] == "lost" and row["fence"] not in begun)
        holds += [
            _Hold(seconds(row["startedAt"]), row["fence"], case.holder_of(row["fence"]))
            for row in silent
            if row["startedAt"] is not None
        ]
        if len(holds) > 1:
            yield run, holds


def _interrupted(case: Case, run: Run, hold: _Hold, again: float) -> Iterator[Fault]:
    """What struck its worker while it held the run: until the attempt was settled, or others began it."""
    until = min(_settled(run, hold.fence), again)
    for fault in case.faults.upon(hold.worker):
        lag = _LAG if fault.kind == "kill" else 0.0
        if hold.since <= fault.began + lag and fault.began <= until:
            yield fault


def _settled(run: Run, fence: int) -> float:
    """When the attempt was on record as over: it had failed, snoozed, or run into its time-out; or was lost."""
    row = run.attempt_of(fence)
    return math.inf if row is None or row["finishedAt"] is None else seconds(row["finishedAt"])


def _since(case: Case, fault: Fault, until: float) -> float:
    """From the kill, or the end of another fault; or from the last restart of the database, if later."""
    base = fault.began if fault.kind == "kill" else fault.ended
    return max([base, *_database_back(case, fault.began, until)])


def _database_back(case: Case, since: float, until: float) -> Iterable[float]:
    return (
        each.ended for each in case.faults.all if each.kind in _RESTARTS and each.ended >= since and each.began <= until
    )


def _worker_kills(case: Case) -> Iterator[_Case]:
    return (_Case(each.fault, each.took) for each in restarts(case) if _is_kill(each.fault, "worker"))


def _scheduler_kills(case: Case) -> Iterator[_Case]:
    """How long each job waited for its next fire: some are the survivor's own, others have to be found.

    A run is there when its instant has been fired; when it begins is up to the workers, who may be struck as well.
    """
    fired = [(job, _fires(job)) for job in case.jobs.values()]
    for kill in (fault for fault in case.faults.all if _is_kill(fault, "scheduler")):
        for job, fires in fired:
            position = bisect_left(fires, (kill.ended, 0.0))
            if position < len(fires):
                yield from _next_fire(case, kill, job, *fires[position])


def _next_fire(case: Case, kill: Fault, job: Job, made: float, instant: float) -> Iterator[_Case]:
    """From the kill, or from the instant if that came later; one that was passed over meanwhile had to be fired too.

    Whatever else happens meanwhile, the database's restart too, is no excuse.
    """
    passed_over = (max(first / MICRO, kill.began) for first, last in job.missed if last / MICRO >= kill.began)
    due = max(kill.began, min([instant, *passed_over]))
    if due <= kill.began + case.faults.aftermath:
        yield _Case(kill, max(0.0, made - due))


def _fires(job: Job) -> list[tuple[float, float]]:
    """When each run of its schedule was made, and for which instant."""
    if not any(each.recurring for each in job.definitions):
        return []
    own = (run for run in job.runs if run.id not in job.by_hand and run.row is not None)
    return sorted((run.moment("createdAt") or 0.0, run.scheduled or 0.0) for run in own)


def _database_restarts(case: Case) -> Iterator[_Case]:
    """From the database accepting to the first start of what nobody can have claimed before it crashed."""
    crashes = [fault for fault in case.faults.all if fault.kind in _RESTARTS]
    starts = sorted((run.starts[0].at, run.id) for run in case.runs.values() if run.starts) if crashes else []
    for fault in crashes:
        following = map(starts.__getitem__, range(bisect_left(starts, (fault.ended, "")), len(starts)))
        first = next((at for at, name in following if _is_born_after(case.runs[name], fault.ended)), None)
        if first is not None:
            yield _Case(fault, first - fault.ended)


def _is_born_after(run: Run, at: float) -> bool:
    """Handed in or fired since, or due since."""
    return max(run.moment("createdAt") or 0.0, run.scheduled or 0.0) >= at


def _is_kill(fault: Fault, target: str) -> bool:
    return fault.kind == "kill" and fault.target.startswith(target)


def _summary(bound: float | None, found: list[_Case]) -> dict[str, Any]:
    faults = {(each.fault.began, each.fault.target) for each in found}
    promise = {} if bound is None else {"bound": bound}
    worst = {"worst": round(max(each.took for each in found), 2)} if found else {}
    return {"faults": len(faults), "cases": len(found), **promise, **worst}
