"""How long a claimer that found nothing waits before it looks again."""

from datetime import timedelta
from typing import Final

from foliot.kit.clock import Steady

SHORTEST: Final = timedelta(milliseconds=1)
LONGEST: Final = timedelta(milliseconds=500)
HINTED: Final = 0.02
"""Seconds between two hints: what comes less often is told of, and need not be looked for."""


class Rest:
    """Short naps while work keeps coming faster than hints do, longer ones the longer nothing came.

    So a trickle of runs is met within a millisecond or two, and an idle worker costs two statements a second.
    """

    def __init__(self, clock: Steady) -> None:
        self._clock = clock
        self._found_at = float("-inf")
        self._gap = HINTED
        self._nap = SHORTEST

    def found(self) -> None:
        """Something came."""
        now = self._clock()
        self._gap += (min(now - self._found_at, HINTED) - self._gap) / 8
        self._found_at, self._nap = now, SHORTEST

    def waited(self) -> None:
        """The claim itself waited for something to come: that was rest enough."""
        self._nap = SHORTEST

    def nap(self) -> timedelta:
        """Nothing came: how long to wait now, unless something is heard."""
        nap = self._nap
        if self._clock() - self._found_at > 2 * self._gap or self._gap > HINTED / 2:
            self._nap = min(nap * 2, LONGEST)
        return nap
