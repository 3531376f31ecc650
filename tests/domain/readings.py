"""Zones, moments near the changes of their clocks, and cron expressions that are read a second time, independently."""

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
BERLIN = ZoneInfo("Europe/Berlin")
ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",  # half an hour
    "Africa/Cairo",  # gap at midnight
    "America/St_Johns",
    "America/Havana",  # midnight comes twice
    "America/Santiago",
    "Africa/Casablanca",  # winter time in Ramadan
    "Asia/Kolkata",
    "UTC",
]
FIXED = [
    "30 2 * * *", "0 0 * * *", "15,45 1-3 * * *", "0 2 * * 0", "30 23 * * *", "0 3 * * *", "45 1 28-31 * *",
    "*/10 2 * * *", "* 1-2 * * *", "*/15 3 * * 0",
]  # fmt: skip
FIXED_WITH_SECONDS = ["15 30 2 * * *", "*/20 0 1-2 * * *", "59 59 23 * * *"]
ELAPSED = ["*/30 * * * *", "0 */3 * * *", "*/10 */2 * * *", "7 * * * *", "0 * * 3,4,10 *"]


def utc(*parts):
    return datetime(*parts, tzinfo=UTC)


@cache
def changes(name):
    """Hours of 2026 and 2027 in which the zone's clocks change; some instant where they never do."""
    zone, hours = ZoneInfo(name), [utc(2026, 1, 1) + HOUR * hour for hour in range(2 * 365 * 24)]
    offsets = [hour.astimezone(zone).utcoffset() for hour in hours]
    return [hours[n] for n, (one, other) in enumerate(pairwise(offsets)) if one != other] or [utc(2026, 6, 1)]


@st.composite
def zones_and_starts(draw, names=ZONES):
    name = draw(st.sampled_from(names))
    near = st.tuples(st.sampled_from(changes(name)), st.integers(-30 * 3600, 30 * 3600))
    anywhere = st.tuples(st.just(utc(2026, 1, 1)), st.integers(0, 2 * 365 * 86400))
    base, seconds = draw(near | near | anywhere)
    whole = draw(st.sampled_from([1, 1, 60, 900]))
    return ZoneInfo(name), base + timedelta(
        seconds=seconds // whole * whole, microseconds=draw(st.sampled_from([0, 1]))
    )


def matcher(expression):
    """Read, independently, simple five-field expressions: numbers, lists, ranges, steps of `*`."""

    def values(text, low, high):
        found = set()
        for term in text.split(","):
            head, _, pace = term.partition("/")
            first, _, last = (f"{low}-{high}" if head == "*" else head).partition("-")
            found |= set(range(int(first), int(last or first) + 1, int(pace or 1)))
        return found

    minute, hour, day, month, weekday = expression.split()
    minutes, hours, months = values(minute, 0, 59), values(hour, 0, 23), values(month, 1, 12)
    days, weekdays = values(day, 1, 31), {number % 7 for number in values(weekday, 0, 6)}
    both = day.startswith("*") or weekday.startswith("*")

    def matches(reading):
        if reading.minute not in minutes or reading.hour not in hours or reading.month not in months:
            return False
        one, other = reading.day in days, reading.isoweekday() % 7 in weekdays
        return (one and other) if both else (one or other)

    return matches


def minutes_between(start, until):
    first = start.replace(second=0, microsecond=0)
    return [first + MINUTE * n for n in range((until - first) // MINUTE + 1)]
