"""L1 to L6: how late, how quickly back, how fair, how often twice, how often there; measured, not forbidden."""

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from chaos.check.case import Case
from chaos.check.faultbook import strikes_everybody
from chaos.check.submissions import TERMINAL
from chaos.oracle import seconds
from chaos.records import Fault, Operation, Outcome, waits_for_others

_NO_CALLS = frozenset({"submitInside", "weighTenant"})
"""What clients write in transactions of their own, and what operators do on the machine: no API is asked."""
SLOT = 10.0
"""Seconds over which availability is counted."""
_CAUGHT_UP = 1.0
"""Seconds of lateness below which there is no backlog."""
_RETRIED = frozenset({"failed", "timed_out", "released", "snoozed"})

Waits = list[tuple[float, float, str]]
"""First starts: when, how late, whose."""


def measures(case: Case) -> dict[str, dict[str, Any]]:
    waits = sorted(_waits(case))
    return {
        "L1": lateness(case, waits),
        "L2": recovery(case, waits),
        "L3": stuck(case),
        "L4": starvation(waits),
        "L5": duplicates(case),
        "L6": availability(case),
    }


def lateness(case: Case, waits: Waits) -> dict[str, Any]:
    """L1: from the time a run was for to its first start, in quiet times and around faults."""
    quiet: list[float] = []
    around: list[float] = []
    for at, late, _ in waits:
        (around if case.faults.troubled(at - late) or case.faults.troubled(at) else quiet).append(late)
    return {"quiet": _percentiles(quiet), "around faults": _percentiles(around)}


def recovery(case: Case, waits: Waits) -> dict[str, Any]:
    """L2: from a fault to the next start of what it hit, and until nothing was late any more; the worst by kind."""
    worst: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))

    def note(fault: Fault, name: str, value: float) -> None:
        numbers = worst[f"{fault.kind} {fault.target.rstrip('0123456789-')}"]
        numbers[name] = max(numbers[name], value)

    began = [at for at, _, _ in waits]
    for fault in case.faults.all:
        note(fault, "backlog", _backlog(case, fault, waits, began))
        if strikes_everybody(fault) and (position := bisect_left(began, fault.ended)) < len(began):
            note(fault, "first start", began[position] - fault.ended)
    for fault, again in _restarts(case):
        note(fault, "restart", again - (fault.began if fault.kind == "kill" else fault.ended))
    return {name: dict(numbers) for name, numbers in worst.items()}


def stuck(case: Case) -> dict[str, Any]:
    """L3: runs that should be over, and schedules whose next instant is past."""
    bound = case.evidence.dump.taken - 2 * case.bounds.lease
    rows = [run.row for run in case.runs.values() if run.row is not None and run.row["status"] not in TERMINAL]
    behind = [
        job.id
        for job in case.jobs.values()
        if job.row and job.row.get("nextRunAt") and seconds(job.row["nextRunAt"]) < case.cutoff
    ]
    running = sum(row["status"] == "running" and seconds(row["scheduledAt"]) < bound for row in rows)
    return {"quiet": case.evidence.dump.quiet, "running": running, "unfinished": len(rows), "behind": behind[:20]}


def starvation(waits: Waits) -> dict[str, Any]:
    """L4: waits by tenant, and Jain's index of their means (1 is fair)."""
    by_tenant: dict[str, list[float]] = defaultdict(list)
    for _, late, tenant in waits:
        by_tenant[tenant].append(max(late, 0.0))
    means = [sum(each) / len(each) + 0.001 for each in by_tenant.values()]
    jain = sum(means) ** 2 / (len(means) * sum(mean**2 for mean in means)) if means else 1.0
    return {"jain": jain, "tenants": {name: _percentiles(each) for name, each in by_tenant.items()}}


def duplicates(case: Case) -> dict[str, Any]:
    """L5: starts beyond the first, retries left out, in quiet times and around faults."""
    runs = sum(bool(run.starts) for run in case.runs.values())
    quiet = around = 0
    for run in case.restarted:
        ended = {end.fence for end in run.ends if end.failed}
        ended |= {row["fence"] for row in run.attempts if row["status"] in _RETRIED}
        for before, after in pairwise(run.starts):
            if before.fence not in ended:
                troubled = case.faults.troubled(after.at)
                around, quiet = around + troubled, quiet + (not troubled)
    return {"runs": runs, "quiet": quiet, "around faults": around, "rate": (quiet + around) / max(runs, 1)}


def availability(case: Case) -> dict[str, Any]:
    """L6: the share of calls that were answered, by slots of ten seconds outside declared outages of the database.

    A call may be tried once more at the other API: that one of them is down, or cut off, is what there are two for. A
    refused connection is no answer, nor is an error of the server. A client's 4xx is one.
    """
    calls: dict[int, list[Operation]] = defaultdict(list)
    for each in case.evidence.operations:
        if each.kind not in _NO_CALLS:
            calls[each.repeats or each.number].append(each)
    slots: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    tries = at_once = 0
    for call in calls.values():
        tried = call[:2]
        if case.faults.down(tried[0].invoked, tried[-1].completed):
            continue
        tries, at_once = tries + 1, at_once + _answered(tried[0])
        slot = slots[int(tried[0].invoked / SLOT)]
        slot[0] += any(map(_answered, tried))
        slot[1] += 1
    good = sum(slot[0] for slot in slots.values())
    worst = min((slot[0] / slot[1] for slot in slots.values()), default=1.0)
    answered, first = good / max(tries, 1), at_once / max(tries, 1)
    return {"calls": tries, "answered": answered, "at the first try": first, "worst slot": worst, "slots": len(slots)}


def _answered(operation: Operation) -> bool:
    return operation.outcome is not Outcome.UNKNOWN and operation.status != 0


def _waits(case: Case) -> Waits:
    found = []
    waits = waits_for_others(case.evidence)
    for run in case.runs.values():
        if run.starts and not waits(start := run.starts[0]):
            due = start.scheduled_at or run.scheduled or start.at
            if run.submission is not None:
                due = max(due, run.submission.not_before)
            elif run.job is not None:
                due = max(due, run.due or 0.0)
            found.append((start.at, start.at - due, start.tenant))
    return found


def _backlog(case: Case, fault: Fault, waits: Waits, began: list[float]) -> float:
    following = min((each.began for each in case.faults.all if each.began > fault.ended), default=math.inf)
    late = 0.0
    for at, lateness, _ in waits[bisect_left(began, fault.ended) : bisect_right(began, following)]:
        if lateness > _CAUGHT_UP and at - lateness < fault.ended:
            late = at - fault.ended
    return late


def _restarts(case: Case) -> Iterator[tuple[Fault, float]]:
    """Faults that interrupted a run, and when that run began again."""
    faults = case.faults.all
    begins = [fault.began for fault in faults]
    for run in case.restarted:
        for before, after in pairwise(run.starts):
            ended = min((end.at for end in run.ends if end.fence == before.fence), default=math.inf)
            worker = case.worker_of(before)
            for fault in faults[bisect_left(begins, before.at) : bisect_right(begins, min(after.at, ended))]:
                if worker in fault.workers:
                    yield fault, after.at


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {"count": 0}
    ordered = sorted(values)
    named = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
    shares = {name: ordered[min(int(share * len(ordered)), len(ordered) - 1)] for name, share in named.items()}
    return {"count": len(ordered), **shares, "max": ordered[-1]}
