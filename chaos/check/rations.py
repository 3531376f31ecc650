"""S26: a tenant never has more than its quota, and a slow key does not come in faster than it may.

That what was refused is not there all the same is seen where runs and jobs are that nobody explains: submissions.py.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from chaos.check.case import Case
from chaos.check.finding import Finding
from chaos.records import Operation, Outcome

PROCESSES = 2
"""APIs that share a limit: each may let in what the others have not told of yet."""
UNTOLD = 5.0
"""Seconds within which they tell: one, on a machine that is not busy."""
_RECOVERY = 5.0
_FORGETS = ("api", "postgres", "all", "proxy")
"""Whoever is struck here may have forgotten what was let in: all buckets are full again."""


def rations_exceeded(case: Case) -> Iterator[Finding]:
    for tenant, most in case.evidence.settings.get("quotas", {}).items():
        yield from _too_many(case, tenant, most)
    if pace := case.evidence.settings.get("pace"):
        for key, calls in _paced(case).items():
            yield from _too_fast(case, key, calls, pace)


def _too_many(case: Case, tenant: str, most: int) -> Iterator[Finding]:
    """Each job is there for certain from the answer to its creation until somebody wants it gone."""
    changes = [change for job in case.jobs.values() if job.tenant == tenant for change in _sure(job.operations)]
    there = 0
    for at, change, job in sorted(changes):
        there += change
        if there > most:
            message = f"{tenant} may have {most} jobs, and had {there} at once"
            yield Finding(check="S26", rule="quota", message=message, job=job, at=at)
            return


def _sure(operations: list[Operation]) -> Iterator[tuple[float, int, str]]:
    made = next((each for each in operations if each.kind == "createJob" and each.outcome is Outcome.OK), None)
    if made is None:
        return
    job = str((made.answer or {}).get("jobId"))
    ends = (
        each.invoked
        for each in operations
        if each.kind in {"cancelJob", "deleteJob"} and each.outcome is not Outcome.FAIL
    )
    gone = min(ends, default=None)
    if gone is None or gone > made.completed:
        yield made.completed, 1, job
        if gone is not None:
            yield gone, -1, job


def _paced(case: Case) -> dict[str, list[Operation]]:
    """What was handed in with slow keys, and acknowledged."""
    slow = {
        (each.answer or {})["keyId"]: list[Operation]()
        for each in case.evidence.operations
        if each.kind == "createKey" and each.outcome is Outcome.OK and (each.body or {}).get("rateLimit")
    }
    for each in case.evidence.operations:
        if each.by in slow and each.outcome is Outcome.OK:
            slow[each.by].append(each)
    return slow


def _too_fast(case: Case, key: str, calls: list[Operation], pace: dict[str, Any]) -> Iterator[Finding]:
    """Between two faults, however one looks at it: no more than the rate brings, and what each process did not know."""
    rate, burst = pace["perSecond"], pace["burst"]
    for begin, end in _calm(case):
        within = sorted(
            (each for each in calls if each.invoked >= begin and each.completed <= end), key=lambda c: c.invoked
        )
        for position, first in enumerate(within):
            until = first.completed
            for count, each in enumerate(within[position:], 1):
                until = max(until, each.completed)
                if count > PROCESSES * (burst + rate * UNTOLD) + rate * (until - first.invoked):
                    message = f"{key} handed in {count} runs in {until - first.invoked:.1f} s, at {rate:g} a second"
                    yield Finding(check="S26", rule="pace", message=message, at=until)
                    return


def _calm(case: Case) -> Iterator[tuple[float, float]]:
    struck = [each for each in case.faults.all if each.target.startswith(_FORGETS)]
    spans = [(0.0, case.began), *((each.began, each.ended + _RECOVERY) for each in struck)]
    spans.append((case.evidence.dump.taken, case.evidence.dump.taken))
    spans.sort()
    over = 0.0
    for (_, ended), (begins, _) in pairwise(spans):
        over = max(over, ended)
        if over < begins:
            yield over, begins


def refusals(case: Case) -> dict[str, int]:
    operations = case.evidence.operations
    return {
        "jobs refused by a quota": sum(each.status == 429 and each.kind == "createJob" for each in operations),
        "calls refused by a rate limit": sum(each.status == 429 and each.kind != "createJob" for each in operations),
    }
