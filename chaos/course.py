"""What happened when: every fault in order, and how late runs began in each quiet time between them."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from chaos.check import Case
from chaos.check.waits import Wait, in_quiet
from chaos.figures import percentiles


def faults(case: Case) -> list[dict[str, Any]]:
    """In order of their beginning; seconds count from the first call of a client."""
    return [
        {
            "at": round(each.began - case.began, 1),
            "kind": each.kind,
            "target": each.target,
            "lasted": round(each.ended - each.began, 1),
        }
        for each in case.faults.all
    ]


def quiet_times(case: Case, waits: Sequence[Wait]) -> list[dict[str, Any]]:
    """Each time without a fault or its aftermath, after which fault it came, and the lateness of what was due in it."""
    found: dict[int, list[Wait]] = defaultdict(list)
    ends = sorted(each.ended for each in case.faults.all)
    for each in waits:
        if (calm := in_quiet(case, each)) is not None:
            found[bisect_right(ends, each.at - each.late)].append(calm)
    return [
        {
            "from": round(calm[0].at - case.began, 1),
            "to": round(calm[-1].at - case.began, 1),
            "after": _last_before(case, calm[0].at),
            **percentiles([each.late for each in calm]),
        }
        for _, calm in sorted(found.items())
    ]


def _last_before(case: Case, at: float) -> str | None:
    """The fault that ended last."""
    over = [each for each in case.faults.all if each.ended < at]
    last = max(over, key=lambda each: each.ended, default=None)
    return None if last is None else f"{last.kind} {last.target}"
