"""A second reading of cron, made only to check the first: sets of field values laid over the wall clock of a zone.

Nothing is shared with the product, and the way is another one: not "what comes next", but "what lies in this window",
by going through days, hours, minutes and seconds.
"""

import calendar
import re
from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS: Final = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_DAYS: Final = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_LARGEST_SHIFT: Final = 26 * 3600
"""Seconds around a window in which a change of the clocks can matter to it: zones have jumped a whole day."""
_HOUR: Final = 3600


class Fields(msgspec.Struct, frozen=True):
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """0 is Sunday."""
    last_day: bool
    last_working_day: bool
    last_weekdays: frozenset[int]
    nth_weekdays: frozenset[tuple[int, int]]
    both: bool
    """A day must please both day fields; otherwise one is enough."""
    elapsed: bool
    """Fires whenever the clock shows a match; otherwise each reading once, and none is lost in a gap."""

    def on(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        length = calendar.monthrange(day.year, day.month)[1]
        weekday = day.isoweekday() % 7
        by_day = (
            day.day in self.days
            or (self.last_day and day.day == length)
            or (self.last_working_day and day == _last_working_day(day.replace(day=length)))
        )
        by_weekday = (
            weekday in self.weekdays
            or (weekday in self.last_weekdays and day.day > length - 7)
            or (weekday, (day.day - 1) // 7 + 1) in self.nth_weekdays
        )
        return by_day and by_weekday if self.both else by_day or by_weekday

    def readings(self, first: datetime, last: datetime) -> Iterator[datetime]:
        """All matching readings of a wall clock in [first, last]."""
        day = first.date()
        while day <= last.date():
            if self.on(day):
                yield from self._readings_of(day, first, last)
            day += timedelta(days=1)

    def _readings_of(self, day: date, first: datetime, last: datetime) -> Iterator[datetime]:
        for hour in self.hours:
            start = datetime(day.year, day.month, day.day, hour)  # noqa: DTZ001 - a reading, not an instant
            if start > last or start + timedelta(hours=1) <= first:
                continue
            for minute in self.minutes:
                beginning = start + timedelta(minutes=minute)
                if beginning > last or beginning + timedelta(minutes=1) <= first:
                    continue
                for second in self.seconds:
                    reading = beginning + timedelta(seconds=second)
                    if first <= reading <= last:
                        yield reading


@cache
def parse(expression: str) -> Fields:
    words = MACROS.get(expression.strip().lower(), expression).upper().split()
    if len(words) == 5:
        words = ["0", *words]
    second, minute, hour, day, month, weekday = words
    day_terms, weekday_terms = day.split(","), weekday.split(",")
    plain_weekdays = [term for term in weekday_terms if not re.search(r"L$|#", term)]
    return Fields(
        seconds=tuple(sorted(_values(second.split(","), 0, 59))),
        minutes=tuple(sorted(_values(minute.split(","), 0, 59))),
        hours=tuple(sorted(_values(hour.split(","), 0, 23))),
        days=_values([term for term in day_terms if not term.startswith("L")], 1, 31),
        months=_values(month.split(","), 1, 12, ["", *_MONTHS]),
        weekdays=frozenset(value % 7 for value in _values(plain_weekdays, 0, 7, _DAYS)),
        last_day=any(re.fullmatch(r"L(/\d+)?", term) for term in day_terms),
        last_working_day=any(term.startswith("LW") for term in day_terms),
        last_weekdays=frozenset(_number(term[:-1], _DAYS) % 7 for term in weekday_terms if term.endswith("L")),
        nth_weekdays=frozenset(
            (_number(name, _DAYS) % 7, int(nth)) for name, _, nth in (t.partition("#") for t in weekday_terms) if nth
        ),
        both=day.startswith("*") or weekday.startswith("*"),
        elapsed=hour.startswith("*"),
    )


@cache
def fires(
    expression: str, zone_name: str, after: int, until: int, gap: str = "end", fold: str = "once"
) -> tuple[int, ...]:
    """All fires in (after, until], in whole seconds since the Unix epoch, rising."""
    fields, zone = parse(expression), ZoneInfo(zone_name)
    offsets = _offsets(zone_name, after, until)
    least, most = min(offsets), max(offsets)
    if least == most:
        return tuple(_steady(fields, least, after, until))
    if fields.elapsed:
        return tuple(_shown(fields, zone_name, after, until))
    # What the clock shows in this window, and what a gap that ends in it has swallowed.
    readings = fields.readings(_naive(after + least), _naive(until + most))
    instants = {at for reading in readings for at in _showings(zone, reading, gap, fold)}
    return tuple(sorted(at for at in instants if after < at <= until))


def _steady(fields: Fields, offset: int, after: int, until: int) -> Iterator[int]:
    shift = timedelta(seconds=offset)
    for reading in fields.readings(_naive(after + 1) + shift, _naive(until) + shift):
        yield _seconds(reading.replace(tzinfo=UTC)) - offset


def _shown(fields: Fields, zone_name: str, after: int, until: int) -> Iterator[int]:
    """Whenever the clock shows a match: by one offset until the second when it changes, by another from there on."""
    probes = [(at, _offset(zone_name, at)) for at in (*range(after, until, _HOUR), until)]
    steady_since = after
    for (start, one), (end, other) in pairwise(probes):
        if one != other:
            moments = range(start, end + 1)
            change = moments[bisect_left(moments, 1, key=lambda at: _offset(zone_name, at) != one)]
            yield from _steady(fields, one, steady_since, change - 1)
            steady_since = change - 1
    yield from _steady(fields, probes[-1][1], steady_since, until)


def _values(terms: list[str], low: int, high: int, names: list[str] | None = None) -> frozenset[int]:
    return frozenset(value for term in terms for value in _term(term, low, high, names or []))


def _term(term: str, low: int, high: int, names: list[str]) -> range:
    span, _, step = term.partition("/")
    begin, _, end = span.partition("-")
    if begin == "*":
        first, last = low, high
    else:
        first = _number(begin, names)
        last = _number(end, names) if end else high if step else first
        if last < first and names == _DAYS and last == 0:
            last = 7  # MON-SUN
    return range(first, last + 1, int(step or 1))


def _number(text: str, names: list[str]) -> int:
    return names.index(text) if text in names else int(text)


def _last_working_day(last: date) -> date:
    return last - timedelta(days=max(0, last.isoweekday() - 5))


def _naive(at: int) -> datetime:
    return datetime.fromtimestamp(at, UTC).replace(tzinfo=None)


def _seconds(instant: datetime) -> int:
    return int(instant.timestamp())


def _offsets(zone_name: str, after: int, until: int) -> frozenset[int]:
    """What the zone is off in the window and wherever a change of its clocks can matter to it."""
    first = (after - _LARGEST_SHIFT) // _HOUR * _HOUR  # whole hours: other windows ask for the same
    return _offsets_by_the_hour(zone_name, first, (until + _LARGEST_SHIFT) // _HOUR * _HOUR + _HOUR)


@lru_cache(maxsize=4_096)
def _offsets_by_the_hour(zone_name: str, first: int, last: int) -> frozenset[int]:
    return frozenset(_offset(zone_name, at) for at in range(first, last + 1, _HOUR))


@cache
def _offset(zone_name: str, at: int) -> int:
    return int((datetime.fromtimestamp(at, ZoneInfo(zone_name)).utcoffset() or timedelta()).total_seconds())


def _showings(zone: ZoneInfo, reading: datetime, gap: str, fold: str) -> list[int]:
    """When a clock on the wall shows `reading`, or, if it never does, when the gap that swallows it ends."""

    def shown(at: int) -> datetime:
        return datetime.fromtimestamp(at, zone).replace(tzinfo=None)

    early, late = sorted(_seconds(reading.replace(tzinfo=zone, fold=number)) for number in (0, 1))
    if shown(early) == reading:
        return sorted({early, late}) if fold == "twice" else [early]
    moments = range(early, late + 1)
    return [moments[bisect_left(moments, reading, key=shown)]] if gap == "end" else []
