"""When work is allowed: business days, holidays and blackout windows of one time zone."""

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from foliot.domain.errors import InvalidField
from foliot.domain.zone import check_zone, first_showing, last_showing

WEEKDAYS: Final = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
MOST_CLOSURES: Final = 10_000
"""Holidays and blackouts of one calendar."""
LOOKOUT: Final = timedelta(days=31)
"""How far an opening is looked for, and a run moved at most."""
_DAY: Final = timedelta(days=1)
_WEEK: Final = timedelta(days=7)
_WEEK_MINUTES: Final = 7 * 24 * 60
_MOST_KNOWN: Final = 400
"""Days whose bounds a calendar remembers: searches look at the same ones again and again."""
_LARGEST_CHANGE: Final = timedelta(hours=3)
"""No clock has been set back by more in one go."""


class Stretch(NamedTuple):
    """A time without an opening, `end` excluded."""

    start: datetime
    end: datetime


class Window(msgspec.Struct, frozen=True, order=True):
    """One blackout, `end` excluded: readings of the calendar's wall clock, or instants."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if (self.start.tzinfo is None) != (self.end.tzinfo is None):
            raise InvalidField("until", "is told by another clock than from", "give both an offset from UTC, or none")
        for name, bound in (("from", self.start), ("until", self.end)):
            if bound.microsecond:
                raise InvalidField(name, "is no whole second", "leave out the fraction")
        if self.start.tzinfo is not None:
            msgspec.structs.force_setattr(self, "start", self.start.astimezone(UTC))
            msgspec.structs.force_setattr(self, "end", self.end.astimezone(UTC))
        if self.end <= self.start:
            raise InvalidField("until", "does not lie after from", "a window ends after it begins")

    def instants(self, zone: ZoneInfo) -> Stretch:
        """A reading that comes twice begins a window the first time and ends it the second."""
        if self.start.tzinfo is not None:
            return Stretch(self.start, self.end)
        return Stretch(first_showing(zone, self.start), last_showing(zone, self.end))


class Weekly(msgspec.Struct, frozen=True, order=True):
    """A blackout that comes back every week: minutes from Monday midnight, and minutes long."""

    start: int
    length: int

    def __post_init__(self) -> None:
        if not (0 <= self.start < _WEEK_MINUTES and 0 < self.length < _WEEK_MINUTES):
            raise InvalidField("weekly", "is no part of a week", 'for example "SAT 22:00/SUN 06:00"')

    def around(self, zone: ZoneInfo, at: datetime) -> Iterator[Stretch]:
        """Its stretches that might contain `at`."""
        reading = at.astimezone(zone).replace(tzinfo=None)
        length = timedelta(minutes=self.length)
        start = self._latest(reading + _LARGEST_CHANGE)
        while start + length >= reading - _LARGEST_CHANGE:
            yield self._shown(zone, start)
            start -= _WEEK

    def between(self, zone: ZoneInfo, first: datetime, last: datetime) -> Iterator[Stretch]:
        """Its stretches that begin less than a week before `first`, or later, and before `last`."""
        start = self._latest(first.astimezone(zone).replace(tzinfo=None))
        while (shown := self._shown(zone, start)).start < last:
            yield shown
            start += _WEEK

    def _latest(self, reading: datetime) -> datetime:
        monday = datetime.combine(reading.date() - timedelta(days=reading.weekday()), time())
        start = monday + timedelta(minutes=self.start)
        return start if start <= reading else start - _WEEK

    def _shown(self, zone: ZoneInfo, start: datetime) -> Stretch:
        return Window(start, start + timedelta(minutes=self.length)).instants(zone)


class Calendar(msgspec.Struct, frozen=True, dict=True):
    """Work is allowed on business days that are no holidays, outside all blackouts.

    Equal content is equal, in whichever order it was written. Bounds are whole seconds, so that an opening lasts for a
    second at least.
    """

    timezone: str
    business_days: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 6)
    """0 is Monday."""
    holidays: tuple[date, ...] = ()
    blackouts: tuple[Window, ...] = ()
    weekly: tuple[Weekly, ...] = ()

    def __post_init__(self) -> None:
        check_zone(self.timezone)
        if len(self.holidays) + len(self.blackouts) + len(self.weekly) > MOST_CLOSURES:
            hint = "leave out what is past, or make two calendars"
            raise InvalidField("holidays", f"more than {MOST_CLOSURES:,} holidays and blackouts", hint)
        for name, key in (("business_days", None), ("holidays", None), ("blackouts", _order), ("weekly", None)):
            given = set(getattr(self, name))
            msgspec.structs.force_setattr(self, name, tuple(sorted(given, key=key)))
        if not set(self.business_days) <= set(range(7)):
            raise InvalidField("businessDays", "names no weekday", f"some of {', '.join(WEEKDAYS)}")
        if self._is_always_closed():
            raise InvalidField("businessDays", "leaves no open time in a week", "allow at least a minute")

    @cached_property
    def body(self) -> bytes:
        """The one text of this content."""
        return msgspec.json.encode(msgspec.to_builtins(self), order="sorted")

    @cached_property
    def digest(self) -> str:
        """Names the content: calendars of the same content have the same."""
        return hashlib.sha256(self.body).hexdigest()[:16]

    @classmethod
    def parse(cls, body: bytes | str) -> "Calendar":
        return msgspec.json.decode(body, type=cls)

    @cached_property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)

    @cached_property
    def _days_off(self) -> frozenset[date]:
        return frozenset(self.holidays)

    @cached_property
    def _known_days(self) -> dict[date, Stretch]:
        return {}

    @cached_property
    def _every_week(self) -> tuple[Weekly, ...]:
        """The weekly blackouts as disjoint ones that do not touch: searches step from end to end."""
        return joined(self.weekly)

    @cached_property
    def _once(self) -> list[Stretch]:
        """The one-off blackouts as disjoint stretches, rising."""
        return merged(window.instants(self.zone) for window in self.blackouts)

    def is_day_off(self, day: date) -> bool:
        return day.weekday() not in self.business_days or day in self._days_off

    def is_open(self, at: datetime) -> bool:
        return next(self._closures(at), None) is None

    def next_open(self, at: datetime, within: timedelta = LOOKOUT) -> datetime | None:
        """Find the first allowed instant from `at` on; None if there is none `within` that time."""
        opening = at
        while (end := max((each.end for each in self._closures(opening)), default=None)) is not None:
            opening = end
            if opening - at > within:
                return None
        return opening

    def previous_open(self, at: datetime, within: timedelta = LOOKOUT) -> datetime | None:
        """Find the last allowed instant up to `at`: itself, or the last second before it closed."""
        if self.is_open(at):
            return at
        closed = self.closed_since(at, within)
        return None if closed is None else closed - timedelta(seconds=1)

    def closed_since(self, at: datetime, within: timedelta = LOOKOUT) -> datetime | None:
        """Find when the stretch around a closed instant began; None if that is longer ago than `within`."""
        since = min(each.start for each in self._closures(at))
        while (start := self._earliest(since - datetime.resolution)) is not None:
            since = start
            if at - since > within:
                return None
        return since

    def stretches(self, first: datetime, last: datetime) -> list[Stretch]:
        """All closed stretches that overlap [first, last), joined where they touch; the outermost may be cut short."""
        return [each for each in merged(self._parts(first, last)) if each.end > first and each.start < last]

    def day(self, day: date) -> Stretch:
        """From midnight to midnight by the wall clock, or what there is of it."""
        known = self._known_days.get(day)
        if known is None:
            if len(self._known_days) > _MOST_KNOWN:
                self._known_days.clear()
            bounds = (datetime.combine(each, time()) for each in (day, day + _DAY))
            known = self._known_days[day] = Stretch(*(first_showing(self.zone, bound) for bound in bounds))
        return known

    def day_of(self, at: datetime) -> date:
        """The day whose stretch contains this instant."""
        day = at.astimezone(self.zone).date()
        return day + _DAY if at >= self.day(day).end else day

    def _closures(self, at: datetime) -> Iterator[Stretch]:
        if self.is_day_off(day := self.day_of(at)):
            yield self.day(day)
        place = bisect_right(self._once, at, key=lambda stretch: stretch.start)
        if place and at < self._once[place - 1].end:
            yield self._once[place - 1]
        yield from (each for each in self._weekly_around(at) if each.start <= at < each.end)

    def _weekly_around(self, at: datetime) -> Iterator[Stretch]:
        """Stretches that might contain `at`. They are disjoint: before one that ends too early, all do."""
        reading = at.astimezone(self.zone).replace(tzinfo=None) + _LARGEST_CHANGE
        minute = (reading.weekday() * 24 + reading.hour) * 60 + reading.minute
        last = bisect_right(self._every_week, minute, key=lambda weekly: weekly.start) - 1
        for back in range(len(self._every_week)):
            found = list(self._every_week[last - back].around(self.zone, at))
            if not found:
                return
            yield from found

    def _earliest(self, at: datetime) -> datetime | None:
        return min((each.start for each in self._closures(at)), default=None)

    def _parts(self, first: datetime, last: datetime) -> Iterator[Stretch]:
        day = self.day_of(first)
        while (stretch := self.day(day)).start < last:
            if self.is_day_off(day):
                yield stretch
            day += _DAY
        yield from self._once
        for weekly in self._every_week:
            yield from weekly.between(self.zone, first, last)

    def _is_always_closed(self) -> bool:
        closed = bytearray(_WEEK_MINUTES)
        for day in range(7):
            if day not in self.business_days:
                closed[day * 1440 : (day + 1) * 1440] = b"\1" * 1440
        for each in self.weekly:
            end = each.start + each.length
            closed[each.start : min(end, _WEEK_MINUTES)] = b"\1" * (min(end, _WEEK_MINUTES) - each.start)
            closed[: max(0, end - _WEEK_MINUTES)] = b"\1" * max(0, end - _WEEK_MINUTES)
        return all(closed)


class Named(NamedTuple):
    """A calendar of a tenant's, and where it is stored."""

    id: int
    calendar: Calendar


