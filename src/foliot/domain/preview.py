"""What a schedule will do next, on which of those days the clocks change, and what an edit makes of it."""

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from itertools import islice, takewhile
from typing import Final, Literal, NamedTuple
from zoneinfo import ZoneInfo

from foliot.domain.schedule import Recurrence, next_fire, zone_of
from foliot.domain.zone import first_showing, offset_at

Transition = Literal["gap", "fold"]
Change = Literal["same", "added", "removed"]
_SECOND: Final = timedelta(seconds=1)
_END: Final = datetime(9999, 1, 1, tzinfo=UTC)
"""Of what is shown: its last day has no tomorrow."""


class Outlook(NamedTuple):
    """What fires: a recurrence within bounds, or one instant, or nothing."""

    recurrence: Recurrence | None = None
    not_before: datetime | None = None
    ends_at: datetime | None = None
    most: int | None = None
    once: datetime | None = None

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo("UTC") if self.recurrence is None else zone_of(self.recurrence)

    def after(self, instant: datetime) -> Iterator[datetime]:
        """All fires strictly after `instant`, rising; counted from there, if they are counted."""
        if self.recurrence is None:
            return iter([self.once] if self.once is not None and self.once > instant else [])
        if self.not_before is not None:  # one at it counts
            instant = max(instant, self.not_before - datetime.resolution)
        fires = _fires(self.recurrence, instant)
        if self.ends_at is not None:
            end = self.ends_at
            fires = takewhile(lambda fire: fire <= end, fires)
        return islice(fires, self.most)


class Fire(NamedTuple):
    at: datetime
    local: datetime
    """The same instant as the schedule's wall clock shows it."""
    transition: Transition | None
    """Whether the clocks skip an hour, or show one twice, on that day."""
    change: Change | None = None
    """What an edit makes of it, if that was the question."""


def preview(recurrence: Recurrence, after: datetime, count: int) -> list[Fire]:
    """The next fires strictly after `after`, at most `count`."""
    return look_ahead(Outlook(recurrence), after, count)


def look_ahead(outlook: Outlook, after: datetime, count: int) -> list[Fire]:
    return [_seen(at, outlook.zone) for at in islice(outlook.after(after), count)]


def compare(present: Outlook, asked: Outlook, after: datetime, count: int) -> list[Fire]:
    """The next fires of either, at most `count`, and which of them an edit from one to the other adds or removes."""
    old, new = ({*islice(each.after(after), count)} for each in (present, asked))
    # Of each so many are known, so of both together the first so many are certain.
    return [
        _seen(at, asked.zone if at in new else present.zone)._replace(
            change="same" if at in old and at in new else "added" if at in new else "removed"
        )
        for at in sorted(old | new)[:count]
    ]


def _seen(at: datetime, zone: ZoneInfo) -> Fire:
    return Fire(at, at.astimezone(zone), transition_on(zone, at))


def transition_on(zone: ZoneInfo, at: datetime) -> Transition | None:
    """How the clocks change on the local day of this instant; a gap at midnight belongs to the day that it shortens."""
    midnight = datetime.combine(at.astimezone(zone).date(), time())
    before, after = (_offset_before(zone, each) for each in (midnight, midnight + timedelta(days=1)))
    if before == after:
        return None
    return "gap" if after > before else "fold"


def _offset_before(zone: ZoneInfo, midnight: datetime) -> timedelta:
    """What the zone is off in the last second before a day begins, also a day whose midnight is skipped."""
    return offset_at(zone, first_showing(zone, midnight) - _SECOND)


def _fires(recurrence: Recurrence, after: datetime) -> Iterator[datetime]:
    while (fire := next_fire(recurrence, after)) is not None and fire < _END:
        yield fire
        after = fire
