"""How a length of time is written: ISO 8601 days and clock parts, or seconds."""

import math
import re
from datetime import timedelta
from typing import Final

from foliot.domain.errors import InvalidField

_SECONDS: Final = re.compile(r"(?P<seconds>\d{1,18})(?:\.(?P<fraction>\d{1,6}))?", re.ASCII)
_ISO: Final = re.compile(
    r"P(?=.)(?:(?P<weeks>\d{1,18})W)?(?:(?P<days>\d{1,18})D)?"
    r"(?:T(?=.)(?:(?P<hours>\d{1,18})H)?(?:(?P<minutes>\d{1,18})M)?"
    r"(?:(?P<seconds>\d{1,18})(?:[.,](?P<fraction>\d{1,6}))?S)?)?",
    re.ASCII,
)
_CALENDAR: Final = re.compile(r"P[^T]*[YM].*")
_EXAMPLE: Final = 'write "PT90S", "PT1H30M", "P1D", "P2W", or a number of seconds'
_COLLOQUIAL: Final = re.compile(r"(\d{1,18}) ?([SMHDW])(?:(?:EC|IN|R|OUR|AY|EEK|ECOND|INUTE)S?)?", re.ASCII)
_UNITS: Final = (("P", timedelta(days=1), "D"), ("PT", timedelta(hours=1), "H"), ("PT", timedelta(minutes=1), "M"))


def parse_duration(text_or_seconds: str | float, field: str) -> timedelta:
    """Read `PT1H30M`, `P1D`, `P2W`, `PT0.5S` or plain seconds; never negative.

    A day is 24 hours. Months and years are refused, because they have no length.
    """
    try:
        if isinstance(text_or_seconds, str):
            return _parse_text(text_or_seconds, field)
        return _parse_number(text_or_seconds, field)
    except OverflowError:
        raise InvalidField(field, "the duration is too long", "the longest is 999999999 days") from None


def format_duration(duration: timedelta) -> str:
    """Write the one canonical text: one number of the largest unit that leaves no rest (`PT90S`, `PT2H`, `P14D`)."""
    if duration < timedelta(0):
        raise ValueError(f"a duration is never negative, {duration} is")
    if not duration:
        return "PT0S"
    for head, unit, letter in _UNITS:
        if not duration % unit:
            return f"{head}{duration // unit}{letter}"
    seconds, rest = divmod(duration, timedelta(seconds=1))
    fraction = f".{rest.microseconds:06d}".rstrip("0") if rest else ""
    return f"PT{seconds}{fraction}S"


def _parse_text(text: str, field: str) -> timedelta:
    upper = text.strip().upper()
    if match := _ISO.fullmatch(upper) or _SECONDS.fullmatch(upper):
        parts = match.groupdict("0")
        microseconds = int(parts.pop("fraction").ljust(6, "0"))
        return timedelta(microseconds=microseconds, **{unit: int(number) for unit, number in parts.items()})
    if upper.startswith("-"):
        raise InvalidField(field, f"a duration is never negative: {text[:40]!r}", _EXAMPLE)
    if _CALENDAR.fullmatch(upper):
        raise InvalidField(
            field,
            f"months and years have no fixed length: {text[:40]!r}",
            "minutes come after a T, as in PT15M; for calendar steps use days, weeks or cronExpression",
        )
    raise InvalidField(field, f"not a duration: {text[:40]!r}", _meant(upper) or _EXAMPLE)


def _meant(text: str) -> str:
    """What `5m` and `90 seconds` are in ISO 8601."""
    if (match := _COLLOQUIAL.fullmatch(text)) is None:
        return ""
    return f"did you mean {'P' if match[2] in 'DW' else 'PT'}{match[1]}{match[2]}?"


def _parse_number(seconds: float, field: str) -> timedelta:
    if isinstance(seconds, bool) or not math.isfinite(seconds):
        raise InvalidField(field, f"not a number of seconds: {seconds}", _EXAMPLE)
    if seconds < 0:
        raise InvalidField(field, f"a duration is never negative: {seconds}", _EXAMPLE)
    return timedelta(seconds=seconds)