def joined(windows: Iterable[Weekly]) -> tuple[Weekly, ...]:
    """The same minutes of a week as windows of which none touches another; not all of a week."""
    ends: list[list[int]] = []
    for each in sorted(windows):
        if ends and each.start <= ends[-1][1]:
            ends[-1][1] = max(ends[-1][1], each.start + each.length)
        else:
            ends.append([each.start, each.start + each.length])
    # What the last of them covers of the next week belongs to the first ones.
    over = max((end for _, end in ends), default=0) - _WEEK_MINUTES
    while len(ends) > 1 and over >= ends[0][0]:
        over = max(over, ends.pop(0)[1])
        ends[-1][1] = over + _WEEK_MINUTES
    return tuple(Weekly(start, end - start) for start, end in ends)


def merged(stretches: Iterable[Stretch]) -> list[Stretch]:
    """The same time as disjoint stretches, rising."""
    joined: list[Stretch] = []
    for each in sorted(stretches):
        if joined and each.start <= joined[-1].end:
            joined[-1] = Stretch(joined[-1].start, max(joined[-1].end, each.end))
        else:
            joined.append(each)
    return joined


def _order(window: Window) -> tuple[str, str]:
    """Readings and instants cannot be compared; their texts can."""
    return window.start.isoformat(), window.end.isoformat()
