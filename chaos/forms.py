"""Rules, phrases and steps of a calendar, read once more: as many of each as the clients of chaos write.

Nothing is shared with the product. A rule or a phrase is said as the cron expression that means the same.
"""

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

_MICRO: Final = timedelta(microseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_STEP: Final = re.compile(r"P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")
_FREQUENCIES: Final = ("SECONDLY", "MINUTELY", "HOURLY", "DAILY")
_PHRASES: Final = (
    (re.compile(r"every hour at :0?(?P<minute>\d+)"), "{minute} * * * *"),
    (re.compile(r"every day at 0?(?P<hour>\d+):0?(?P<minute>\d+)"), "{minute} {hour} * * *"),
)


class Step(msgspec.Struct, frozen=True):
    months: int
    days: int
    clock: int
    """Microseconds."""

    def instants(self, zone: str, anchor: int | None, low: int, high: int, gap: str, fold: str) -> list[int]:
        """Those in (low, high], in microseconds since the epoch; each is counted from the beginning."""
        there = ZoneInfo(zone)
        begin = datetime(1970, 1, 1) if anchor is None else _reading(anchor, there)  # noqa: DTZ001 - a reading
        found: set[int] = set()
        number = 0
        while True:
            month = begin.year * 12 + begin.month - 1 + number * self.months
            year, month = month // 12, month % 12 + 1
            day = min(begin.day, monthrange(year, month)[1])
            reading = begin.replace(year=year, month=month, day=day) + timedelta(days=number * self.days)
            shown = [anchor] if number == 0 and anchor is not None else _shown(reading, there, gap, fold)
            found.update(each + number * self.clock for each in shown)
            if (reading - timedelta(days=2)).replace(tzinfo=UTC) > _EPOCH + high * _MICRO:
                return sorted(each for each in found if low < each <= high)
            number += 1


def step(written: object, zone: str) -> Step | None:
    """None if it is a time that passes, and nothing more: days of a zone in which all are alike, too."""
    match = _STEP.fullmatch(written.strip().upper()) if isinstance(written, str) else None
    if match is None:
        return None
    years, months, weeks, days, hours, minutes, seconds = (int(each or 0) for each in match.groups())
    clock = (hours * 3_600 + minutes * 60 + seconds) * 1_000_000
    if not (years or months) and (not (weeks or days) or zone == "UTC"):
        return None
    return Step(years * 12 + months, weeks * 7 + days, clock)


def rule_as_cron(rule: str) -> str:
    """Of rules that say which seconds, minutes and hours they want, each time."""
    parts = dict(each.split("=") for each in rule.upper().split(";"))
    grain = _FREQUENCIES.index(parts.pop("FREQ"))
    if parts.pop("INTERVAL", "1") != "1":
        raise ValueError(f"nobody here can judge {rule}")
    # What a rule leaves open below its frequency is as in its beginning, at midnight; above it anything goes.
    fields = []
    for place, name in enumerate(("BYSECOND", "BYMINUTE", "BYHOUR")):
        chosen = sorted(map(int, parts.pop(name).split(","))) if name in parts else [0] if place < grain else None
        fields.append("*" if chosen is None else ",".join(map(str, chosen)))
    if parts:
        raise ValueError(f"nobody here can judge {rule}")
    return " ".join([*fields, "*", "*", "*"])


def phrase_as_period(phrase: str) -> int | None:
    """Of one that means a time that passes, in microseconds: then no zone has a say in it."""
    return 60_000_000 if phrase.strip().lower() == "every minute" else None


def phrase_as_cron(phrase: str) -> str:
    for pattern, meaning in _PHRASES:
        if found := pattern.fullmatch(phrase.strip().lower()):
            return meaning.format_map(found.groupdict())
    raise ValueError(f"nobody here can judge {phrase!r}")


def _reading(at: int, zone: ZoneInfo) -> datetime:
    return (_EPOCH + at * _MICRO).astimezone(zone).replace(tzinfo=None)


def _shown(reading: datetime, zone: ZoneInfo, gap: str, fold: str) -> list[int]:
    """When a wall clock shows this: twice where it was set back; where it was set forward, when that was done."""
    both = [(reading.replace(tzinfo=zone, fold=each).astimezone(UTC) - _EPOCH) // _MICRO for each in (0, 1)]
    if _reading(both[0], zone) == reading:
        return both if fold == "twice" and both[1] > both[0] else both[:1]
    if gap == "skip":
        return []
    early, late = sorted(both)  # the clocks were set forward between these two
    before = _offset(early, zone)
    while late - early > 1_000_000:
        middle = (early + late) // 2
        early, late = (middle, late) if _offset(middle, zone) == before else (early, middle)
    return [late // 1_000_000 * 1_000_000]


def _offset(at: int, zone: ZoneInfo) -> timedelta | None:
    return (_EPOCH + at * _MICRO).astimezone(zone).utcoffset()
