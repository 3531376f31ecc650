"""On which days an event of an imported calendar repeats: the part of RRULE that calendars of closures use."""

import re
from calendar import isleap, monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import count
from typing import Final, Literal

import msgspec

from foliot.domain.errors import InvalidField

_DAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_WEEKDAY: Final = re.compile(r"([+-]?[1-9][0-9]?)?(MO|TU|WE|TH|FR|SA|SU)")
_UNTIL: Final = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)(Z)?)?", re.ASCII)
_LONGEST: Final = {"YEARLY": 366, "MONTHLY": 31, "WEEKLY": 7, "DAILY": 1}
_LONGEST_RULE: Final = 512
_A_STEP: Final = 7
"""Days that are looked at for one step: a year of many is not the work of one day."""
_HINT: Final = "FREQ, INTERVAL, COUNT, UNTIL, BYMONTH, BYMONTHDAY, BYDAY and WKST are understood"

Frequency = Literal["YEARLY", "MONTHLY", "WEEKLY", "DAILY"]


class TooLong(Exception):  # noqa: N818 - reads aloud
    """The rule would have to be followed for longer than anybody waits."""


class Repeat(msgspec.Struct, frozen=True, kw_only=True):
    frequency: Frequency
    interval: int = 1
    count: int | None = None
    until: date | None = None
    until_time: datetime | None = None
    """If the rule ends at an instant or, without a zone, at a reading; `until` is then a day later, to be sure."""
    months: frozenset[int] = frozenset()
    month_days: frozenset[int] = frozenset()
    weekdays: frozenset[tuple[int | None, int]] = frozenset()
    """Which one of the month (or year), if not all; and which day, 0 being Monday."""
    week_start: int = 0


def parse_repeat(rule: str) -> Repeat:
    """Read an RRULE; what is not understood is InvalidField, so that nothing is followed half."""
    if len(rule) > _LONGEST_RULE:
        raise InvalidField("RRULE", f"is longer than {_LONGEST_RULE} characters", "split the event into several")
    parts: dict[str, str] = {}
    for part in rule.strip().upper().rstrip(";").split(";"):
        name, equals, value = part.partition("=")
        if not equals or name in parts:
            raise InvalidField("RRULE", f"cannot be read: {part[:40]!r}", _HINT)
        parts[name] = value
    frequency = parts.pop("FREQ", "")
    if frequency not in {"YEARLY", "MONTHLY", "WEEKLY", "DAILY"}:
        raise InvalidField("RRULE", f"FREQ={frequency[:20]} is not understood", _HINT)
    until, until_time = _until(parts.pop("UNTIL", None))
    repeat = Repeat(
        frequency=msgspec.convert(frequency, Frequency),
        interval=_number(parts.pop("INTERVAL", "1"), "INTERVAL", 1, 1000),
        count=_number(parts.pop("COUNT"), "COUNT", 1, 100_000) if "COUNT" in parts else None,
        until=until,
        until_time=until_time,
        months=_numbers(parts.pop("BYMONTH", ""), "BYMONTH", 1, 12),
        month_days=_numbers(parts.pop("BYMONTHDAY", ""), "BYMONTHDAY", -31, 31),
        weekdays=_weekdays(parts.pop("BYDAY", "")),
        week_start=_DAYS.index(_known_day(parts.pop("WKST", "MO"))),
    )
    if parts:
        raise InvalidField("RRULE", f"{next(iter(parts))[:40]} is not understood", _HINT)
    _refuse_senseless(repeat)
    return repeat


def repeat_days(repeat: Repeat, first: date, span: tuple[date, date], steps: Iterator[int]) -> Iterator[date]:
    """Go through the days on which it repeats, `first` being the first; those before the `span` may be left out.

    Each period that is looked at takes one of the `steps`, or one for each week of it; without any left it is TooLong.
    """
    given = 0
    since, horizon = span
    for day in _following(repeat, first, (since, min(horizon, repeat.until or horizon)), steps):
        if (
            day > first and given == 0 and (repeat.count or first >= since)
        ):  # the first is one of them whatever the rule says
            given += 1
            yield first
        if repeat.count is not None and given >= repeat.count:
            return
        given += 1
        yield day
    if given == 0 and first >= since:
        yield first


