"""At which instants a recurrence rule of RFC 5545 fires in its time zone."""

from array import array
from bisect import bisect_left
from calendar import isleap, monthrange
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from functools import cache, lru_cache
from itertools import groupby, product
from operator import mul
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from foliot.domain.daylight import USUAL, Dst, instants_after
from foliot.domain.errors import InvalidField
from foliot.domain.rule import FIRST, Freq, Rule, parse_rule
from foliot.domain.zone import check_zone

FARTHEST: Final = 400
"""Years that are looked ahead: after so many the calendar repeats itself, days of the week and all."""
_EPOCH: Final = FIRST.toordinal()
_PER_DAY: Final = {Freq.HOURLY: 24, Freq.MINUTELY: 1_440, Freq.SECONDLY: 86_400}
_REMEMBERED: Final = 128
"""Rules whose times of the day are kept: at worst 45 MB of them."""
_Numbers = tuple[int, ...]
_ANY_START: Final = datetime(2001, 1, 1)  # noqa: DTZ001 - a reading of a wall clock


class Rrule(msgspec.Struct, frozen=True):
    """A rule, the zone and the rules of its wall clock, and which of every INTERVAL periods it is about.

    Periods are counted from 1970 on, so jobs that begin at different times share a schedule where they fire alike;
    what does not fire before its job begins is the job's affair.
    """

    rule: Rule
    timezone: str = "UTC"
    dst: Dst = USUAL
    phase: int = 0

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "timezone", check_zone(self.timezone).key)
        if not 0 <= self.phase < self.rule.interval:
            raise ValueError(f"one of {self.rule.interval} periods, not {self.phase}")
        # The rules mean nothing to what fires whenever a reading is shown, nor where the clocks never change.
        if self.rule.freq > Freq.DAILY or self.timezone == "UTC":
            msgspec.structs.force_setattr(self, "dst", USUAL)
        if not _ever_fires(self.rule, self.phase):
            hint = "look at it with schedule preview; the last day of a month is BYMONTHDAY=-1"
            raise InvalidField("rrule", f"it would not fire within {FARTHEST} years", hint)


def recurring(written: str, timezone: str, dst: Dst, begin: datetime | None) -> Rrule:
    """Read a rule. What it leaves open, and the periods that INTERVAL leaves out, follow from `begin`, or from 1970."""
    start = FIRST if begin is None else begin.astimezone(ZoneInfo(timezone)).replace(tzinfo=None)
    rule = parse_rule(written, start)
    return Rrule(rule, timezone, dst, _period(rule, start) % rule.interval)


def rule_fires_after(rrule: Rrule, instant: datetime) -> Iterator[datetime]:
    """Go through all fires strictly after `instant`, rising, in UTC; the next is found in bounded time.

    By the hour, minute or second it fires at every instant whose wall-clock reading matches. It counts hours of the
    wall clock, as RFC 5545 does: what begins at two stays at two. Otherwise it follows the wall clock by its rules.
    """

    def readings(after: datetime) -> Iterator[datetime]:
        return readings_after(rrule.rule, rrule.phase, after)

    elapsed = rrule.rule.freq > Freq.DAILY
    return instants_after(readings, ZoneInfo(rrule.timezone), instant, None if elapsed else rrule.dst)


def readings_after(rule: Rule, phase: int, after: datetime) -> Iterator[datetime]:
    """What the wall clock shows when the rule fires: all readings strictly after this one, for centuries to come."""
    if rule.freq > Freq.DAILY:
        seconds = _seconds_within_days(rule, phase, after)
    elif rule.positions and rule.freq < Freq.DAILY:
        seconds = _seconds_by_position(rule, phase, after)
    else:
        seconds = _seconds_of_days(rule, phase, after)
    for day, second in seconds:
        reading = datetime.fromordinal(day) + timedelta(seconds=second)
        if reading > after:
            yield reading


# Each of these gives days, as ordinals, and the seconds since their midnight; some before `after` may be among them.


def _seconds_of_days(rule: Rule, phase: int, after: datetime) -> Iterator[tuple[int, int]]:
    times, today = _times(rule), after.toordinal()
    for day in _days_from(rule, phase, after.date()) if times else ():
        begin = bisect_left(times, _second_of(after)) if day == today else 0
        for index in range(begin, len(times)):
            yield day, times[index]


