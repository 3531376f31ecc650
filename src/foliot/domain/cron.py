"""At which instants a cron expression fires in its time zone."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim

from foliot.domain.expression import parse_cron
from foliot.domain.zone import check_zone, first_change, first_showing, offset_at

__all__ = ["Cron", "check_zone", "fires_after", "next_after", "parse_cron"]

_SECOND: Final = timedelta(seconds=1)


class Cron(msgspec.Struct, frozen=True):
    """A cron expression, canonical however it was written, and the IANA name of its zone."""

    expression: str
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "expression", parse_cron(self.expression))
        check_zone(self.timezone)


def next_after(expression: str, zone: ZoneInfo, instant: datetime) -> datetime | None:
    """Find the first fire strictly after `instant`, in UTC; None if there is none for decades."""
    return next(fires_after(expression, zone, instant), None)


def fires_after(expression: str, zone: ZoneInfo, instant: datetime) -> Iterator[datetime]:
    """Go through all fires of a canonical expression strictly after `instant`, rising, in UTC.

    With `*` at the start of minute or hour it follows elapsed time: it fires at every instant whose wall-clock
    reading matches. Otherwise it follows the wall clock: a reading that comes twice fires once, the first time; one
    that is skipped fires at the end of the gap.
    """
    if instant.tzinfo is None:
        raise ValueError(f"an instant knows its offset from UTC, {instant} does not")
    minute, hour = expression.split()[-5:-3]
    follow = _follow_elapsed_time if minute.startswith("*") or hour.startswith("*") else _follow_wall_clock
    try:
        yield from follow(expression, zone, instant.astimezone(UTC))
    except OverflowError:  # the calendar ends with the year 9999
        return


# cronsim gets naive readings only. With a zone, version 2.8 goes back in time when asked from the second pass of a
# repeated hour, loses fires around half-hour changes (`0 */3 * * *` on Lord Howe), and with six fields runs a fixed
# time twice in a fold and not at all in a gap.


def _follow_wall_clock(expression: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    for reading in CronSim(expression, after.astimezone(zone).replace(tzinfo=None)):
        fire = first_showing(zone, reading)
        if fire > after:  # not so for a first pass seen from the second, nor for further readings in one gap
            yield fire
            after = fire


def _follow_elapsed_time(expression: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    offset: timedelta | None = offset_at(zone, after)
    while offset is not None:  # one round for each stretch between two changes of the clocks
        readings = CronSim(expression, (after + offset).replace(tzinfo=None))
        held, offset = offset, None
        for reading in readings:
            fire = (reading - held).replace(tzinfo=UTC)
            if change := first_change(zone, held, after, fire):
                after, offset = change - _SECOND, offset_at(zone, change)
                break
            yield fire
            after = fire