def _following(repeat: Repeat, first: date, span: tuple[date, date], steps: Iterator[int]) -> Iterator[date]:
    since, last = span
    # What is counted has to be gone through from the beginning.
    passed = 0 if repeat.count else max(0, (since - first).days // (_LONGEST[repeat.frequency] * repeat.interval) - 1)
    for number in count(passed):
        days = _period(repeat, first, number * repeat.interval)
        if days is None or days[0] > last:
            return
        for _ in range(0, len(days), _A_STEP):
            if next(steps, None) is None:
                raise TooLong("its repetitions, with those before it, are too many to go through")
        for day in sorted(set(_chosen(repeat, first, days))):
            if first <= day <= last:
                yield day


def _period(repeat: Repeat, first: date, number: int) -> list[date] | None:
    """All days of the day, week, month or year that comes `number` of them after the first; None past all calendars."""
    try:
        match repeat.frequency:
            case "DAILY":
                return [first + timedelta(days=number)]
            case "WEEKLY":
                start = first - timedelta(days=(first.weekday() - repeat.week_start) % 7) + timedelta(weeks=number)
                return [start + timedelta(days=day) for day in range(7)]
            case "MONTHLY":
                years, month = divmod(first.month - 1 + number, 12)
                return _month(first.year + years, month + 1)
            case "YEARLY":
                year = first.year + number
                months = repeat.months or (range(1, 13) if repeat.weekdays or repeat.month_days else (first.month,))
                return [day for month in sorted(months) for day in _month(year, month)]
    except (OverflowError, ValueError):
        return None


def _month(year: int, month: int) -> list[date]:
    return [date(year, month, day + 1) for day in range(monthrange(year, month)[1])]


def _chosen(repeat: Repeat, first: date, days: list[date]) -> Iterator[date]:
    weekdays = {weekday for _, weekday in repeat.weekdays}
    for day in days:
        if (weekdays and day.weekday() not in weekdays) or (repeat.months and day.month not in repeat.months):
            continue
        length = monthrange(day.year, day.month)[1]
        if repeat.month_days and repeat.month_days.isdisjoint((day.day, day.day - length - 1)):
            continue
        if repeat.weekdays and repeat.weekdays.isdisjoint(_names_of(repeat, day, length)):
            continue
        if not repeat.weekdays and not repeat.month_days and not _is_like_first(repeat, day, first):
            continue
        yield day


def _is_like_first(repeat: Repeat, day: date, first: date) -> bool:
    """Without a choice of days, a rule repeats the first one."""
    if repeat.frequency == "WEEKLY":
        return day.weekday() == first.weekday()
    return repeat.frequency == "DAILY" or day.day == first.day


def _names_of(repeat: Repeat, day: date, length: int) -> tuple[tuple[int | None, int], ...]:
    """As what weekday a rule may mean it: as any, or as one counted from either end of its month or year."""
    number, weekday = day.day - 1, day.weekday()
    if repeat.frequency == "YEARLY" and not repeat.months:
        number, length = day.timetuple().tm_yday - 1, 366 if isleap(day.year) else 365
    return (None, weekday), (number // 7 + 1, weekday), (-((length - 1 - number) // 7 + 1), weekday)


def _refuse_senseless(repeat: Repeat) -> None:
    if repeat.count is not None and repeat.until is not None:
        raise InvalidField("RRULE", "has both COUNT and UNTIL", "leave one of them out")
    if 0 in repeat.month_days:
        raise InvalidField("RRULE", "BYMONTHDAY=0 is no day", _HINT)
    if repeat.frequency in {"WEEKLY", "DAILY"} and any(which is not None for which, _ in repeat.weekdays):
        raise InvalidField("RRULE", "a numbered BYDAY needs FREQ=MONTHLY or YEARLY", _HINT)


def _until(text: str | None) -> tuple[date | None, datetime | None]:
    if text is None:
        return None, None
    match = _UNTIL.fullmatch(text)
    try:
        if match is not None and match[4] is None:
            return date(*map(int, match.groups()[:3])), None
        if match is not None:
            at = datetime(*map(int, match.groups()[:6]), tzinfo=UTC if match[7] else None)  # type: ignore[misc,arg-type]
            return at.date() + timedelta(days=1), at
    except (ValueError, OverflowError):
        pass
    raise InvalidField("RRULE", f"UNTIL={text[:40]} is no date", _HINT)


def _numbers(text: str, name: str, least: int, most: int) -> frozenset[int]:
    return frozenset(_number(each, name, least, most) for each in text.split(",")) if text else frozenset()


def _number(text: str, name: str, least: int, most: int) -> int:
    if re.fullmatch(r"[+-]?[0-9]{1,6}", text) and least <= int(text) <= most:
        return int(text)
    raise InvalidField("RRULE", f"{name}={text[:20]} is none", f"from {least} to {most:,}")


def _weekdays(text: str) -> frozenset[tuple[int | None, int]]:
    found = set[tuple[int | None, int]]()
    for each in text.split(",") if text else ():
        match = _WEEKDAY.fullmatch(each)
        if match is None:
            raise InvalidField("RRULE", f"BYDAY={each[:20]} is none", "for example MO or -1MO")
        found.add((int(match[1]) if match[1] else None, _DAYS.index(match[2])))
    return frozenset(found)


def _known_day(text: str) -> str:
    if text not in _DAYS:
        raise InvalidField("RRULE", f"WKST={text[:20]} is no weekday", f"one of {', '.join(_DAYS)}")
    return text