def _seconds_by_position(rule: Rule, phase: int, after: datetime) -> Iterator[tuple[int, int]]:
    """Positions count through whole periods, so it begins with the one that `after` lies in."""
    times = _times(rule)
    for _, period in groupby(_days_from(rule, phase, _first_day(rule, after.date())), lambda day: _number(rule, day)):
        days = list(period)
        for index in _chosen(rule.positions, len(days) * len(times)):
            which, time = divmod(index, len(times))
            yield days[which], times[time]


def _seconds_within_days(rule: Rule, phase: int, after: datetime) -> Iterator[tuple[int, int]]:
    slots, today = _slots(rule), after.toordinal()
    for day in _days_from(rule, 0, after.date()) if slots.seconds else ():
        wanted = (phase - (day - _EPOCH) * slots.per_day) % rule.interval
        if not slots.may_leave(wanted):
            continue
        begin = _second_of(after) * slots.per_day // 86_400 if day == today else 0
        for slot in _slots_of_day(slots, rule.interval, wanted, begin):
            for second in slots.seconds:
                yield day, slot * (86_400 // slots.per_day) + second


def _slots_of_day(slots: "_Slots", interval: int, wanted: int, begin: int) -> Iterator[int]:
    """Hours, minutes or seconds of a day from `begin` on, every `interval`th only."""
    if interval > 60:  # either way at most some thousand are looked at until one fits
        first = wanted + max(0, -((wanted - begin) // interval)) * interval
        yield from filter(slots.has, range(first, slots.per_day, interval))
        return
    digits, scales = slots.digits, slots.scales
    hours = [hour for hour in digits[0] if hour >= begin // scales[0]]
    for each in product(hours, *digits[1:]):
        slot = sum(map(mul, each, scales))
        if slot >= begin and slot % interval == wanted:
            yield slot


def _days_from(rule: Rule, phase: int, first: date) -> Iterator[int]:
    """The days, from this one on, on which the rule allows a fire."""
    begin, freq, interval = first.toordinal(), rule.freq, rule.interval
    for year in range(first.year, min(first.year + FARTHEST, 9999) + 1):
        if freq is Freq.YEARLY and (year - FIRST.year - phase) % interval:
            continue
        new_year = date(year, 1, 1).toordinal()
        offsets = _days_of_year(rule, _year_like(year))
        for index in range(bisect_left(offsets, begin - new_year), len(offsets)):
            day = new_year + offsets[index]
            if interval == 1 or freq > Freq.DAILY or not (_number(rule, day) - phase) % interval:
                yield day


@lru_cache(maxsize=4096)
def _days_of_year(rule: Rule, year: int) -> tuple[int, ...]:
    """The days that all parts about days allow, counted from 0."""
    first = date(year, 1, 1)
    return tuple(n for n in range(366 if isleap(year) else 365) if _allows(rule, first + timedelta(days=n)))


def _allows(rule: Rule, day: date) -> bool:
    in_month, in_year = monthrange(day.year, day.month)[1], 366 if isleap(day.year) else 365
    of_year = day.timetuple().tm_yday
    if rule.months and day.month not in rule.months:
        return False
    if rule.month_days and not {day.day, day.day - in_month - 1} & {*rule.month_days}:
        return False
    if rule.year_days and not {of_year, of_year - in_year - 1} & {*rule.year_days}:
        return False
    if rule.weeks and not {*_week_numbers(day, rule.week_start)} & {*rule.weeks}:
        return False
    if not rule.days:
        return True
    at, length = (day.day, in_month) if rule.freq is Freq.MONTHLY or rule.months else (of_year, in_year)
    which = {0, (at - 1) // 7 + 1, -((length - at) // 7 + 1)}
    return any(weekday == day.weekday() and nth in which for nth, weekday in rule.days)


def _week_numbers(day: date, week_start: int) -> tuple[int, int]:
    """The number of the day's week from the beginning and from the end of its year: the year that has most of it."""
    middle = day + timedelta(days=3 - (day.weekday() - week_start) % 7)
    of_year, in_year = middle.timetuple().tm_yday, 366 if isleap(middle.year) else 365
    return (of_year - 1) // 7 + 1, -((in_year - of_year) // 7 + 1)


@cache
def _year_like(year: int) -> int:
    """One year for all with the same days of the week and the same weeks, those counted from the end of a year too."""
    return next(like for like in range(2000, 2400) if _kind(like) == _kind(year))


def _kind(year: int) -> tuple[int, bool, bool, bool]:
    return date(year, 1, 1).weekday(), isleap(year), isleap(year - 1), isleap(year + 1)


def _period(rule: Rule, reading: datetime) -> int:
    """The number of the period that a reading lies in."""
    per_day = _PER_DAY.get(rule.freq)
    if per_day is None:
        return _number(rule, reading.toordinal())
    return (reading.toordinal() - _EPOCH) * per_day + _second_of(reading) * per_day // 86_400


def _number(rule: Rule, day: int) -> int:
    """The number of the year, month, week or day, from 1970 on."""
    match rule.freq:
        case Freq.YEARLY:
            return date.fromordinal(day).year - FIRST.year
        case Freq.MONTHLY:
            at = date.fromordinal(day)
            return (at.year - FIRST.year) * 12 + at.month - 1
        case Freq.WEEKLY:
            return (day - _EPOCH + (FIRST.weekday() - rule.week_start) % 7) // 7
        case _:
            return day - _EPOCH


def _first_day(rule: Rule, day: date) -> date:
    match rule.freq:
        case Freq.YEARLY:
            return day.replace(month=1, day=1)
        case Freq.MONTHLY:
            return day.replace(day=1)
        case _:
            return day - timedelta(days=(day.weekday() - rule.week_start) % 7)


def _times(rule: Rule) -> Sequence[int]:
    """Seconds since midnight at which a rule by days fires; of a daily one those that its positions choose."""
    return _clock(rule.hours, rule.minutes, rule.seconds, rule.positions if rule.freq is Freq.DAILY else ())


@lru_cache(maxsize=_REMEMBERED)
def _clock(hours: _Numbers, minutes: _Numbers, seconds: _Numbers, positions: _Numbers) -> Sequence[int]:
    return _compact(_picked([h * 3600 + m * 60 + s for h, m, s in product(hours, minutes, seconds)], positions))


class _Slots(NamedTuple):
    """The hours, minutes or seconds of a day in which a rule may fire."""

    per_day: int
    digits: tuple[Sequence[int], ...]
    """The hours, minutes and seconds allowed, as far as they make up a slot."""
    scales: tuple[int, ...]
    """How many slots lie between one and the next of each."""
    remainders: Sequence[int] | None
    """What is left of slots divided by INTERVAL, rising; none if anything may be. Other days are passed over."""
    seconds: Sequence[int]
    """When, within each slot."""

    def may_leave(self, wanted: int) -> bool:
        if self.remainders is None:
            return wanted < self.per_day
        place = bisect_left(self.remainders, wanted)
        return place < len(self.remainders) and self.remainders[place] == wanted

    def has(self, slot: int) -> bool:
        sizes = (24, 60, 60)[: len(self.scales)]
        parts = zip(self.digits, self.scales, sizes, strict=True)
        return all(slot // scale % size in digit for digit, scale, size in parts)


@lru_cache(maxsize=_REMEMBERED)
def _slots(rule: Rule) -> _Slots:
    count = rule.freq - Freq.DAILY
    given = (rule.hours, rule.minutes, rule.seconds)
    hours, minutes, seconds = (numbers or range(size) for numbers, size in zip(given, (24, 60, 60), strict=True))
    within = {
        1: [minute * 60 + second for minute, second in product(minutes, seconds)],
        2: list(seconds),
        3: [0],
    }
    digits, scales = (hours, minutes, seconds)[:count], ((1,), (60, 1), (3600, 60, 1))[count - 1]
    remainders = None
    if rule.interval > 1 and any(given[:count]):
        remainders = _compact(sorted({sum(map(mul, each, scales)) % rule.interval for each in product(*digits)}))
    return _Slots(_PER_DAY[rule.freq], digits, scales, remainders, _compact(_picked(within[count], rule.positions)))


def _picked(items: list[int], positions: Sequence[int]) -> list[int]:
    return [items[index] for index in _chosen(positions, len(items))] if positions else items


def _compact(numbers: Iterable[int]) -> Sequence[int]:
    """In an eighth of the memory: a rule may have one for each second of a day, and anybody may ask for many rules."""
    return array("i", numbers)


def _chosen(positions: Sequence[int], length: int) -> list[int]:
    """Indices of the positions that exist, counted from 1, or from the end by -1."""
    found = (position - 1 if position > 0 else length + position for position in positions)
    return sorted({index for index in found if 0 <= index < length})


def _second_of(reading: datetime) -> int:
    return reading.hour * 3600 + reading.minute * 60 + reading.second


@lru_cache(maxsize=4096)
def _ever_fires(rule: Rule, phase: int) -> bool:
    return next(readings_after(rule, phase, _ANY_START), None) is not None
