"""What a recurrence will do next, and on which of those days the clocks change."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

from foliot.domain.schedule import Recurrence, next_fire, zone_of
from foliot.domain.zone import offset_at

Transition = Literal["gap", "fold"]


class Fire(NamedTuple):
    at: datetime
    local: datetime
    """The same instant as the schedule's wall clock shows it."""
    transition: Transition | None
    """Whether the clocks skip an hour, or show one twice, on that day."""


def preview(recurrence: Recurrence, after: datetime, count: int) -> list[Fire]:
    """The next fires strictly after `after`, at most `count`."""
    zone = zone_of(recurrence)
    return [Fire(at, at.astimezone(zone), transition_on(zone, at)) for at in islice(_fires(recurrence, after), count)]


def transition_on(zone: ZoneInfo, at: datetime) -> Transition | None:
    """How the clocks change on the local day of this instant."""
    midnight = at.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    first = offset_at(zone, midnight.astimezone(UTC))
    last = offset_at(zone, (midnight + timedelta(days=1)).astimezone(UTC))
    if first == last:
        return None
    return "gap" if last > first else "fold"


def _fires(recurrence: Recurrence, after: datetime) -> Iterator[datetime]:
    while (fire := next_fire(recurrence, after)) is not None:
        yield fire
        after = fire
