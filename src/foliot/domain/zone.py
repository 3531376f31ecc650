"""What a time zone's name means, and when its clocks change."""

import difflib
import re
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from foliot.domain.errors import InvalidField

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}")
_OF_THE_MACHINE: Final = frozenset({"localtime", "Factory"})  # files in the zone folder that name no place
_UTC: Final = frozenset(
    {"GMT", "GMT+0", "GMT-0", "GMT0", "Greenwich", "UCT", "UTC", "Universal", "Zulu"}
)  # and each of them in Etc/; of no other names is it certain that they will mean the same for ever
_SECOND: Final = timedelta(seconds=1)
_PROBE: Final = timedelta(days=3)  # Recife went there and back within 7 days less an hour in 2000, no zone was faster


def check_zone(name: str, field: str = "timezone") -> ZoneInfo:
    """Find the zone with exactly this IANA name; nothing else reaches the file system. All names of UTC are one."""
    if name in _names():
        return ZoneInfo("UTC" if name.removeprefix("Etc/") in _UTC else name)
    raise InvalidField(field, f"unknown time zone {name[:64]!r}", _nearest(name))


def offset_at(zone: ZoneInfo, instant: datetime) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta(0)


def first_change(zone: ZoneInfo, offset: timedelta, after: datetime, until: datetime) -> datetime | None:
    """Find the first instant in (after, until] at which the zone is no longer `offset` from UTC, as before."""
    same = after.replace(microsecond=0)
    while same < until:
        probe = min(same + _PROBE, until)
        if offset_at(zone, probe) != offset:
            return _bisected(zone, offset, same, probe)
        same = probe
    return None


def first_showing(zone: ZoneInfo, reading: datetime) -> datetime:
    """Find the instant when a wall clock first shows `reading`; if it never does, the end of the gap that skips it."""
    instant = reading.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) == reading:
        return instant
    # In a gap fold=0 reads with the offset before the change and lands after it; fold=1 the other way round.
    before = reading.replace(tzinfo=zone, fold=1).astimezone(UTC)
    return _bisected(zone, offset_at(zone, before), before, instant)


def last_showing(zone: ZoneInfo, reading: datetime) -> datetime:
    """Find the instant when a wall clock last shows `reading`; if it never does, the end of the gap that skips it."""
    instant = reading.replace(tzinfo=zone, fold=1).astimezone(UTC)
    shows = instant.astimezone(zone).replace(tzinfo=None) == reading
    return instant if shows else first_showing(zone, reading)


def _bisected(zone: ZoneInfo, offset: timedelta, same: datetime, other: datetime) -> datetime:
    # Clocks change at whole seconds; ends with fractions would never come within one second of each other.
    same, other = same.replace(microsecond=0), other.replace(microsecond=0)
    while other - same > _SECOND:
        middle = same + (other - same) // 2
        middle = middle.replace(microsecond=0)
        if offset_at(zone, middle) == offset:
            same = middle
        else:
            other = middle
    return other


@cache
def _names() -> frozenset[str]:
    return frozenset(available_timezones()) - _OF_THE_MACHINE


@cache
def _by_folded_name() -> dict[str, str]:
    return {name.casefold(): name for name in sorted(_names())}


def _nearest(name: str) -> str:
    if _NAME.fullmatch(name):
        folded = _by_folded_name()
        if exact := folded.get(name.casefold()):
            return f"names are case-sensitive: write {exact}"
        if close := difflib.get_close_matches(name.casefold(), folded, n=3):
            return f"did you mean {' or '.join(folded[match] for match in close)}?"
    return "use an IANA name such as Europe/Berlin, America/New_York or UTC"
