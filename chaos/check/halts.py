"""When somebody could do what falls to schedulers: fire what has come up, take back what a dead worker held.

One that stands does it for all, so what happens to another explains nothing. Only while none stands, the database is
away, or more was handed in on purpose than can be done, does everything wait.
"""

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from chaos.check.bounds import Bounds
from chaos.check.faultbook import FaultBook, strikes_everybody
from chaos.records import Fault

Span = tuple[float, float]

BACK: Final = 10.0
"""Seconds after which whoever was killed, stood still or lost its connection is at work again: what is promised for the
kill of a scheduler, and twice what is promised for the database."""
FIRES: Final = 15.0
"""Seconds in which one that stands fires whatever has come up: what is another's it takes when that is 6 s late, and
looks for that every 2 s. It is half of the grace; with less than that, a busy machine would be taken for a fault."""
_SILENT: Final = frozenset({"partition", "stall", "halfOpen"})
"""Nobody is told that such a wire is dead: what was asked through it is waited for, up to a time-out."""
_TOO_MUCH: Final = "rush"
"""Whoever stood still before it has all that to catch up with, beside as much work as there is room for."""
_HARMLESS: Final = frozenset({"clockJump", "delay"})
"""What keeps no scheduler from its work: only the database's clock is asked, and a delay is less than a second."""


def done_by(faults: FaultBook, bounds: Bounds, since: float, needs: float) -> float:
    """When one and the same scheduler had stood for `needs` seconds in a row since then; infinite if none ever did."""
    return min((_first(stands, since, needs) for stands in _stretches(faults, bounds)), default=math.inf)


def _first(stands: list[Span], since: float, needs: float) -> float:
    return next((begin for a, end in stands if (begin := max(a, since) + needs) <= end), math.inf)


@lru_cache(maxsize=1)
def _stretches(faults: FaultBook, bounds: Bounds) -> list[list[Span]]:
    """Of each scheduler: the times in which it stood, and the database with it."""
    away = [fault for fault in faults.all if strikes_everybody(fault) or fault.kind == _TOO_MUCH]
    if len(bounds.schedulers) < 2:
        # Where there is only one, or nobody knows of more, each restart is its own: of several, the next one's turn
        # comes when the one before is back.
        own = [fault for fault in faults.all if fault.target.startswith(("scheduler", "all"))]
        return [list(_between(_spans(bounds, [*away, *own])))]
    return [
        list(_between(_spans(bounds, [*away, *(fault for fault in faults.all if fault.target == name)])))
        for name in bounds.schedulers
    ]


def _spans(bounds: Bounds, faults: Iterable[Fault]) -> list[Span]:
    """When these keep somebody from its work."""
    return sorted(
        (fault.began, fault.ended + BACK + (bounds.recovery if fault.kind in _SILENT else 0.0))
        for fault in faults
        if fault.kind not in _HARMLESS
    )


def _between(spans: Iterable[Span]) -> Iterator[Span]:
    reached = -math.inf
    for begin, end in spans:
        if reached < begin:
            yield reached, begin
        reached = max(reached, end)
    yield reached, math.inf
