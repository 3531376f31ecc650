"""The blind cross-check: starts are matched to the instants that ran by time alone, whatever the product calls them.

Starts in order of time, each given to the open window that closes first, which is optimal for intervals. If what is
left over differs from what the labels say, the product mislabels occurrences (S12).
"""

import heapq
import math
from bisect import bisect_right
from collections.abc import Iterator

from chaos.check.case import Case
from chaos.check.facts import Job
from chaos.check.finding import Finding
from chaos.check.occurrences import Class, Occurrences
from chaos.oracle import MICRO, Definition
from chaos.timeline import Gate


def mislabelled(case: Case, found_of: dict[str, Occurrences]) -> Iterator[Finding]:
    for job in case.jobs.values():
        found = found_of.get(job.id)
        if found is None or job.unsure_by_hand or not job.definitions or not all(map(_by_time, job.definitions)):
            continue
        starts = sorted(run.starts[0].at for run in job.runs if run.starts and run.id not in job.by_hand)
        starts = starts[: bisect_right(starts, case.cutoff)]
        windows, needed = _windows(case, found)
        strays, empty = _matched(starts, windows)
        surplus = found.surplus(case.cutoff)
        if len(strays) > surplus:
            message = f"{len(strays)} starts belong, by their time, to no instant of the job"
            numbers = {"starts": strays[:10], "by label": surplus}
            yield Finding(check="S12", rule="blind", message=message, job=job.id, at=strays[-1], numbers=numbers)
        unfilled = sorted(needed.intersection(empty))
        if len(unfilled) > surplus + len(strays):
            message = f"{len(unfilled)} instants ran by their labels, and no start falls to them"
            yield Finding(check="S12", rule="blind", message=message, job=job.id, at=unfilled[0])


def _by_time(definition: Definition) -> bool:
    """Whether its runs begin when it is time, and wait for nothing else."""
    return definition.recurring and definition.concurrency is None and definition.overlap in {"skip", "allow"}


def _windows(case: Case, found: Occurrences) -> tuple[list[tuple[float, float]], set[float]]:
    """When each instant may start that did by its label, before the cut-off; and which of them had to."""
    windows, needed = [], set()
    jitter = max(each.jitter for each in found.job.definitions) / MICRO
    for instant, class_ in found.classes.items():
        starts = [run.starts[0].at for run in found.records.get(instant, ()) if run.starts]
        if not starts or min(starts) > case.cutoff:
            continue  # it did not run, and the other checks ask why; or its start is not looked at, like itself
        begin = instant / MICRO - case.bounds.early
        end = begin + case.bounds.lateness + jitter
        windows.append((begin, case.faults.postponed(_held(found.job, begin, end, case.bounds.lateness))))
        if class_ is Class.MUST:
            needed.add(begin)
    return windows, needed


def _held(job: Job, begin: float, end: float, lateness: float) -> float:
    """The end of a window, put off by pauses that fall into it: what was made before waits until they are over."""
    timeline = job.timeline
    for since, until, standings in zip(
        timeline.moments, [*timeline.moments[1:], math.inf], timeline.possible, strict=True
    ):
        if since <= end and until > begin and any(each is not None and each.gate is Gate.PAUSED for each in standings):
            end = max(end, until + lateness)
    return end


def _matched(starts: list[float], windows: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Starts without a window, and the beginnings of windows without a start."""
    waiting = sorted(windows, reverse=True)
    still_open: list[tuple[float, float]] = []
    strays, empty = [], []
    for at in starts:
        while waiting and waiting[-1][0] <= at:
            begin, end = waiting.pop()
            heapq.heappush(still_open, (end, begin))
        while still_open and still_open[0][0] < at:
            empty.append(heapq.heappop(still_open)[1])
        if still_open:
            heapq.heappop(still_open)
        else:
            strays.append(at)
    return strays, empty + [begin for _, begin in still_open] + [begin for begin, _ in waiting]
