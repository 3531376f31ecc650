"""The times that lines of an iCalendar file tell: days, readings of a wall clock, instants, durations, zones."""

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from foliot.domain.errors import InvalidField
from foliot.domain.ics_lines import Line, UnreadableError
from foliot.domain.zone import check_zone, first_showing

_DURATION: Final = re.compile(
    r"\+?P(?=.)(?:(\d{1,4})W)?(?:(\d{1,5})D)?(?:T(?=.)(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,6})S)?)?", re.ASCII
)
_MOST_PARTS: Final = 3
"""Of the name of a zone: America/Argentina/Ushuaia."""

Moment = date | datetime
"""An all-day event's day; a timed event's reading of a wall clock, or instant."""


def duration_of(line: Line) -> timedelta:
    match = _DURATION.fullmatch(line.value.strip().upper())
    if match is None:
        raise UnreadableError(line.number, f"no duration: {line.value[:40]!r}")
    weeks, days, hours, minutes, seconds = (int(number or 0) for number in match.groups())
    return timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)


def moments_of(line: Line) -> list[Moment]:
    """All values of a line, as instants where its zone makes them so."""
    values = (msgspec.structs.replace(line, value=value) for value in line.value.split(","))
    return [placed(moment_of(value), zone_of(line)) for value in values]


def days_of(line: Line) -> list[Moment]:
    """The days of all values of a line, as they are written."""
    moments = [moment_of(msgspec.structs.replace(line, value=value)) for value in line.value.split(",")]
    return [each.date() if isinstance(each, datetime) else each for each in moments]


def moment_of(line: Line) -> Moment:
    """A day, a reading, or an instant in UTC."""
    text = line.value.strip().upper()
    kind = line.parameters.get("VALUE", "DATE-TIME" if "T" in text else "DATE").upper()
    try:
        if kind == "DATE" and re.fullmatch(r"[0-9]{8}", text):
            return date(int(text[:4]), int(text[4:6]), int(text[6:]))
        if kind == "DATE-TIME" and re.fullmatch(r"[0-9]{8}T[0-9]{6}Z?", text):
            # The 60th second is a leap second; clocks that have none show the 59th for longer.
            clock = time(int(text[9:11]), int(text[11:13]), min(int(text[13:15]), 59))
            day = date(int(text[:4]), int(text[4:6]), int(text[6:8]))
            return datetime.combine(day, clock, tzinfo=UTC if text.endswith("Z") else None)
    except ValueError:
        pass
    raise UnreadableError(line.number, f"no date that exists: {line.value[:40]!r}")


def zone_of(line: Line) -> ZoneInfo | None:
    name = line.parameters.get("TZID")
    if name is None:
        return None
    zone = zone_named(name)
    if zone is None:
        raise UnreadableError(line.number, f"unknown time zone {name[:64]!r}")
    return zone


def zone_named(name: str) -> ZoneInfo | None:
    """IANA names, also behind a prefix such as `/freeassociation.sourceforge.net/Europe/Berlin`."""
    parts = name.strip("/").split("/")
    for some in range(max(0, len(parts) - _MOST_PARTS), len(parts)):
        try:
            return check_zone("/".join(parts[some:]))
        except InvalidField:
            continue
    return None


def placed(moment: Moment, zone: ZoneInfo | None) -> Moment:
    """A reading in a zone of its own is an instant; without one it is read by the calendar's clock."""
    if isinstance(moment, datetime) and moment.tzinfo is None and zone is not None:
        return first_showing(zone, moment)
    return moment
