"""Schedules in plain words: a closed grammar that reads itself back, and says what it would understand instead."""

import difflib
import re
from contextlib import suppress
from datetime import UTC, datetime, time, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from foliot.domain.cron import USUAL, Cron, Dst
from foliot.domain.errors import InvalidField
from foliot.domain.rrule import recurring
from foliot.domain.schedule import Every, Plain, repeating
from foliot.domain.steps import Step
from foliot.domain.wording import DAYS, MONTHS, nearly, normal

LONGEST: Final = 200
_NTH: Final = {"first": 1, "second": 2, "third": 3, "fourth": 4}
_NTH_NUMBER: Final = {"1st": "first", "2nd": "second", "3rd": "third", "4th": "fourth"}
_UNITS: Final = {"second": timedelta(seconds=1), "minute": timedelta(minutes=1), "hour": timedelta(hours=1)}
_INSTEAD: Final = {
    "twice a day": "every day at 09:00 and 17:00",
    "every morning": "every day at 09:00",
    "every evening": "every day at 18:00",
    "every night": "every day at midnight",
    "every fortnight": "every 2 weeks on monday at 09:00",
    "every 2 weeks": "every 2 weeks on monday at 09:00",
}
"""What to offer for words that are too vague to be taken."""
EXAMPLES: Final = (
    "every 15 minutes",
    "every 2 hours",
    "every hour at :15",
    "every day at 09:00",
    "every day at 09:00 and 17:00",
    "every 2 days at 09:00",
    "every weekday at 09:00",
    "every weekend at 10:30",
    "every monday at 09:00",
    "every monday and friday at noon",
    "every month on the 1st at 06:00",
    "every month on the 1st and 15th at 06:00",
    "every month on the last day at 23:00",
    "every month on the first monday at 09:00",
    "every month on the last friday at 17:00",
    "every 2 weeks on monday at 09:00",
    "every 3 months on the 1st at 06:00",
    "every year on march 1st at midnight",
)
_WORDS: Final = sorted({word for text in EXAMPLES for word in text.split() if word.isalpha()} | {*DAYS, *MONTHS, *_NTH})


class Phrase(NamedTuple):
    """What was understood: the canonical words, and the recurrence they stand for."""

    text: str
    recurrence: Plain


class _Days(NamedTuple):
    """Days in the canonical words and as cron's day-of-month, month and day-of-week; or every so many days or weeks."""

    text: str
    fields: tuple[str, str, str] = ("*", "*", "*")
    step: int = 1
    weeks: str = ""
    """The rule by which weeks are counted."""


def parse_phrase(written: str, timezone: str = "UTC", dst: Dst = USUAL, field: str = "when") -> Phrase:
    """Read a phrase such as "every weekday at 9:00", or refuse it with the nearest one that can be read."""
    if len(written) > LONGEST:
        raise InvalidField(field, f"longer than {LONGEST} characters", f"for example {EXAMPLES[5]!r}")
    words = normal(written)
    try:
        found = _read(words, timezone, dst)
    except InvalidField as error:  # understood, and impossible: 30 February
        raise InvalidField(field, error.message, error.hint) from None
    if found is None:
        raise InvalidField(field, f"not understood: {written[:60]!r}", f"did you mean {_nearest(words)!r}?")
    return found


def _read(words: str, timezone: str, dst: Dst) -> Phrase | None:
    if (found := _elapsed(words, timezone, dst)) is not None:
        return found
    days_text, _, times_text = words.partition(" at ")
    days, times = _days(days_text), _times(times_text or "midnight")
    if days is None or not times:
        return None
    text = f"{days.text} at {' and '.join(map(_say_time, times))}"
    if days.step > 1:
        return _every_so_many_days(text, days.step, times, timezone, dst)
    minutes = {each.minute for each in times}
    if len(minutes) > 1:
        return None  # one expression has one set of minutes for all its hours
    hours = ",".join(str(each.hour) for each in times)
    if days.weeks:
        rule = f"{days.weeks};BYHOUR={hours};BYMINUTE={minutes.pop()}"
        return Phrase(text, recurring(rule, timezone, dst, None))
    return Phrase(text, Cron(f"{minutes.pop()} {hours} {' '.join(days.fields)}", timezone, dst))


def _elapsed(words: str, timezone: str, dst: Dst) -> Phrase | None:
    if match := re.fullmatch(r"every(?: (\d{1,6}))? (second|minute|hour)s?", words):
        number = int(match[1] or 1)
        text = f"every {match[2]}" if number == 1 else f"every {number} {match[2]}s"
        return Phrase(text, Every(number * _UNITS[match[2]])) if number else None
    match = re.fullmatch(r"every hour at :(\d\d)", words)
    return Phrase(words, Cron(f"{match[1]} * * * *", timezone, dst)) if match and int(match[1]) < 60 else None


def _every_so_many_days(text: str, step: int, times: list[time], timezone: str, dst: Dst) -> Phrase | None:
    if len(times) > 1:
        return None
    anchor = datetime.combine(datetime(1970, 1, 1), times[0], ZoneInfo(timezone)).astimezone(UTC)  # noqa: DTZ001
    return Phrase(text, repeating(Step(days=step), timezone, anchor, dst))


