"""How a cron expression is written: one canonical text for each, or what is wrong with it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import groupby
from types import MappingProxyType
from typing import Final

from cronsim import CronSim, CronSimError

from foliot.domain.errors import InvalidField

LONGEST: Final = 256

_MACROS: Final = MappingProxyType(
    {
        "@yearly": "0 0 1 1 *",
        "@annually": "0 0 1 1 *",
        "@monthly": "0 0 1 * *",
        "@weekly": "0 0 * * 0",
        "@daily": "0 0 * * *",
        "@midnight": "0 0 * * *",
        "@hourly": "0 * * * *",
    }
)
# The names are those of cronsim's messages ("Bad hour").
_ALLOWED: Final = MappingProxyType(
    {
        "second": "0-59, for example */10",
        "minute": "0-59, for example */5",
        "hour": "0-23, for example 9 or 8-18",
        "day-of-month": "1-31, L (last day) or LW (last weekday), for example 1,15",
        "month": "1-12 or JAN-DEC, for example 1-3",
        "day-of-week": "0-7 or SUN-SAT, 5L (last Friday) or 1#2 (second Monday), for example MON-FRI",
    }
)
_WITHOUT_A_STAR: Final = MappingProxyType({"second": range(60), "minute": range(60), "month": range(1, 13)})
"""Fields in which a `*` is only short for all: in the others one at the start has a meaning of its own."""
_EVERY_DAY: Final = MappingProxyType({"day-of-month": {*range(1, 32)}, "day-of-week": {*range(7)}})
FIELDS: Final = tuple(_ALLOWED)
"""In the order in which they are written; seconds may be missing."""
_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_NUMBERS: Final = MappingProxyType(
    {
        "month": {name: str(number) for number, name in enumerate(_MONTHS, 1)},
        "day-of-week": {name: str(number) for number, name in enumerate(_DAYS)},
    }
)
_NUMERIC: Final = re.compile(r"[0-9,/-]+", re.ASCII)
_TOKEN: Final = re.compile(r"[A-Z]+|[0-9]+")
# cronsim looks 50 years ahead and the days of the week repeat after 28: what does not fire from here on never does.
_ANY_START: Final = datetime(2001, 1, 1)  # noqa: DTZ001 - a reading of a wall clock


def parse_cron(expression: str, field: str = "cronExpression") -> str:
    """Give the canonical form: five fields, or six with seconds first; names as numbers, lists sorted and shortened."""
    if len(expression) > LONGEST:
        raise InvalidField(field, f"longer than {LONGEST} characters", "split it into several jobs")
    try:
        return _canonical(expression)
    except _Fault as fault:
        raise InvalidField(field, *fault.args) from None


class _Fault(Exception):  # noqa: N818 - never leaves this module
    """Message and hint; only the caller knows the field."""


@lru_cache(maxsize=4096)
def _canonical(expression: str) -> str:
    text = expression.strip()
    if text.startswith("@"):
        if text.lower() not in _MACROS:
            raise _Fault(f"unknown name {text!r}", "known are " + ", ".join(_MACROS))
        return _MACROS[text.lower()]
    words = text.upper().split()
    if len(words) not in (5, 6):
        raise _Fault(
            f"{len(words)} fields instead of 5 or 6",
            'write minute, hour, day-of-month, month, day-of-week, for example "0 9 * * MON"; seconds may come first',
        )
    written = dict(zip(FIELDS[-len(words) :], words, strict=True))
    parts = {name: _canonical_field(name, word) for name, word in written.items()}
    try:
        read = CronSim(" ".join(parts.values()), _ANY_START)
        next(read)
    except CronSimError as error:
        bad = str(error).removeprefix("Bad ")
        raise _impossible() if _day_is_well_written(bad, parts) else _not_understood(bad, written[bad]) from None
    except StopIteration:
        raise _impossible() from None
    numbers: Sequence[Iterable[object]] = (
        read.seconds,
        read.minutes,
        read.hours,
        read.days,
        read.months,
        read.weekdays,
    )
    shared = {
        name: _shared(name, parts[name], found) for name, found in zip(FIELDS, numbers, strict=True) if name in parts
    }
    if shared.get("second") == "0":
        del shared["second"]
    return " ".join({**shared, **_shared_days(shared, days=read.days, weekdays=read.weekdays)}.values())


@lru_cache(maxsize=4096)
def without_clock_changes(canonical: str) -> str:
    """The same where no clock is ever changed: there a `*` of the hour is only short for all, too."""
    words = canonical.split()
    words[-4] = _shortest("hour", CronSim(canonical, _ANY_START).hours, range(24))
    return " ".join(words)


def _canonical_field(name: str, word: str) -> str:
    if not word.isascii():  # isdigit and int below know more digits than cron does
        raise _not_understood(name, word)
    return ",".join(canonical_term(name, term) for term in word.split(","))


def _shared(name: str, word: str, numbers: Iterable[object]) -> str:
    """One text for all words that stand for the same numbers."""
    if name not in _WITHOUT_A_STAR and not _NUMERIC.fullmatch(word):
        return word
    return _shortest(name, numbers, _WITHOUT_A_STAR.get(name, range(0)))


def _shared_days(words: dict[str, str], **numbers: Iterable[object]) -> dict[str, str]:
    """One text for all days that are meant. A field with all of them beside a restricted one leaves nothing out.

    With a `*` at the start of either, both have to match; without one, either is enough.
    """
    pairs = zip(_EVERY_DAY.items(), numbers.values(), strict=True)
    full = {name for (name, every), found in pairs if every <= {*_rising(name, found)}}
    if full and not any(words[name].startswith("*") for name in _EVERY_DAY):
        full = {*_EVERY_DAY}
    return dict.fromkeys(full, "*")


def _shortest(name: str, numbers: Iterable[object], every: Sequence[int]) -> str:
    """With a `*` where the numbers are those of `every`, or evenly taken from its start."""
    found = _rising(name, numbers)
    step = found[1] - found[0] if len(found) > 1 else 0
    if step and found == [*every[::step]]:
        return "*" if step == 1 else f"*/{step}"
    if step > 1 and len(found) > 2 and found == [*range(found[0], found[-1] + 1, step)]:
        return f"{found[0]}-{found[-1]}/{step}"
    return ",".join(_runs(found))


def _rising(name: str, numbers: Iterable[object]) -> list[int]:
    """Sunday is 0 and 7; what is no number, or stands for the last day, is left out."""
    days = 7 if name == "day-of-week" else 100
    return sorted({number % days for number in numbers if isinstance(number, int) and number >= 0})


def _runs(numbers: list[int]) -> Iterator[str]:
    """Three or more in a row as a range, the others one by one."""
    for _, run in groupby(enumerate(numbers), lambda each: each[1] - each[0]):
        row = [number for _, number in run]
        yield from [f"{row[0]}-{row[-1]}"] if len(row) > 2 else map(str, row)


def canonical_term(name: str, term: str) -> str:
    """One term of a field's list, with names of days and months as numbers."""

    def number(token: re.Match[str]) -> str:
        return str(int(token[0])) if token[0].isdigit() else _NUMBERS.get(name, {}).get(token[0], token[0])

    term = _TOKEN.sub(number, term)
    if name == "day-of-week":
        term = re.sub(r"^7(?=$|[L#])", "0", term)
        term = re.sub(r"^([1-7])-0(?=$|/)", r"\1-7", term)  # MON-SUN
    return "*" if term == "*/1" else term


def _day_is_well_written(bad: str, parts: dict[str, str]) -> bool:
    """Say whether cronsim's "Bad day-of-month" is about the months beside it (31 February), not about the text."""
    if bad != "day-of-month":
        return False
    try:
        CronSim(f"0 0 {parts[bad]} * *", _ANY_START)
    except CronSimError:
        return False
    return True


def _not_understood(name: str, word: str) -> _Fault:
    return _Fault(f"the {name} field {word!r} is not understood", f"{name} is {_ALLOWED[name]}; ranges run upwards")


def _impossible() -> _Fault:
    return _Fault("there is no such date, so it would never fire", "for the last day of a month write L as the day")
