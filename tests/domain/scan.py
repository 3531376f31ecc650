"""A third reading of cron, by looking: minute after minute of a wall clock, what it shows, shows again and jumps over.

It shares nothing with the product or with the checker of the chaos runs, and knows no "next": it looks at all there is.
Minutes and days are counted from 1970, of UTC or of a wall clock; instants are seconds since the Unix epoch.
"""

from calendar import monthrange
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

NAMED = {
    "@yearly": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@hourly": "0 * * * *",
}
MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC"
WEEKDAYS = "SUN MON TUE WED THU FRI SAT"
FAR = 26 * 60
"""Minutes around a change of the clocks in which it can matter: Samoa once left out a whole day."""


class Tape(NamedTuple):
    """What a wall clock shows through one day of UTC, minute by minute."""

    readings: Sequence[int]
    again: frozenset[int] = frozenset()
    """Places on the tape whose reading was shown before."""
    skipped: dict[int, range] = {}  # noqa: RUF012 - never changed
    """Readings that the clock jumped over just before a place."""


class Seen(NamedTuple):
    """What fires at a first showing, at a second one, and at the end of a gap."""

    first: set[int]
    again: set[int]
    gap_end: set[int]

    def fires(self, gap, fold):
        wanted = self.first | (self.again if fold == "twice" else set()) | (self.gap_end if gap == "end" else set())
        return sorted(wanted)


class Pattern:
    def __init__(self, written):
        words = NAMED.get(written, written).upper().split()
        second, minute, hour, self.day, month, self.weekday = words if len(words) == 6 else ["0", *words]
        self.follows_elapsed_time = hour[0] == "*"
        self.seconds = [number for number in range(60) if _in_field(number, second, 0, 59)]
        hours = [_in_field(number, hour, 0, 23) for number in range(24)]
        minutes = [_in_field(number, minute, 0, 59) for number in range(60)]
        self.clock = bytes(one and other for one in hours for other in minutes)
        self.months = {number for number in range(1, 13) if _in_field(number, month, 1, 12, ["", *MONTHS.split()])}
        self.per_day = sum(self.clock) * len(self.seconds)
        self.on = cache(self._on)

    def matches(self, reading):
        return bool(self.clock[reading % 1440]) and self.on(reading // 1440)

    def _on(self, day_number):
        day = date(1970, 1, 1) + timedelta(days=day_number)
        if day.month not in self.months:
            return False
        by_day = any(_is_day(day, term) for term in self.day.split(","))
        by_weekday = any(_is_weekday(day, term) for term in self.weekday.split(","))
        if self.day[0] == "*" or self.weekday[0] == "*":
            return by_day and by_weekday
        return by_day or by_weekday


def look(pattern, zone_name, after, until):
    """See all there is in (after, until]."""
    seen = Seen(set(), set(), set())
    for day in range(after // 86_400, until // 86_400 + 1):
        if any(pattern.on(day + near) for near in (-1, 0, 1)):  # no clock is more than a day away from UTC
            _look_at(pattern, tape(zone_name, day), day * 86_400, seen)
    return Seen(*({at for at in part if after < at <= until} for part in seen))


def _look_at(pattern, shown, midnight, seen):
    clock = pattern.clock
    for place in [place for place, reading in enumerate(shown.readings) if clock[reading % 1440]]:
        if pattern.on(shown.readings[place] // 1440):
            repeats = place in shown.again and not pattern.follows_elapsed_time
            part = seen.again if repeats else seen.first
            part.update(midnight + place * 60 + second for second in pattern.seconds)
    for place, readings in shown.skipped.items():
        if not pattern.follows_elapsed_time and any(map(pattern.matches, readings)):
            seen.gap_end.add(midnight + place * 60)


@lru_cache(maxsize=2048)
def tape(zone_name, day):
    zone, start = ZoneInfo(zone_name), day * 1440
    hours = {offset_at(zone, minute) for minute in range(start - FAR, start + 1441, 60)}
    if len(hours) == 1:
        first = start + hours.pop()
        return Tape(range(first, first + 1440))
    minutes = _minutes(zone, start - FAR, start + 1440)
    readings, again, skipped = [at + offset for at, offset in minutes], set(), {}
    shown = set()
    for index, reading in enumerate(readings):
        if reading in shown:
            again.add(index - FAR)
        if index and reading > readings[index - 1] + 1:
            skipped[index - FAR] = range(readings[index - 1] + 1, reading)
        shown.add(reading)
    inside = {place: span for place, span in skipped.items() if place >= 0}
    return Tape(readings[FAR:], frozenset(place for place in again if place >= 0), inside)


def _minutes(zone, start, end):
    """Each minute with its offset: looked up for each one where the clocks change, once an hour elsewhere."""
    for begin in range(start, end, 60):
        stop = min(begin + 60, end)
        one, other = offset_at(zone, begin), offset_at(zone, stop)
        yield from ((at, one if one == other else offset_at(zone, at)) for at in range(begin, stop))


def offset_at(zone, minute):
    offset = datetime.fromtimestamp(minute * 60, zone).utcoffset()
    whole, rest = divmod(offset, timedelta(minutes=1))
    assert not rest, f"{zone} is no whole number of minutes from UTC: a minute is too coarse"
    return whole


@cache
def changes(zone_name, first_year, last_year):
    """Minutes at which the clocks change, with the jump in minutes: forward is positive."""
    zone = ZoneInfo(zone_name)
    start, end = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) // 60 for year in (first_year, last_year + 1))
    found, before = [], offset_at(zone, start)
    for noon in range(start + 720, end, 720):
        if (offset := offset_at(zone, noon)) != before:
            minute = next(at for at in range(noon - 719, noon + 1) if offset_at(zone, at) == offset)
            found.append((minute, offset - before))
            before = offset
    return found


def _in_field(number, field, low, high, names=()):
    return any(_in_term(number, term, low, high, list(names)) for term in field.split(","))


def _in_term(number, term, low, high, names=()):
    span, slash, step = term.partition("/")
    if span == "*":
        return (number - low) % int(step or 1) == 0
    begin, dash, end = span.partition("-")
    first = _number(begin, names)
    last = _number(end, names) if dash else high if slash else first
    return first <= number <= last and (number - first) % int(step or 1) == 0


def _is_day(day, term):
    length = monthrange(day.year, day.month)[1]
    if term == "L":
        return day.day == length
    if term == "LW":
        rest = [date(day.year, day.month, number).weekday() for number in range(day.day, length + 1)]
        return rest[0] < 5 and all(weekday >= 5 for weekday in rest[1:])
    return _in_term(day.day, term, 1, 31)


def _is_weekday(day, term):
    names = WEEKDAYS.split()
    name, ordinal = (term[:-1], "L") if term[-1] == "L" else term.partition("#")[::2]
    week = timedelta(days=7)
    if ordinal == "L":
        in_turn = (day + week).month != day.month
    else:
        in_turn = not ordinal or [(day - week * n).month for n in range(6)].count(day.month) == int(ordinal)
    if "-" in name and name.partition("/")[0].split("-")[1] in ("SUN", "0"):
        name = name.replace("-SUN", "-7").replace("-0", "-7")  # a range that ends on Sunday
    numbers = [0, 7] if day.weekday() == 6 else [day.weekday() + 1]
    return in_turn and any(_in_term(number, name, 0, 7, names) for number in numbers)


def _number(text, names):
    return names.index(text) if text in names else int(text)