def _days(text: str) -> _Days | None:
    if text in {"every day", "every weekday", "every weekend"}:
        weekdays = {"every day": "*", "every weekday": "1-5", "every weekend": "0,6"}
        return _Days(text, ("*", "*", weekdays[text]))
    if match := re.fullmatch(r"every (\d{1,3}) days", text):
        return _Days(text, step=int(match[1])) if 1 < int(match[1]) <= 366 else None
    match = re.fullmatch(r"every (?:(\d{1,2}) weeks on )?((?:\w+ and )*\w+)", text)
    if match and (found := _of_week(match[2].split(" and "), int(match[1] or 1))):
        return found
    if match := re.fullmatch(r"every (?:month|([2346]) months)(?: on (.+))?", text):
        return _every_few_months(int(match[1] or 1), _of_month(match[2] or "1st"))
    if match := re.fullmatch(r"every year on (\w+) (\d{1,2})(?:st|nd|rd|th)?", text):
        return _of_year(match[1], int(match[2]))
    return None


def _of_week(words: list[str], step: int) -> _Days | None:
    names = [word.removesuffix("s") for word in words]
    if not step or not all(name in DAYS for name in names):
        return None
    numbers = sorted({DAYS.index(name) for name in names})
    said = " and ".join(DAYS[number] for number in numbers)
    if step == 1:
        return _Days(f"every {said}", ("*", "*", ",".join(map(str, numbers))))
    weekdays = ",".join(DAYS[number][:2].upper() for number in numbers)
    return _Days(f"every {step} weeks on {said}", weeks=f"FREQ=WEEKLY;INTERVAL={step};BYDAY={weekdays}")


def _every_few_months(step: int, days: _Days | None) -> _Days | None:
    """From January on, so that every year is alike."""
    if days is None or step == 1:
        return days
    day, _, weekday = days.fields
    text = days.text.replace("every month", f"every {step} months")
    return _Days(text, (day, ",".join(map(str, range(1, 13, step))), weekday))


def _of_month(text: str) -> _Days | None:
    if text in {"last day", "last weekday"}:
        return _Days(f"every month on the {text}", ("L" if text == "last day" else "LW", "*", "*"))
    if match := re.fullmatch(r"(first|second|third|fourth|last|1st|2nd|3rd|4th) (\w+)", text):
        if match[2] not in DAYS:
            return None
        which = _NTH_NUMBER.get(match[1], match[1])
        day, nth = DAYS.index(match[2]), _NTH.get(which)
        return _Days(f"every month on the {which} {match[2]}", ("*", "*", f"{day}L" if nth is None else f"{day}#{nth}"))
    numbers = [re.fullmatch(r"(\d{1,2})(?:st|nd|rd|th)?", each) for each in text.split(" and ")]
    if not all(numbers):
        return None
    days = sorted({int(each[1]) for each in numbers if each})
    if not all(1 <= day <= 31 for day in days):
        return None
    return _Days(f"every month on the {' and '.join(map(_ordinal, days))}", (",".join(map(str, days)), "*", "*"))


def _of_year(month: str, day: int) -> _Days | None:
    if month not in MONTHS or not 1 <= day <= 31:
        return None
    return _Days(f"every year on {month} {_ordinal(day)}", (str(day), str(MONTHS.index(month) + 1), "*"))


def _times(text: str) -> list[time]:
    found = [_time(each) for each in text.split(" and ")]
    return sorted({each for each in found if each is not None}) if all(each is not None for each in found) else []


def _time(text: str) -> time | None:
    if text in {"noon", "midnight"}:
        return time(12 if text == "noon" else 0)
    match = re.fullmatch(r"(\d{1,2})(?:[:.](\d\d))? ?(am|pm)?", text)
    if match is None:
        return None
    hour, minute = int(match[1]), int(match[2] or 0)
    if match[3]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match[3] == "pm" else 0)
    return time(hour, minute) if hour < 24 and minute < 60 else None


def _say_time(at: time) -> str:
    return {time(0): "midnight", time(12): "noon"}.get(at, f"{at:%H:%M}")


def _ordinal(number: int) -> str:
    suffix = "th" if 11 <= number % 100 <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def _nearest(words: str) -> str:
    """The same with misspelt words put right, or what comes near it, if that can be read; else the likest example."""
    if words in _INSTEAD:
        return _INSTEAD[words]
    mended = " ".join(_mended(word) for word in words.split())
    for form in (mended, *nearly(mended)):
        with suppress(InvalidField):
            if (found := _read(form, "UTC", USUAL)) is not None:
                return found.text
    return difflib.get_close_matches(mended, EXAMPLES, n=1, cutoff=0.0)[0]


def _mended(word: str) -> str:
    if not word.isalpha() or word in _WORDS:
        return word
    return next(iter(difflib.get_close_matches(word, _WORDS, n=1, cutoff=0.7)), word)
