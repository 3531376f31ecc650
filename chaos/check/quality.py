"""L1 to L6: how late, how quickly back, how fair, how often twice, how often there; measured, not forbidden."""

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from chaos.check.case import Case
from chaos.check.fairness import fair_shares
from chaos.check.poison import poisonous
from chaos.check.recovery import promised, restarts, unpromised
from chaos.check.submissions import TERMINAL
from chaos.check.waits import Wait, first_starts, in_quiet
from chaos.figures import percentiles
from chaos.oracle import seconds
from chaos.records import Fault, Operation, Outcome

QUIET: Final = "quiet"
AROUND: Final = "around faults"

_NO_CALLS = frozenset({"submitInside", "weighTenant"})
"""What clients write in transactions of their own, and what operators do on the machine: no API is asked."""
SLOT = 10.0
"""Seconds over which availability is counted."""
_CAUGHT_UP = 1.0
"""Seconds of lateness below which there is no backlog."""
_RETRIED = frozenset({"failed", "timed_out", "released", "snoozed"})


def measures(case: Case) -> dict[str, dict[str, Any]]:
    waits = first_starts(case)
    return {
        "L1": lateness(case, waits),
        "L2": recovery(case, waits),
        "L3": stuck(case),
        "L4": starvation(case, waits),
        "L5": duplicates(case),
        "L6": availability(case),
    }


def lateness(case: Case, waits: Sequence[Wait]) -> dict[str, Any]:
    """L1: from the time a run was for to its first start, by whether that time was quiet or around faults."""
    quiet: list[float] = []
    around: list[float] = []
    for wait in waits:
        calm = in_quiet(case, wait)
        (around if calm is None else quiet).append((calm or wait).late)
    return {QUIET: percentiles(quiet), AROUND: percentiles(around)}


def recovery(case: Case, waits: Sequence[Wait]) -> dict[str, Any]:
    """L2: what we promise; and the worst by kind of fault, until what it hit began again and nothing was late any more.

    Both by the same rule (recovery.py).
    """
    worst: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))

    def note(fault: Fault, name: str, value: float) -> None:
        numbers = worst[f"{fault.kind} {fault.target.rstrip('0123456789-')}"]
        numbers[name] = max(numbers[name], round(value, 2))

    began = [at for at, _, _ in waits]
    for fault in case.faults.all:
        note(fault, "backlog", _backlog(case, fault, waits, began))
    for each in restarts(case):
        note(each.fault, "restart", each.took)
    by_fault = {name: dict(numbers) for name, numbers in worst.items()}
    return {"promised": promised(case), "unpromised": unpromised(case), "by fault": by_fault}


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


def starvation(case: Case, waits: Sequence[Wait]) -> dict[str, Any]:
    """L4: waits by tenant, and Jain's index of what each got for its weight while several had a backlog (1 is fair)."""
    by_tenant: dict[str, list[float]] = defaultdict(list)
    for _, late, tenant in waits:
        by_tenant[tenant].append(late)
    indexes = fair_shares(case, waits)
    jain = {"jain": round(sum(indexes) / len(indexes), 4), "worst slot": round(min(indexes), 4)} if indexes else {}
    tenants = {name: percentiles(each) for name, each in by_tenant.items()}
    return {"saturated slots": len(indexes), **jain, "tenants": tenants}


def duplicates(case: Case) -> dict[str, Any]:
    """L5: starts beyond the first, retries left out, in quiet times and around faults.

    A duplicate belongs to the fault that cost its run the worker it had before, however long it had to wait since:
    suspects run alone, a few at once.
    """
    runs = sum(bool(run.starts) for run in case.runs.values())
    quiet = around = 0
    for run in case.restarted:
        if poisonous(case, run):  # it kills whoever runs it, and that is no fault of ours
            continue
        ended = {end.fence for end in run.ends if end.failed}
        ended |= {row["fence"] for row in run.attempts if row["status"] in _RETRIED}
        for before, after in pairwise(run.starts):
            if before.fence not in ended:
                struck = case.faults.held(case.worker_of(before), before.at, after.at)
                calm = case.faults.quiet(after.at) and not struck
                around, quiet = around + (not calm), quiet + calm
    return {"runs": runs, QUIET: quiet, AROUND: around, "rate": (quiet + around) / max(runs, 1)}


def availability(case: Case) -> dict[str, Any]:
    """L6: the share of calls that were answered, by slots of ten seconds outside declared outages of the database.

    A call may be tried once more at the other API: that one of them is down, or cut off, is what there are two for. A
    refused connection is no answer, nor is an error of the server. A client's 4xx is one. Nobody knows what a client
    would have been told that left before, or that asked nobody but an API that a fault was on, answered or not.
    """
    calls: dict[int, list[Operation]] = defaultdict(list)
    for each in case.evidence.operations:
        if each.kind not in _NO_CALLS:
            calls[each.repeats or each.number].append(each)
    slots: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    tries = at_once = 0
    for call in calls.values():
        tried = call[:2]
        if tried[-1].abandoned or case.faults.down(tried[0].invoked, tried[-1].completed) or _asked_once(case, tried):
            continue
        tries, at_once = tries + 1, at_once + _answered(tried[0])
        slot = slots[int(tried[0].invoked / SLOT)]
        slot[0] += any(map(_answered, tried))
        slot[1] += 1
    good = sum(slot[0] for slot in slots.values())
    worst = min((slot[0] / slot[1] for slot in slots.values()), default=1.0)
    answered, first = good / max(tries, 1), at_once / max(tries, 1)
    return {"calls": tries, "answered": answered, "at the first try": first, "worst slot": worst, "slots": len(slots)}


def _asked_once(case: Case, tried: list[Operation]) -> bool:
    """Whether a client asked nobody else, when a fault was on whom it had asked."""
    only, *others = tried
    struck = case.faults.struck(f"api-{only.api}", only.invoked, only.completed)
    return struck and not others


def _answered(operation: Operation) -> bool:
    return operation.outcome is not Outcome.UNKNOWN and operation.status != 0


def _backlog(case: Case, fault: Fault, waits: Sequence[Wait], began: list[float]) -> float:
    following = min((each.began for each in case.faults.all if each.began > fault.ended), default=math.inf)
    late = 0.0
    for at, lateness, _ in waits[bisect_left(began, fault.ended) : bisect_right(began, following)]:
        if lateness > _CAUGHT_UP and at - lateness < fault.ended:
            late = at - fault.ended
    return late
