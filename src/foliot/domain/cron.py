"""At which instants a cron expression fires in its time zone."""

from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim

from foliot.domain.daylight import USUAL, Dst, instants_after
from foliot.domain.expression import parse_cron, without_clock_changes
from foliot.domain.zone import check_zone

__all__ = ["USUAL", "Cron", "Dst", "check_zone", "fires_after", "next_after", "parse_cron"]


class Cron(msgspec.Struct, frozen=True):
    """A cron expression, canonical however it was written, the IANA name of its zone, and the rules for its clocks."""

    expression: str
    timezone: str = "UTC"
    dst: Dst = USUAL

    def __post_init__(self) -> None:
        expression, timezone = parse_cron(self.expression), check_zone(self.timezone).key
        if timezone == "UTC":
            expression = without_clock_changes(expression)
        msgspec.structs.force_setattr(self, "expression", expression)
        msgspec.structs.force_setattr(self, "timezone", timezone)
        # Where the rules mean nothing, schedules that have some are equal to those that have none.
        if timezone == "UTC" or _follows_elapsed_time(expression):
            msgspec.structs.force_setattr(self, "dst", USUAL)


def next_after(expression: str, zone: ZoneInfo, instant: datetime, dst: Dst = USUAL) -> datetime | None:
    """Find the first fire strictly after `instant`, in UTC; None if there is none for decades."""
    return next(fires_after(expression, zone, instant, dst), None)


def fires_after(expression: str, zone: ZoneInfo, instant: datetime, dst: Dst = USUAL) -> Iterator[datetime]:
    """Go through all fires of a canonical expression strictly after `instant`, rising, in UTC.

    With `*` at the start of its hour it follows elapsed time: it fires at every instant whose wall-clock reading
    matches. Otherwise it follows the wall clock by the rules of `dst`, whatever its minutes are.
    """

    # cronsim gets naive readings only. With a zone, version 2.8 goes back in time when asked from the second pass of a
    # repeated hour, loses fires around half-hour changes (`0 */3 * * *` on Lord Howe), and with six fields runs a fixed
    # time twice in a fold and not at all in a gap.
    def readings(after: datetime) -> Iterator[datetime]:
        return CronSim(expression, after)

    return instants_after(readings, zone, instant, None if _follows_elapsed_time(expression) else dst)


def _follows_elapsed_time(expression: str) -> bool:
    return expression.split()[-4].startswith("*")
