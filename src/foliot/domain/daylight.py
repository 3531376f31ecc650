"""At which instants a wall clock shows what a recurrence asks for, also on the days when it is set forward or back."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, Literal
from zoneinfo import ZoneInfo

import msgspec

from foliot.domain.zone import first_change, first_showing, offset_at

Readings = Callable[[datetime], Iterator[datetime]]
"""The readings of a wall clock, without a zone, that are asked for: all strictly after a given one, rising."""
_SECOND: Final = timedelta(seconds=1)
_MOST_CHANGES: Final = 1_000
"""Of the clocks, from one fire to the next, before a search gives up: what fires only when they skip it never does."""


class Dst(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What becomes of a time of day that the clocks skip, and of one that they show twice."""

    gap: Literal["end", "skip"] = "end"
    fold: Literal["once", "twice"] = "once"


USUAL: Final = Dst()


def instants_after(
    readings: Readings, zone: ZoneInfo, instant: datetime, dst: Dst | None = USUAL
) -> Iterator[datetime]:
    """Go through the instants of these readings strictly after `instant`, rising, in UTC.

    By the rules of `dst` a reading that comes twice counts once, the first time, or twice; one that is skipped counts
    at the end of the gap, or not at all. Without rules it follows elapsed time: every instant with such a reading.
    """
    if instant.tzinfo is None:
        raise ValueError(f"an instant knows its offset from UTC, {instant} does not")
    after = instant.astimezone(UTC)
    gap_end = dst is not None and dst.gap == "end"
    follow = _follow_wall_clock if dst is not None and dst.fold == "once" else _follow_elapsed_time
    try:
        yield from follow(readings, zone, after, gap_end=gap_end)
    except OverflowError:  # the calendar ends with the year 9999
        return


def _follow_wall_clock(readings: Readings, zone: ZoneInfo, after: datetime, *, gap_end: bool) -> Iterator[datetime]:
    upcoming, gaps = readings(after.astimezone(zone).replace(tzinfo=None)), 0
    while gaps < _MOST_CHANGES and (reading := next(upcoming, None)) is not None:
        fire = first_showing(zone, reading)
        if not gap_end and (shown := fire.astimezone(zone).replace(tzinfo=None)) != reading:
            upcoming, gaps = readings(shown - _SECOND), gaps + 1  # past all readings of this gap
        elif fire > after:  # not so for a first pass seen from the second, nor for further readings in one gap
            yield fire
            after, gaps = fire, 0


def _follow_elapsed_time(readings: Readings, zone: ZoneInfo, after: datetime, *, gap_end: bool) -> Iterator[datetime]:
    offset = offset_at(zone, after)
    known = (after + offset).replace(tzinfo=None)  # nothing is asked for between this and `reading`
    upcoming, changes = readings(known), 0
    reading = next(upcoming, None)
    while reading is not None and changes < _MOST_CHANGES:
        fire = (reading - offset).replace(tzinfo=UTC)
        change = first_change(zone, offset, after, fire)
        if change is None:
            yield fire
            after, known, reading, changes = fire, reading, next(upcoming, None), 0
            continue
        changes += 1
        offset, after = offset_at(zone, change), change - _SECOND
        if gap_end and reading < (change + offset).replace(tzinfo=None):  # the clocks jump over it
            yield change
            after, changes = change, 0
        shown = (after + offset).replace(tzinfo=None)
        if not known <= shown < reading:  # set back before what is known, or forward beyond it
            known, upcoming = shown, readings(shown)
            reading = next(upcoming, None)
