"""Cases for the oracles: expressions, zones and instants, most of them where the clocks change."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count
from random import Random
from typing import NamedTuple
from zoneinfo import ZoneInfo

from chaos import cron as checker
from domain.scan import Pattern, changes, look, offset_at
from foliot.domain.cron import Cron, Dst
from foliot.domain.errors import InvalidField

YEARS = (2011, 2031)
MICRO = 1_000_000
HOUR, DAY = 3600, 86_400
NEAR = 36 * HOUR
MANY = 1000
"""Fires a day. More of them cost time and show nothing new, except where they follow elapsed time."""
SOME = 4
RULES = [Dst(gap, fold) for gap in ("end", "skip") for fold in ("once", "twice")]
ZONES = [
    "Africa/Cairo",  # a gap at midnight; in 2014 four changes, in 2015 to 2022 none
    "Africa/Casablanca",  # back in Ramadan, by the moon
    "Africa/El_Aaiun",
    "Africa/Windhoek",
    "America/Asuncion",
    "America/Havana",  # midnight comes twice
    "America/Los_Angeles",
    "America/Mexico_City",
    "America/New_York",
    "America/Nuuk",
    "America/Santiago",
    "America/Sao_Paulo",
    "America/Scoresbysund",  # moved to another zone in the night of a change
    "America/St_Johns",  # at one minute past midnight in 2011
    "Antarctica/Casey",  # three hours, again and again
    "Antarctica/Troll",  # two hours
    "Asia/Amman",
    "Asia/Beirut",
    "Asia/Damascus",
    "Asia/Gaza",
    "Asia/Jerusalem",
    "Asia/Kathmandu",
    "Asia/Pyongyang",  # half an hour back in 2015, and forward in 2018
    "Asia/Tehran",
    "Atlantic/Azores",  # across the midnight of UTC
    "Australia/Lord_Howe",  # half an hour
    "Australia/Sydney",
    "Europe/Berlin",
    "Europe/Chisinau",
    "Europe/Dublin",  # winter time is the exception
    "Europe/Istanbul",
    "Europe/London",
    "Pacific/Apia",  # 30 December 2011 was left out
    "Pacific/Auckland",
    "Pacific/Chatham",  # 45 minutes from the hour
    "Pacific/Easter",
    "Pacific/Fiji",
    "Pacific/Norfolk",
    "UTC",
]
SECONDS = ["", "", "", "", "", "", "0", "30", "59", "0,30", "*/20", "10-50/13", "*"]
MINUTES = ["0", "0", "30", "30", "15", "45", "0,30", "15,45", "59", "1", "5/20", "0-59/10", "*/15", "*/7", "*"]
HOURS = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "23",
    "12",
    "0,2",
    "1-3",
    "0-4",
    "22-23",
    "1-23/2",
    "2/6",
    "0-23",
    "*/3",
    "*/2",
    "*",
    "*",
]
DAYS = ["*"] * 8 + ["1", "15", "29", "30", "31", "L", "LW", "28-31", "*/2", "*/5", "10,20,L", "1,LW", "27/2", "1-7"]
MONTHS = ["*"] * 8 + ["3", "4", "10,11", "MAR-APR", "9-11", "*/2", "3/4", "feb"]
WEEKDAYS = ["*"] * 8 + [
    "0",
    "7",
    "SUN",
    "5L",
    "0L",
    "7L",
    "1#2",
    "sun#1",
    "0#5",
    "MON-FRI",
    "FRI-SUN",
    "6,0",
    "*/2",
    "1/3",
]
DATES, EVERY_DAY = (DAYS, MONTHS, WEEKDAYS), (["*"],) * 3
RULED = [(DAYS[8:], MONTHS, ["*"]), (["*"], MONTHS, WEEKDAYS[8:]), (DAYS[8:], MONTHS, WEEKDAYS[8:])]
RARE = ["0 0 29 2 *", "30 2 29 FEB *", "0 3 31 * *", "*/30 1 L 2 *", "15 0 30 12 *", "0 2 LW 3,10 *", "30 1 * 3 0L"]
NAMED = ["@hourly", "@daily", "@weekly", "@monthly", "@yearly"]


class Question(NamedTuple):
    """An expression in a zone, a window of seconds since the Unix epoch, and where in it to ask from."""

    written: str
    zone: str
    middle: int
    """Starts lie within 36 hours of it; most questions have a change of the clocks here."""
    after: int
    until: int
    jump: int = 0
    """By how many minutes the clocks change."""

    @property
    def pattern(self):
        return _pattern(self.written)

    def crons(self):
        return [Cron(self.written, self.zone, rule) for rule in RULES]

    def by_looking(self):
        seen = look(self.pattern, self.zone, self.after, self.until)
        return [seen.fires(rule.gap, rule.fold) for rule in RULES]

    def by_the_checker(self):
        window = (self.written, self.zone, self.after, self.until)
        if self.pattern.follows_elapsed_time:  # there are no rules then, so it is asked once
            return [list(checker.fires(*window))] * len(RULES)
        return [list(checker.fires(*window, rule.gap, rule.fold)) for rule in RULES]

    def starts(self, random, answers, most):
        """Draw instants in microseconds: at fires and at the change, just before, just after, and anywhere."""
        low = max(self.after, self.middle - NEAR)
        high = min(self.middle + NEAR, *(fires[-1] - 1 for fires in answers))  # so that each has its answer
        close = sorted(at for at in set().union(*answers) if low <= at <= high) or [self.middle]
        drawn = set()
        for _ in range(2 * most if low < high else 0):
            base = random.choice([random.choice(close), self.middle, random.randint(low, high)])
            shift = random.choice([0, 0, 1, -1, MICRO, -MICRO, random.randint(-HOUR, HOUR) * MICRO])
            drawn.add(min(max(base * MICRO + shift, low * MICRO), high * MICRO))
        return random.sample(sorted(drawn), min(most, len(drawn)))


def expression(choice, minutes=MINUTES, hours=HOURS, dates=DATES):
    """Draw an expression that can fire; `choice` picks from a list."""
    kind = choice(["fields"] * 12 + ["rare", "named"])
    if kind != "fields" and minutes is MINUTES:
        return choice(RARE if kind == "rare" else NAMED)
    written = " ".join(filter(None, map(choice, (SECONDS, minutes, hours, *dates))))
    with suppress(InvalidField):
        if _pattern(written).follows_elapsed_time or _pattern(written).per_day <= MANY:
            return Cron(written) and written
    return expression(choice, minutes, hours, dates)


def aimed(choice, zone, change, jump):
    """Draw an expression with a time of day that this change skips or repeats."""
    shown = change // 60 + offset_at(ZoneInfo(zone), change // 60)
    into = choice([0, abs(jump) // 2, abs(jump) - 1])
    days, minutes = divmod(shown - jump + into if jump > 0 else shown + into, 1440)
    hour, minute = divmod(minutes, 60)
    day = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=days)
    that_day = ([str(day.day)], ["*"], ["*"]), (["*"], ["*"], [f"{day:%a}"])
    times = (
        [str(minute), f"{minute},{(minute + 20) % 60}", f"{minute}/4", "*/7"],
        [str(hour), f"{hour}/5", f"{hour}-23/3", "*/2"],
    )
    return expression(choice, *times, choice([EVERY_DAY, DATES, *that_day]))


def question(written, zone, middle, jump=0):
    """Lay a window around `middle` with fires behind it: hours for what fires by the second, years for leap days."""
    if _pattern(written).per_day > MANY:
        return Question(written, zone, middle, middle - 3 * HOUR, middle + 3 * HOUR, jump)
    last = middle + NEAR
    for days in (3, 10, 40, 120, 400, 1500):
        if behind := look(_pattern(written), zone, last, middle + days * DAY).first:
            return Question(written, zone, middle, middle - NEAR - HOUR, sorted(behind)[:SOME][-1] + HOUR, jump)
    return question("@daily", zone, middle, jump)


def questions(zone, random):
    """Without end. Of four, three are about a change of the clocks, all sizes as often; one about dates of any year."""
    jumps = {}
    for minute, jump in changes(zone, *YEARS):
        jumps.setdefault(jump, []).append(minute * 60)
    for number in count():
        if number % 4 and jumps:
            jump = random.choice(sorted(jumps))
            middle = random.choice(jumps[jump])
            written = random.choice([aimed(random.choice, zone, middle, jump), expression(random.choice)])
            yield question(written, zone, middle, jump)
        else:
            year = YEARS[0] + number // 4 % (YEARS[1] - YEARS[0] + 1)
            middle = int(datetime(year, 1, 3, tzinfo=UTC).timestamp()) + random.randrange(360 * DAY)
            yield question(expression(random.choice, dates=random.choice(RULED)), zone, middle)


def seeded(zone):
    return Random(f"the oracles of {zone}")


@cache
def _pattern(written):
    return Pattern(written)
