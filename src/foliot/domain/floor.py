"""From which instant on to look for what is due: before it lies what has been done and is not vacuumed away yet."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from foliot.domain.shards import Look

SLACK: Final = timedelta(seconds=5)
"""How far below the last instant done: what was written in time for it may be committed a moment later."""
WHOLE: Final = 5.0
"""Seconds between two looks from the beginning, should anything have turned up below."""
WHOLE_RUNS: Final = 1.0
"""The same for runs that wait in the hot table, where more turns up below: those of a job that was resumed, or out of a
transaction that took its time, have been due for long."""
GATHER: Final = 0.02
"""Seconds from one look that found something to the next, if it found all there was. With 10,000 instants a second, a
look found three of them at a time and then cost ten times what they did; half of two processors went into looking."""


class Floor:
    """Without one every look walks over all that fell due since the last vacuum.

    With five million timers, 8,000 of them due each second, that took a fifth of a processor.
    """

    def __init__(self, clock: Callable[[], float], whole: float = WHOLE) -> None:
        """`whole`: seconds between two looks from the beginning."""
        self._clock = clock
        self._every = whole
        self._whole = float("-inf")
        self._look: Look | None = None
        self._reached: datetime | None = None

    def since(self, look: Look) -> datetime | None:
        """Where this look may begin; none for the beginning, as for shards that were others' a moment ago."""
        now = self._clock()
        if look != self._look or now - self._whole >= self._every:
            self._look, self._whole, self._reached = look, now, None
        return None if self._reached is None else self._reached - SLACK

    def reach(self, look: Look, instant: datetime) -> None:
        """Everything before `instant` that was due in this look has been done."""
        if look == self._look:
            self._reached = instant
