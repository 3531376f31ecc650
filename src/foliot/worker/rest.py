"""How long a claimer waits for something to come: in the claim itself, and after one that found nothing."""

from datetime import timedelta
from typing import Final

from foliot.kit.clock import Steady

SHORTEST: Final = timedelta(milliseconds=1)
LONGEST: Final = timedelta(milliseconds=500)
HINTED: Final = timedelta(milliseconds=20)
"""Between two hints: what comes less often is told of at once, what comes more often is not."""
BRISK: Final = 2 * HINTED
"""Between two finds on average: while they come faster, claims wait for the next one."""
_OVER: Final = 4
"""So many times the usual gap without a find, and it is over."""


class Rest:
    """Claims that wait while work comes faster than hints do; else naps, which are the longer the longer nothing came.

    So a stream of runs is met within a millisecond, and an idle worker costs two statements a second.
    """

    def __init__(self, clock: Steady) -> None:
        self._clock = clock
        self._found_at = float("-inf")
        self._most = 2 * BRISK.total_seconds()
        self._gap = self._most
        self._nap = SHORTEST

    def found(self) -> None:
        """Something came."""
        now = self._clock()
        self._gap += (min(now - self._found_at, self._most) - self._gap) / 8
        self._found_at, self._nap = now, SHORTEST

    def waited(self) -> None:
        """The claim itself waited for something to come: that was rest enough."""
        self._nap = SHORTEST

    def patience(self) -> timedelta:
        """How long the next claim is to wait if there is nothing yet."""
        is_over = self._clock() - self._found_at > _OVER * self._gap
        return timedelta() if is_over or self._gap > BRISK.total_seconds() else HINTED

    def nap(self) -> timedelta:
        """Nothing came: how long to wait now, unless something is heard."""
        nap = self._nap
        self._nap = min(nap * 2, LONGEST)
        return nap
