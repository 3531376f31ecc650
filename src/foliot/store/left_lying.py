"""What has been due for a while, or was handed in with nobody told, and no scheduler has made ready."""

from datetime import timedelta
from typing import Final, NamedTuple

from foliot.domain.shards import SWEEP, Look
from foliot.store.admission import answer_knocks
from foliot.store.database import Line
from foliot.store.outbox import send_out
from foliot.store.specs import SpecBook
from foliot.store.waiting import promote_due

_LOOK: Final = Look(overdue=timedelta(milliseconds=200))
"""A scheduler that is well has taken what is due; idle claimers take what has lain there for longer."""


class PickedUp(NamedTuple):
    runs: int
    """Made ready."""
    refused: dict[int, str]
    """Handed in, but they cannot be run, and why."""


class LeftLying:
    """For those who claim and find nothing. Any number may look: each run is moved by whoever gets its row first."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._specs = SpecBook(line)
        self._swept = float("-inf")

    async def pick_up(self, now: float) -> PickedUp:
        """One batch of it, made ready. `now`: seconds by any clock that does not go back."""
        refused = await send_out(self._line, self._specs)
        await answer_knocks(self._line)
        moved = (await promote_due(self._line, self._line, "runs", look=_LOOK)).runs
        if now - self._swept >= SWEEP:  # a look at the timers walks over all that left since the last vacuum
            self._swept = now
            moved += (await promote_due(self._line, self._line, "timers", look=_LOOK)).runs
        return PickedUp(moved, refused)
