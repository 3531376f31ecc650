"""How many worker processes a machine runs: more while work piles up, fewer when they stand idle."""

import re
from typing import Final, NamedTuple, Self

from foliot.domain.errors import InvalidField

DEEP: Final = 1_000
"""Runs that wait: more of them for a while, and there are too few processes."""
DEEP_FOR: Final = 30.0
"""Seconds."""
IDLE_FOR: Final = 300.0
"""Seconds."""
BLIND_AFTER: Final = 20.0
"""Seconds between two looks after which nothing is known of the time between them."""
MOST: Final = 256

_BOUNDS: Final = re.compile(r"(\d{1,3}|auto)(?:\.\.(\d{1,3}|auto))?", re.ASCII)


class Bounds(NamedTuple):
    """So many processes at least, and so many at most."""

    least: int
    most: int

    @classmethod
    def parse(cls, text: str, cores: int) -> Self:
        """`4`, `auto` (one per core), or a range such as `1..8`, within which backlog and idle time decide."""
        match = _BOUNDS.fullmatch(text.strip())
        if match is None:
            raise _refused(text)
        least, most = (cores if word == "auto" else int(word) for word in (match[1], match[2] or match[1]))
        if not 1 <= least <= most <= MOST:
            raise _refused(text)
        return cls(least, most)

    @property
    def is_fixed(self) -> bool:
        return self.least == self.most

    def without(self, places: int) -> Self:
        """What is left when so many places are not to be filled again; one at least, unless none is left."""
        most = max(0, self.most - places)
        return type(self)(min(max(1, self.least - places), most), most)

    def within(self, processes: int) -> int:
        return min(max(processes, self.least), self.most)


def _refused(text: str) -> InvalidField:
    hint = f"a number from 1 to {MOST}, `auto` for one per core, or a range such as 1..8"
    return InvalidField("processes", f"{text[:40]!r} does not say how many", hint)


class Sight(NamedTuple):
    """What one look found."""

    at: float
    """Seconds of a clock that is never set."""
    processes: int
    busy: int
    """Processes with at least one run in hand."""
    backlog: int
    """Runs that wait for these processes; need not be counted further than just above `DEEP`."""


class Watch(NamedTuple):
    """What is known of the time before: since when it has been like this, at every look."""

    looked: float = float("-inf")
    deep_since: float | None = None
    idle_since: float | None = None


def decide(bounds: Bounds, watch: Watch, sight: Sight) -> tuple[Watch, int]:
    """How many processes there should be from now on, and what to remember until the next look.

    Twice as many when more than `DEEP` runs have waited for `DEEP_FOR`; one fewer when for `IDLE_FOR` nothing has
    waited and at least one process had nothing to do. Every change starts both clocks anew, so that what it brings is
    seen before the next: between going up and going down lie `IDLE_FOR` at least.
    """
    if sight.processes != bounds.within(sight.processes):
        return Watch(sight.at), bounds.within(sight.processes)
    known = watch if sight.at - watch.looked <= BLIND_AFTER else Watch()
    deep = _since(known.deep_since, sight.at, holds=sight.backlog > DEEP)
    idle = _since(known.idle_since, sight.at, holds=sight.backlog == 0 and sight.busy < sight.processes)
    if deep is not None and sight.at - deep >= DEEP_FOR and sight.processes < bounds.most:
        return Watch(sight.at), min(2 * sight.processes, bounds.most)
    if idle is not None and sight.at - idle >= IDLE_FOR and sight.processes > bounds.least:
        return Watch(sight.at), sight.processes - 1
    return Watch(sight.at, deep, idle), sight.processes


def _since(before: float | None, now: float, *, holds: bool) -> float | None:
    if not holds:
        return None
    return now if before is None else before
