"""Repeating intervals with calendar parts: months and days by the wall clock of a zone, clock parts by elapsed time."""

import re
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from foliot.domain.daylight import USUAL, Dst
from foliot.domain.duration import format_duration, parse_duration
from foliot.domain.errors import InvalidField
from foliot.domain.zone import check_zone, first_showing, last_showing

_CALENDAR: Final = re.compile(
    r"P(?=.)(?:(?P<years>\d{1,4})Y)?(?:(?P<months>\d{1,5})M)?(?:(?P<weeks>\d{1,4})W)?(?:(?P<days>\d{1,5})D)?"
    r"(?P<clock>T.+)?",
    re.ASCII,
)
_MEAN_MONTH: Final = timedelta(days=365.2425 / 12)
_FIRST_DAY: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - a reading of a wall clock


class Step(msgspec.Struct, frozen=True):
    """One step: so many months, so many days, and so much elapsed time."""

    months: int = 0
    days: int = 0
    clock: timedelta = timedelta()

    @property
    def is_calendrical(self) -> bool:
        return bool(self.months or self.days)

    @property
    def about(self) -> timedelta:
        """Its mean length."""
        return self.months * _MEAN_MONTH + timedelta(days=self.days) + self.clock

    def __str__(self) -> str:
        years, months = divmod(self.months, 12)
        parts = {"Y": years, "M": months, "D": self.days}
        calendar = "".join(f"{number}{unit}" for unit, number in parts.items() if number)
        return "P" + calendar + (_clock_text(self.clock) if self.clock else "")


class Steps(msgspec.Struct, frozen=True):
    """Fires at its anchor and after every whole number of steps from it; without one, from the zone's first of 1970.

    Counted from the anchor, never from the last fire: the 31st becomes the 30th in a short month and the 31st again in
    the next. A time of day that the clocks skip or repeat follows the rules of `dst`; clock parts go on from there.
    """

    step: Step
    timezone: str
    anchor: datetime | None = None
    dst: Dst = USUAL

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "timezone", check_zone(self.timezone).key)
        if self.timezone == "UTC":  # whose clocks never change: the rules mean nothing
            msgspec.structs.force_setattr(self, "dst", USUAL)
        if self.anchor is not None:
            msgspec.structs.force_setattr(self, "anchor", self.anchor.astimezone(UTC))

    @property
    def begin(self) -> datetime:
        return self.anchor or first_showing(ZoneInfo(self.timezone), _FIRST_DAY)

    def fires(self, number: int) -> tuple[datetime, ...]:
        """When it fires after so many steps: once, or twice, or not at all."""
        zone = ZoneInfo(self.timezone)
        start = _FIRST_DAY if self.anchor is None else self.anchor.astimezone(zone).replace(tzinfo=None)
        day = _months_later(start.date(), number * self.step.months) + timedelta(days=number * self.step.days)
        shown = _showings(zone, datetime.combine(day, start.time()), self.dst)
        if number == 0 and self.anchor is not None:  # it may be the second showing
            return (self.anchor, *(each for each in shown if each > self.anchor))
        return tuple(each + number * self.step.clock for each in shown)


def parse_step(written: str | float, field: str) -> Step:
    """Read `P1M`, `P1DT2H`, `PT90S` or plain seconds."""
    match = _CALENDAR.fullmatch(written.strip().upper()) if isinstance(written, str) else None
    if match is None or not any(match.group("years", "months", "weeks", "days")):
        return Step(clock=parse_duration(written, field))
    parts = {unit: int(number or 0) for unit, number in match.groupdict().items() if unit != "clock"}
    clock = parse_duration(f"P{match['clock']}", field) if match["clock"] else timedelta()
    step = Step(parts["years"] * 12 + parts["months"], parts["weeks"] * 7 + parts["days"], clock)
    if not step.is_calendrical and not clock:
        raise InvalidField(field, "has no length", 'for example "P1M", "P1D" or "PT90S"')
    return step


def next_step(steps: Steps, after: datetime) -> datetime | None:
    """Find the first fire strictly after `after`; None if the calendar ends before it."""
    try:
        number = max(0, (after - steps.begin) // steps.step.about - 2)
        while number and not any(fire <= after for fire in steps.fires(number)):
            number -= 1
        while not (to_come := [fire for fire in steps.fires(number) if fire > after]):
            number += 1
    except (OverflowError, ValueError):  # the calendar ends with the year 9999
        return None
    return to_come[0]


def steps_before(end: datetime, step: Step, number: int, zone: ZoneInfo) -> datetime:
    """The instant from which so many steps lead to `end`; OverflowError or ValueError if the calendar began later."""
    last = end - number * step.clock
    if not step.is_calendrical:
        return last
    shown = last.astimezone(zone).replace(tzinfo=None)
    day = _months_later(shown.date() - timedelta(days=number * step.days), -number * step.months)
    return first_showing(zone, datetime.combine(day, shown.time()))


def _showings(zone: ZoneInfo, reading: datetime, dst: Dst) -> tuple[datetime, ...]:
    first, last = first_showing(zone, reading), last_showing(zone, reading)
    if first.astimezone(zone).replace(tzinfo=None) != reading:
        return (first,) if dst.gap == "end" else ()
    return (first, last) if dst.fold == "twice" and last > first else (first,)


def _months_later(day: date, months: int) -> date:
    years, month = divmod(day.month - 1 + months, 12)
    year = day.year + years
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _clock_text(clock: timedelta) -> str:
    text = format_duration(clock)
    return text[1:] if text.startswith("PT") else f"T{clock // timedelta(hours=1)}H"
