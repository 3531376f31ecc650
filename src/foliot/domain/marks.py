"""From which rank on a claim scans each lane: just below what was seen last, and now and then from further back."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from foliot.domain.fairness import UNIT

SLACK: Final = 2_000 * UNIT
"""How far below the lowest rank seen: at a modest pace, all that an old V can have ranked."""
FLOOR_SCAN: Final = 0.1
"""Seconds between scans from the floor: at any pace, what was ranked by an old V waits no longer than this."""
FLOOR_AGE: Final = 2.0
"""The floor is the highest rank claimed that many seconds ago; a ranked run is committed within one second."""
FULL_SCAN: Final = 60.0
"""Seconds between scans from zero, should anything have been left behind after all."""


class Marks:
    """Without a mark every claim steps over all dead entries at the head of the index: 51k/s fell to 12k/s in 20 s."""

    def __init__(self, lanes: Iterable[int]) -> None:
        self._mark = dict.fromkeys(lanes, 0)
        self._highest = dict.fromkeys(lanes, 0)
        self._unpublished: dict[int, int] = {}
        self._past: deque[tuple[float, dict[int, int]]] = deque()
        self._floor = dict.fromkeys(lanes, 0)
        self._from_floor = self._from_zero = float("-inf")

    def next_scan(self, now: float, lanes: Sequence[int]) -> list[int]:
        """Marks for a claim that covers these lanes."""
        if now - self._from_zero > FULL_SCAN:
            self._from_zero = now
            return [0] * len(lanes)
        if now - self._from_floor > FLOOR_SCAN:
            self._from_floor = now
            self._raise_floor(now)
            return [min(self._floor[lane], self._mark[lane]) for lane in lanes]
        return [self._mark[lane] for lane in lanes]

    def saw(self, lane: int, lowest: int, highest: int) -> None:
        self._mark[lane] = max(0, lowest - SLACK)
        if highest > self._highest[lane]:
            self._highest[lane] = self._unpublished[lane] = highest

    def to_publish(self) -> dict[int, int]:
        """The highest ranks claimed since they were last asked for."""
        fresh, self._unpublished = self._unpublished, {}
        return fresh

    def _raise_floor(self, now: float) -> None:
        self._past.append((now, dict(self._highest)))
        while now - self._past[0][0] >= FLOOR_AGE:
            self._floor = self._past.popleft()[1]
