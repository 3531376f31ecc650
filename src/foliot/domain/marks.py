"""From which rank on a claim scans each lane: just below what was seen last, and now and then from further back."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from foliot.domain.fairness import UNIT

SLACK: Final = 2_000 * UNIT
"""How far below the lowest rank seen: at a modest pace, all that an old V can have ranked."""
RECENT: Final = 0.5
"""But no further back than what was claimed so many seconds ago: V is told every 0.2, and what is ranked by it is there
soon after."""
FEW: Final = 2_000
"""Nor than so many runs ago, whichever is further back: they are stepped over in a quarter of a millisecond."""
FLOOR_SCAN: Final = 0.1
"""Seconds between scans from the floor: at any pace, what was ranked by an old V waits no longer than this."""
FLOOR_AGE: Final = 2.0
"""The floor is the highest rank claimed that many seconds ago; a ranked run is committed within one second."""
TELL_AGAIN: Final = 10.0
"""Seconds after which a rank is published again, should it have been lost: below V nothing is left behind for good, as
long as V is no lower than what we go by."""
_GRAIN: Final = 0.02
"""Seconds between two that are remembered."""


class _Past:
    """The highest rank claimed in a lane as it was a while ago: as long as `RECENT`, and `FEW` runs."""

    def __init__(self) -> None:
        self.rank = 0
        self._runs = 0
        self._noted: deque[tuple[float, int, int]] = deque()

    def note(self, now: float, runs: int, highest: int) -> None:
        """So many runs more have been claimed, and the highest rank is this one now."""
        self._runs += runs
        noted = self._noted
        while noted and now - noted[0][0] >= RECENT and self._runs - noted[0][1] >= FEW:
            self.rank = noted.popleft()[2]
        if not noted or now - noted[-1][0] >= _GRAIN:
            noted.append((now, self._runs, highest))


class Marks:
    """Without a mark every claim steps over all dead entries at the head of the index: 51k/s fell to 12k/s in 20 s.

    What is left behind below the mark all the same is found in another way: see `services/glean.py`.
    """

    def __init__(self, lanes: Iterable[int]) -> None:
        self._mark: dict[int, int] = {}
        self._highest: dict[int, int] = {}
        self._recently: dict[int, _Past] = {}
        self._unpublished: dict[int, int] = {}
        self._past: deque[tuple[float, dict[int, int]]] = deque()
        self._floor: dict[int, int] = {}
        self._from_floor = self._all_told = float("-inf")
        self.add(lanes)

    def add(self, lanes: Iterable[int]) -> None:
        """Keep marks of these as well; those that it knows stay as they are."""
        for lane in lanes:
            if lane not in self._mark:
                self._mark[lane] = self._highest[lane] = 0
                self._recently[lane] = _Past()

    def next_scan(self, now: float, lanes: Sequence[int]) -> list[int]:
        """Marks for a claim that covers these lanes."""
        if now - self._from_floor > FLOOR_SCAN:
            self._from_floor = now
            self._raise_floor(now)
            return [min(self._floor.get(lane, 0), self._mark[lane]) for lane in lanes]
        return [self._mark[lane] for lane in lanes]

    def saw(self, lane: int, ranks: Sequence[int], now: float) -> None:
        """A claim took these: whatever else was there and came before them is taken too."""
        lowest, highest = min(ranks), max(ranks)
        if highest > self._highest[lane]:
            self._highest[lane] = self._unpublished[lane] = highest
        past = self._recently[lane]
        past.note(now, len(ranks), self._highest[lane])
        self._mark[lane] = max(0, lowest - SLACK, min(lowest, past.rank))

    def to_publish(self, now: float) -> dict[int, int]:
        """The highest ranks claimed since they were last asked for, and now and then all of them."""
        fresh, self._unpublished = self._unpublished, {}
        if now - self._all_told >= TELL_AGAIN:
            self._all_told = now
            fresh = {lane: highest for lane, highest in self._highest.items() if highest}
        return fresh

    def _raise_floor(self, now: float) -> None:
        self._past.append((now, dict(self._highest)))
        while now - self._past[0][0] >= FLOOR_AGE:
            self._floor = self._past.popleft()[1]
