"""How a recurrence rule of RFC 5545 is written: its parts made explicit and canonical, or what is wrong with them."""

import difflib
import re
from datetime import UTC, date, datetime, time
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from foliot.domain.errors import InvalidField
from foliot.domain.zone import check_zone, first_showing

LONGEST: Final = 512
MOST: Final = 1_000_000
"""The largest INTERVAL and COUNT."""
FIRST: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - a reading of a wall clock
"""What a rule without a beginning of its own is counted from."""
DAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_RANGES: Final = MappingProxyType(
    {
        "BYMONTH": ("months", 1, 12),
        "BYWEEKNO": ("weeks", -53, 53),
        "BYYEARDAY": ("year_days", -366, 366),
        "BYMONTHDAY": ("month_days", -31, 31),
        "BYHOUR": ("hours", 0, 23),
        "BYMINUTE": ("minutes", 0, 59),
        "BYSECOND": ("seconds", 0, 59),
        "BYSETPOS": ("positions", -366, 366),
    }
)
_KNOWN: Final = ("FREQ", "INTERVAL", "COUNT", "UNTIL", "BYDAY", "WKST", *_RANGES)
_EXAMPLE: Final = 'for example "FREQ=MONTHLY;BYDAY=2TU;BYHOUR=9"'
_BYDAY: Final = re.compile(rf"([+-]?\d{{1,2}})?({'|'.join(DAYS)})", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?\d{1,7}", re.ASCII)
_UNTIL: Final = re.compile(r"(\d{8})(?:T(\d{6})(Z)?)?", re.ASCII)


class Freq(IntEnum):
    """From the longest to the shortest."""

    YEARLY = 0
    MONTHLY = 1
    WEEKLY = 2
    DAILY = 3
    HOURLY = 4
    MINUTELY = 5
    SECONDLY = 6


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule with nothing left to be guessed: every part that its beginning would imply is given."""

    freq: Freq
    interval: int = 1
    months: tuple[int, ...] = ()
    weeks: tuple[int, ...] = ()
    year_days: tuple[int, ...] = ()
    month_days: tuple[int, ...] = ()
    days: tuple[tuple[int, int], ...] = ()
    """Which of them, or 0 for each, and the day of the week from Monday, 0."""
    hours: tuple[int, ...] = ()
    minutes: tuple[int, ...] = ()
    seconds: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()
    week_start: int = 0

    def __str__(self) -> str:
        """The canonical text: parts in one order, numbers sorted, what changes nothing left out."""
        parts = {"FREQ": self.freq.name, "INTERVAL": str(self.interval) if self.interval > 1 else ""}
        for name, (field, _, _) in _RANGES.items():
            parts[name] = ",".join(map(str, getattr(self, field)))
            if name == "BYMONTHDAY":
                parts["BYDAY"] = ",".join(f"{nth or ''}{DAYS[day]}" for nth, day in self.days)
        parts["WKST"] = DAYS[self.week_start] if self.week_start else ""
        return ";".join(f"{name}={value}" for name, value in parts.items() if value)


class Limits(NamedTuple):
    """What ends a rule, taken out of its text."""

    rest: str
    runs: int | None
    until: datetime | None


def take_limits(written: str, timezone: str, field: str = "rrule") -> Limits:
    """Take COUNT and UNTIL out of a rule; an UNTIL without `Z` is read by the wall clock of the zone."""
    parts = _split(written, field)
    if "COUNT" in parts and "UNTIL" in parts:
        raise InvalidField(field, "COUNT and UNTIL exclude each other", "leave one out, or write it as endsAt")
    count, until = parts.pop("COUNT", None), parts.pop("UNTIL", None)
    return Limits(
        ";".join(f"{name}={value}" for name, value in parts.items()),
        None if count is None else _numbers(field, "COUNT", count, 1, MOST)[0],
        None if until is None else _until(field, until, timezone),
    )


def parse_rule(written: str, start: datetime = FIRST, field: str = "rrule") -> Rule:
    """Read a rule without COUNT and UNTIL; what it does not say is as in `start`, a reading of its wall clock."""
    parts = _split(written, field)
    for name, instead in (("COUNT", "maxRuns"), ("UNTIL", "endsAt")):
        if name in parts:
            raise InvalidField(field, f"{name} is no part of a rule that others share", f"write it as {instead}")
    freq = _choice(field, "FREQ", parts.get("FREQ", ""), [each.name for each in Freq])
    rule = Rule(
        freq=Freq[freq],
        interval=_numbers(field, "INTERVAL", parts.get("INTERVAL", "1"), 1, MOST)[0],
        days=_days(field, parts["BYDAY"]) if "BYDAY" in parts else (),
        week_start=DAYS.index(_choice(field, "WKST", parts.get("WKST", "MO"), DAYS)),
        **{key: _numbers(field, name, parts[name], *ends) for name, (key, *ends) in _RANGES.items() if name in parts},
    )
    _refuse_nonsense(rule, field)
    return _without_excess(_complete(rule, start))


def _split(written: str, field: str) -> dict[str, str]:
    if len(written) > LONGEST:
        raise InvalidField(field, f"longer than {LONGEST} characters", "split it into several jobs")
    text = written.strip().upper().removeprefix("RRULE:")
    if re.match(r"DTSTART|EXDATE|RDATE|EXRULE", text) or "\n" in text:
        hint = "write DTSTART as scheduleAt and timezone, and further dates as jobs of their own"
        raise InvalidField(field, "is more than one rule", hint)
    parts: dict[str, str] = {}
    for each in text.rstrip(";").split(";"):
        name, equals, value = (part.strip() for part in each.partition("="))
        if not equals or not value:
            raise InvalidField(field, f"{each[:40]!r} is not NAME=VALUE", _EXAMPLE)
        if name not in _KNOWN:
            close = difflib.get_close_matches(name, _KNOWN, n=1)
            hint = f"did you mean {close[0]}?" if close else "known are " + ", ".join(_KNOWN)
            raise InvalidField(field, f"unknown part {name[:40]!r}", hint)
        if name in parts:
            raise InvalidField(field, f"{name} stands twice", "put its values into one list, separated by commas")
        parts[name] = value
    if "FREQ" not in parts:
        raise InvalidField(field, "has no FREQ", _EXAMPLE)
    return parts


def _choice(field: str, name: str, value: str, allowed: "list[str] | tuple[str, ...]") -> str:
    if value not in allowed:
        raise InvalidField(field, f"{name} cannot be {value[:40]!r}", "one of " + ", ".join(allowed))
    return value


def _numbers(field: str, name: str, text: str, low: int, high: int) -> tuple[int, ...]:
    found = set()
    for each in text.split(","):
        if not _NUMBER.fullmatch(each) or not low <= int(each) <= high or (low < 0 and not int(each)):
            allowed = f"{low} to {high}" if low >= 0 else f"1 to {high}, or {low} to -1 counted from the end"
            raise InvalidField(field, f"{name} cannot be {each[:40]!r}", f"numbers from {allowed}")
        found.add(int(each))
    if len(found) > 1 and name in {"INTERVAL", "COUNT"}:
        raise InvalidField(field, f"{name} is one number", _EXAMPLE)
    return tuple(sorted(found))


def _days(field: str, text: str) -> tuple[tuple[int, int], ...]:
    found = set()
    for each in text.split(","):
        match = _BYDAY.fullmatch(each)
        if match is None or (match[1] and not 1 <= abs(int(match[1])) <= 53):
            hint = "MO to SU; 2TU is the second Tuesday, -1FR the last Friday"
            raise InvalidField(field, f"BYDAY cannot be {each[:40]!r}", hint)
        found.add((int(match[1] or 0), DAYS.index(match[2])))
    return tuple(sorted(found))


def _until(field: str, text: str, timezone: str) -> datetime:
    zone, match = check_zone(timezone), _UNTIL.fullmatch(text)
    try:
        if match is None:
            raise ValueError  # noqa: TRY301 - said once, below
        day = date.fromisoformat(match[1])
        # A day is meant with its evening.
        reading = datetime.combine(day, time.fromisoformat(match[2]) if match[2] else time(23, 59, 59))
        if match[3]:
            return reading.replace(tzinfo=UTC)
        return first_showing(zone, reading)
    except (ValueError, OverflowError):
        hint = "for example UNTIL=20261231T235959Z, or UNTIL=20261231 for that whole day"
        raise InvalidField(field, f"UNTIL cannot be {text[:40]!r}", hint) from None


def _refuse_nonsense(rule: Rule, field: str) -> None:
    """What RFC 5545 rules out, because it has no meaning."""
    freq, numbered = rule.freq, [nth for nth, _ in rule.days if nth]
    by_month = freq is Freq.MONTHLY or bool(rule.months)
    faults = {
        "BYWEEKNO only means something beside FREQ=YEARLY": rule.weeks and freq is not Freq.YEARLY,
        f"BYYEARDAY means nothing beside FREQ={freq.name}": rule.year_days
        and freq in {Freq.MONTHLY, Freq.WEEKLY, Freq.DAILY},
        "BYMONTHDAY means nothing beside FREQ=WEEKLY": rule.month_days and freq is Freq.WEEKLY,
        f"a BYDAY with a number means nothing beside FREQ={freq.name}": numbered and freq > Freq.MONTHLY,
        "a BYDAY with a number means nothing beside BYWEEKNO": numbered and rule.weeks,
        "no month has a day of the week more than five times": by_month and any(abs(nth) > 5 for nth in numbered),
        "BYSETPOS needs another part to choose from": rule.positions
        and not (rule.days or any(getattr(rule, key) for key, *_ in _RANGES.values() if key != "positions")),
    }
    for fault, is_so in faults.items():
        if is_so:
            raise InvalidField(field, fault, _EXAMPLE)


def _complete(rule: Rule, start: datetime) -> Rule:
    """The same with what its beginning implies."""
    given: dict[str, tuple[object, ...]] = {}
    if not (rule.weeks or rule.year_days or rule.month_days or rule.days):
        if rule.freq is Freq.YEARLY:
            given = {"months": rule.months or (start.month,), "month_days": (start.day,)}
        elif rule.freq is Freq.MONTHLY:
            given = {"month_days": (start.day,)}
        elif rule.freq is Freq.WEEKLY:
            given = {"days": ((0, start.weekday()),)}
    elif rule.weeks and not (rule.year_days or rule.month_days or rule.days):
        given = {"days": ((0, start.weekday()),)}
    for unit, freq in (("hour", Freq.DAILY), ("minute", Freq.HOURLY), ("second", Freq.MINUTELY)):
        if rule.freq <= freq and not getattr(rule, f"{unit}s"):
            given[f"{unit}s"] = (getattr(start, unit),)
    return msgspec.structs.replace(rule, **given)


def _without_excess(rule: Rule) -> Rule:
    """The same without what changes nothing, so that equal rules have one text."""
    freq, spare = rule.freq, dict[str, object]()
    if freq >= Freq.DAILY and len(rule.days) == 7:
        spare["days"] = ()
    if freq is not Freq.YEARLY and len(rule.months) == 12:
        spare["months"] = ()
    for key, whole, since in (
        ("hours", 24, Freq.HOURLY),
        ("minutes", 60, Freq.MINUTELY),
        ("seconds", 60, Freq.SECONDLY),
    ):
        if freq >= since and len(getattr(rule, key)) == whole:
            spare[key] = ()
    weeks_are_cut = freq is Freq.WEEKLY and (rule.interval > 1 or rule.positions)
    if not rule.weeks and not weeks_are_cut:
        spare["week_start"] = 0
    return msgspec.structs.replace(rule, **spare)
