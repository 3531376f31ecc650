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


def advance(recurrence: Recurrence, *, cursor: datetime, next_at: datetime, now: datetime) -> Advance:
    """Decide about `next_at`, which has come up; `cursor` is the last instant dealt with before it."""
    if now - next_at <= GRACE:
        return Advance(next_at, None, None, 0, next_fire(recurrence, next_at))
    late = gap(recurrence, after=cursor, until=now, most=MOST_COUNTED)
    if late is None:
        raise ValueError("nothing has come up")
    after = next_fire(recurrence, late.last)
    if now - late.last > WINDOW:
        return Advance(None, late.first, late.last, late.count, after)
    if late.first == late.last:
        return Advance(late.last, None, None, 0, after)
    return Advance(late.last, late.first, late.last - timedelta(microseconds=1), late.count - 1, after)
