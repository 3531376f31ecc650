"""What to do with instants that come up late: fire, or record as missed."""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from foliot.domain.schedule import Recurrence, gap, next_fire

GRACE: Final = timedelta(seconds=30)
"""An instant handled within this time is on time."""
MOST_COUNTED: Final = 1_000
"""Missed instants of a cron beyond this many are not counted one by one: it would hold up the others."""
WINDOW: Final = timedelta(hours=1)
"""Of what was missed, the latest instant is still run if it is no older than this."""


class Advance(msgspec.Struct, frozen=True):
    """How a schedule moves on: the instant to fire, the range that was missed, and what comes next."""

    fire: datetime | None
    missed_from: datetime | None
    missed_through: datetime | None
    missed: int
    next_at: datetime | None

    @property
    def through(self) -> datetime:
        """Everything up to here has been dealt with."""
        through = self.fire or self.missed_through
        if through is None:
            raise ValueError("an advance deals with something")
        return through


def advance(recurrence: Recurrence, *, next_at: datetime, now: datetime) -> Advance:
    """Decide about `next_at`, which has come up, and about what followed it and is late too."""
    if now - next_at <= GRACE:
        return Advance(next_at, None, None, 0, next_fire(recurrence, next_at))
    # What is still within its grace is left for the next time: it is on time.
    further = gap(recurrence, after=next_at, until=now - GRACE - datetime.resolution, most=MOST_COUNTED)
    last = next_at if further is None else further.last
    count = 1 if further is None else 1 + further.count
    after = next_fire(recurrence, last)
    if now - last > WINDOW:
        return Advance(None, next_at, last, count, after)
    if further is None:
        return Advance(last, None, None, 0, after)
    return Advance(last, next_at, last - datetime.resolution, count - 1, after)
