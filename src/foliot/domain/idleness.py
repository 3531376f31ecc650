"""When somebody who finds nothing to claim looks for what fell due and still waits."""

from typing import Final

LOOK_EVERY: Final = 0.2
"""Seconds between two looks of an idle claimer. So delayed runs and retries start though every scheduler stands still,
and what came out of a caller's own transaction, of which nobody was told, starts soon."""
LOOK_AT_LEAST: Final = 1.0
"""The same for one that finds nothing now, but has just been busy: the next run is not to wait behind a look."""


class Idleness:
    def __init__(self) -> None:
        self._found = self._looked = float("-inf")

    def found(self, now: float) -> None:
        """A claim brought something."""
        self._found = now

    def is_time(self, now: float) -> bool:
        """A claim brought nothing: whether to look now. Who is told so looks."""
        if now - self._looked < (LOOK_EVERY if now - self._found > LOOK_EVERY else LOOK_AT_LEAST):
            return False
        self._looked = now
        return True
