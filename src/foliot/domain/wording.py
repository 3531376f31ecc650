"""Other ways to say the same, or nearly the same: what people write first, in forms that the grammar knows."""

import re
from collections.abc import Iterator
from typing import Final

DAYS: Final = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_NUMBERS: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_SAME: Final = {
    **{name[:3]: name for name in (*DAYS, *MONTHS)},
    **{word: str(number) for number, word in enumerate(_NUMBERS, 1)},
    "tues": "tuesday", "thur": "thursday", "thurs": "thursday", "sept": "september",
    "each": "every", "hourly": "every hour", "daily": "every day", "weekly": "every week", "monthly": "every month",
    "quarterly": "every quarter", "yearly": "every year", "annually": "every year",
    "weekdays": "every weekday", "workday": "weekday", "workdays": "every weekday", "weekends": "every weekend",
    "sec": "second", "secs": "seconds", "min": "minute", "mins": "minutes", "hr": "hour", "hrs": "hours",
    "12am": "midnight", "12pm": "noon",
}  # fmt: skip
_IGNORED: Final = frozenset({"the", "please", "o'clock"})
_DAY: Final = rf"(?:{'|'.join(DAYS)})s?"
_MONTH: Final = "|".join(MONTHS)
_SPAN: Final = re.compile(rf"({'|'.join(DAYS)}) (?:to|through|thru|till|until) ({'|'.join(DAYS)})")
_TIME: Final = r"\d{1,2}(?:[:.]\d\d)? ?(?:am|pm)?|noon|midnight"
_REWRITES: Final = tuple(
    (re.compile(pattern), into)
    for pattern, into in (
        (r"^on (?=every )", ""),
        (r"^every every ", "every "),
        (r"^once an? ", "every "),
        (r"^every other (day|week|month)\b", r"every 2 \1s"),
        (rf"^every other ({_DAY})\b", r"every 2 weeks on \1"),
        (r"^(?:on )?weekday\b", "every weekday"),
        (r"^(?:on )?(\d{1,2}(?:st|nd|rd|th))(?= at |$)", r"every month on \1"),
        (r"^every half(?: an)? hour$", "every 30 minutes"),
        (r"^every (?:business|working|week) day\b", "every weekday"),
        (rf"^(?:at )?({_TIME}) (every .+|on .+)$", r"\2 at \1"),
        (rf"^(?:at )?({_TIME})$", r"every day at \1"),
        (rf"^(?:on )?({_DAY}\b(?: and {_DAY})*)", r"every \1"),
        (rf"^every week on ({_DAY})", r"every \1"),
        (r"^every week(?= at |$)", "every monday"),
        (r"^every quarter(?= at |$)", "every 3 months"),
        (r"^every year(?= at |$)", "every year on january 1"),
        (r"^every month on day (\d)", r"every month on \1"),
        (r"^(?:on |every )?(.+) of (?:every )?month(?= at |$)", r"every month on \1"),
        (r"(months? on )first day\b", r"\g<1>1st"),
        (rf"^(?:on |every )({_MONTH}) (\d)", r"every year on \1 \2"),
        (rf"^(?:on |every )(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})\b", r"every year on \2 \1"),
    )
)


def normal(written: str) -> str:
    """The same in lower case and plain words, as far as these are other words for a form that is known."""
    text = re.sub(r"[,;&]+| and ", " and ", written.casefold())
    text = re.sub(r"(?<=[a-z]) ?[-\u2013] ?(?=[a-z])", " to ", text)
    words = " ".join(_SAME.get(word, word) for word in text.split() if word not in _IGNORED)
    words = _SPAN.sub(_each_day, re.sub(r"(and )+", "and ", words))
    for pattern, into in _REWRITES:
        words = pattern.sub(into, words)
    return words


def nearly(words: str) -> Iterator[str]:
    """What is not said in any form that is known, in others that come near it, the nearest first."""
    for pattern, into in _NEARLY:
        words = pattern.sub(into, words)
        yield words


def _each_day(span: re.Match[str]) -> str:
    first, last = (DAYS.index(name) for name in span.groups())
    days = [DAYS[number % 7] for number in range(first, last + 1 if last >= first else last + 8)]
    return "weekday" if days == [*DAYS[1:6]] else " and ".join(days)


def _months(match: re.Match[str]) -> str:
    number = int(match[1])
    return (
        "every year on january 1" if number > 8 else f"every {min((2, 3, 4, 6), key=lambda n: abs(n - number))} months"
    )


def _other_days(match: re.Match[str]) -> str:
    days = [day for day in DAYS[1:] + DAYS[:1] if day not in match[1]]
    return f"every {' and '.join(days)}" if days else match[0]


_NEARLY: Final = tuple(
    (re.compile(pattern), into)
    for pattern, into in (
        (r"^every 0 (second|minute|hour)s?", r"every \1"),
        (r"^every (\d{1,6}) months", _months),
        (rf"^every (?:day|week) (?:except|but|without)(?: on)? ({_DAY}(?: and {_DAY})*)", _other_days),
        (rf"^every (first|second|third|fourth|last) ({_DAY})\b", r"every month on \1 \2"),
        (r"(months? on )\d+(?:st|nd|rd|th)?(?= at |$)", r"\1last day"),
    )
)
