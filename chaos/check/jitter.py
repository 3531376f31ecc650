"""S14: each run of a job with jitter has the job's own place: after its instant, inside the window, before the next."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from chaos.check.case import Case
from chaos.check.facts import Run
from chaos.check.finding import Finding
from chaos.check.occurrences import Occurrences
from chaos.oracle import MICRO, Definition

_MILLISECOND = 1_000
_STEP = 2 * _MILLISECOND
"""Microseconds: places are whole milliseconds."""


class Place(NamedTuple):
    run: Run
    instant: int
    offset: int
    """Microseconds from the instant to when the run may begin."""
    room: int
    """Microseconds to the next instant of the recurrence, or to the end of the window if that comes first."""


def out_of_place(case: Case, found: Occurrences) -> Iterator[Finding]:
    by_window: dict[int, list[Place]] = defaultdict(list)
    nominal: dict[Definition, list[int]] = {}
    for instant, runs in found.records.items():
        owner = found.sole(instant)
        if owner is None:
            continue
        if owner.jitter and owner not in nominal:
            nominal[owner] = owner.nominal(case.began, case.cutoff + owner.jitter / MICRO)
        for run in runs:
            if run.status != "skipped" and (due := run.due) is not None:
                room = _room(nominal[owner], instant, owner.jitter) if owner.jitter else 0
                by_window[owner.jitter].append(Place(run, instant, round(due * MICRO) - instant, room))
    for window, places in by_window.items():
        yield from _outside(window, places)
        yield from _unsteady(case, window, places)


def _room(nominal: list[int], instant: int, window: int) -> int:
    position = bisect_right(nominal, instant)
    return min(window, nominal[position] - instant) if position < len(nominal) else window


def _outside(window: int, places: list[Place]) -> Iterator[Finding]:
    for place in places:
        if place.offset < 0:
            yield _about(place, "early", f"is due {-place.offset / MICRO:.3f} s before its instant")
        elif place.offset > window or (window and place.offset == window):
            told = f"is due {place.offset / MICRO:.3f} s after its instant, and {window / MICRO:g} s is its window"
            yield _about(place, "window", told)
        elif window and place.offset >= place.room:
            yield _about(place, "next", "is due when the next instant has come")


def _unsteady(case: Case, window: int, places: list[Place]) -> Iterator[Finding]:
    """The same place every time, before a next instant that comes sooner what is left of it; at once if it was late."""
    usual: dict[int, int] = {}
    for place in places:
        usual[place.room] = max(place.offset, usual.get(place.room, 0))
    widest = max(usual)
    for place in places:
        made = place.run.moment("createdAt") or 0.0
        late = made - place.instant / MICRO > case.bounds.grace - 1
        # Less room than the window: what its place in the window is, only one with all the room there is would say.
        wanted = usual[widest] % _in_whole(place.room) if widest == window and place.room else usual[place.room]
        if abs(place.offset - wanted) > _STEP and not (late and place.offset == 0):
            told = f"is due {place.offset / MICRO:.3f} s after its instant, others of its job {wanted / MICRO:.3f} s"
            yield _about(place, "place", told)


def _in_whole(room: int) -> int:
    """Distances are whole milliseconds too: what is left after many of them would differ by as many parts of one."""
    return max(1, round(room / _MILLISECOND)) * _MILLISECOND


def _about(place: Place, rule: str, message: str) -> Finding:
    run, at = place.run, place.instant / MICRO
    return Finding(check="S14", rule=rule, message=f"the run of {at:.6f} {message}", run=run.id, job=run.job, at=at)
