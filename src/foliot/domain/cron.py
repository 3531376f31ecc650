"""At which instants a cron expression fires in its time zone."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, Literal
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim

from foliot.domain.expression import parse_cron
from foliot.domain.zone import check_zone, first_change, first_showing, offset_at

__all__ = ["USUAL", "Cron", "Dst", "check_zone", "fires_after", "next_after", "parse_cron"]

_SECOND: Final = timedelta(seconds=1)


class Dst(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What becomes of a time of day that the clocks skip, and of one that they show twice."""

    gap: Literal["end", "skip"] = "end"
    fold: Literal["once", "twice"] = "once"


USUAL: Final = Dst()


class Cron(msgspec.Struct, frozen=True):
    """A cron expression, canonical however it was written, the IANA name of its zone, and the rules for its clocks."""

    expression: str
    timezone: str = "UTC"
    dst: Dst = USUAL

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "expression", parse_cron(self.expression))
        check_zone(self.timezone)
        if _follows_elapsed_time(self.expression):  # the rules mean nothing to it, so schedules that say so are equal
            msgspec.structs.force_setattr(self, "dst", USUAL)


def next_after(expression: str, zone: ZoneInfo, instant: datetime, dst: Dst = USUAL) -> datetime | None:
    """Find the first fire strictly after `instant`, in UTC; None if there is none for decades."""
    return next(fires_after(expression, zone, instant, dst), None)


def fires_after(expression: str, zone: ZoneInfo, instant: datetime, dst: Dst = USUAL) -> Iterator[datetime]:
    """Go through all fires of a canonical expression strictly after `instant`, rising, in UTC.

    With `*` at the start of minute or hour it follows elapsed time: it fires at every instant whose wall-clock
    reading matches. Otherwise it follows the wall clock by the rules of `dst`: a reading that comes twice fires once,
    the first time, or twice; one that is skipped fires at the end of the gap, or not at all.
    """
    if instant.tzinfo is None:
        raise ValueError(f"an instant knows its offset from UTC, {instant} does not")
    after = instant.astimezone(UTC)
    try:
        if _follows_elapsed_time(expression):
            yield from _follow_elapsed_time(expression, zone, after, gap_end=False)
        elif dst.fold == "twice":
            yield from _follow_elapsed_time(expression, zone, after, gap_end=dst.gap == "end")
        else:
            yield from _follow_wall_clock(expression, zone, after, gap_end=dst.gap == "end")
    except OverflowError:  # the calendar ends with the year 9999
        return


def _follows_elapsed_time(expression: str) -> bool:
    minute, hour = expression.split()[-5:-3]
    return minute.startswith("*") or hour.startswith("*")


# cronsim gets naive readings only. With a zone, version 2.8 goes back in time when asked from the second pass of a
# repeated hour, loses fires around half-hour changes (`0 */3 * * *` on Lord Howe), and with six fields runs a fixed
# time twice in a fold and not at all in a gap.


def _follow_wall_clock(expression: str, zone: ZoneInfo, after: datetime, *, gap_end: bool) -> Iterator[datetime]:
    for reading in CronSim(expression, after.astimezone(zone).replace(tzinfo=None)):
        fire = first_showing(zone, reading)
        if not gap_end and fire.astimezone(zone).replace(tzinfo=None) != reading:
            continue
        if fire > after:  # not so for a first pass seen from the second, nor for further readings in one gap
            yield fire
            after = fire


def _follow_elapsed_time(expression: str, zone: ZoneInfo, after: datetime, *, gap_end: bool) -> Iterator[datetime]:
    offset: timedelta | None = offset_at(zone, after)
    while offset is not None:  # one round for each stretch between two changes of the clocks
        readings = CronSim(expression, (after + offset).replace(tzinfo=None))
        held, offset = offset, None
        for reading in readings:
            fire = (reading - held).replace(tzinfo=UTC)
            if change := first_change(zone, held, after, fire):
                after, offset = change - _SECOND, offset_at(zone, change)
                if gap_end and _is_skipped(expression, change, held, offset):
                    yield change
                    after = change
                break
            yield fire
            after = fire


def _is_skipped(expression: str, change: datetime, before: timedelta, after: timedelta) -> bool:
    """Whether the clocks, when they go forward, jump over a reading that matches."""
    skipped_from, shown = ((change + offset).replace(tzinfo=None) for offset in (before, after))
    following = next(CronSim(expression, skipped_from - _SECOND), None)
    return following is not None and following < shown
