"""Other ways to say the same: what people write first, turned into the forms that the grammar of phrases knows."""

import re
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
_TIME: Final = r"\d{1,2}(?:[:.]\d\d)? ?(?:am|pm)?|noon|midnight"
_REWRITES: Final = tuple(
    (re.compile(pattern), into)
    for pattern, into in (
        (r"^on (?=every )", ""),
        (r"^every every ", "every "),
        (r"^once an? ", "every "),
        (r"^every other (day|week|month)\b", r"every 2 \1s"),
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
    words = " ".join(_SAME.get(word, word) for word in text.split() if word not in _IGNORED)
    words = re.sub(r"(and )+", "and ", words)
    for pattern, into in _REWRITES:
        words = pattern.sub(into, words)
    return words
