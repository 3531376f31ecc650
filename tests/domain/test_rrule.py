"""Recurrence rules: what RFC 5545 says of them, read a second time, day by day and second by second."""

import tracemalloc
from calendar import isleap, monthrange
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import islice, pairwise
from time import process_time
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.readings import HOUR, MINUTE, minutes_between, utc, zones_and_starts
from foliot.domain.cron import USUAL, Cron, Dst
from foliot.domain.errors import InvalidField
from foliot.domain.rrule import Rrule, readings_after, recurring, rule_fires_after
from foliot.domain.rule import DAYS, Freq, parse_rule, take_limits
from foliot.domain.schedule import canonical_key, gap, next_fire, parse_key

EPOCH = date(1970, 1, 1)
DAY = timedelta(days=1)
RULES = [Dst(gap, fold) for gap in ("end", "skip") for fold in ("once", "twice")]


def some(numbers, most=3):
    return st.lists(numbers, min_size=1, max_size=most, unique=True).map(lambda found: ",".join(map(str, found)))


def either_end(high):
    return st.integers(1, high) | st.integers(-high, -1)


@st.composite
def rules(draw, freqs=tuple(Freq)):
    """Rules that are well formed; some of them never fire."""
    freq = draw(st.sampled_from(freqs))
    parts = {"FREQ": freq.name, "INTERVAL": draw(st.sampled_from([1, 1, 2, 3, 5]))}

    def perhaps(name, values, share=3):
        if draw(st.integers(1, share)) == 1:
            parts[name] = draw(values)

    perhaps("BYMONTH", some(st.integers(1, 12), 6))
    weekdays = st.sampled_from(DAYS)
    if freq is Freq.YEARLY:
        perhaps("BYWEEKNO", some(either_end(53)), 5)
    if freq in {Freq.MONTHLY, Freq.YEARLY} and "BYWEEKNO" not in parts:
        most = 4 if freq is Freq.MONTHLY or "BYMONTH" in parts else 52
        weekdays |= st.builds("{}{}".format, either_end(most), weekdays)
    perhaps("BYDAY", some(weekdays, 5), 2)
    if freq in {Freq.YEARLY, Freq.HOURLY, Freq.MINUTELY, Freq.SECONDLY}:
        perhaps("BYYEARDAY", some(either_end(366), 9), 5)
    if freq is not Freq.WEEKLY:
        perhaps("BYMONTHDAY", some(either_end(31), 9))
    perhaps("BYHOUR", some(st.integers(0, 23)))
    perhaps("BYMINUTE", some(st.integers(0, 59)))
    perhaps("BYSECOND", some(st.integers(0, 59)), 6)
    perhaps("WKST", st.sampled_from(DAYS))
    if any(name.startswith("BY") for name in parts):
        perhaps("BYSETPOS", some(either_end(4)), 4)
    return ";".join(f"{name}={value}" for name, value in parts.items())


@cache
def weekdays(year, month, weekday):
    """Those of a year, or of one of its months."""
    days = [date(year, 1, 1) + DAY * n for n in range(366)]
    return [each for each in days if (each.year, each.weekday()) == (year, weekday) and month in {None, each.month}]


@cache
def weeks(year, first):
    """Their first days."""
    starts = [each for each in (date(year, 1, 4) + DAY * n for n in range(-7, 380)) if each.weekday() == first]
    return [each for each in starts if (each + 3 * DAY).year == year]


class Scan:
    """A complete rule as RFC 5545 has it: each reading is looked at by itself, or in its period if positions count."""

    def __init__(self, text, phase):
        self.parts = dict(each.split("=") for each in text.split(";"))
        self.freq, self.interval, self.phase = self.parts["FREQ"], int(self.parts.get("INTERVAL", 1)), phase
        self.first = DAYS.index(self.parts.get("WKST", "MO"))

    def numbers(self, name):
        return [int(each) for each in self.parts[name].split(",")] if name in self.parts else None

    def day(self, day):
        length = monthrange(day.year, day.month)[1]
        year = 366 if isleap(day.year) else 365
        of_year = (day - date(day.year, 1, 1)).days + 1
        checks = {
            "BYMONTH": {day.month},
            "BYMONTHDAY": {day.day, day.day - length - 1},
            "BYYEARDAY": {of_year, of_year - year - 1},
            "BYWEEKNO": self.weeks(day),
        }
        if any(name in self.parts and not found & {*self.numbers(name)} for name, found in checks.items()):
            return False
        if "BYDAY" not in self.parts:
            return True
        by_month = self.freq == "MONTHLY" or "BYMONTH" in self.parts
        same = weekdays(day.year, day.month if by_month else None, day.weekday())
        name, at = DAYS[day.weekday()], same.index(day)
        return bool({name, f"{at + 1}{name}", f"{at - len(same)}{name}"} & {*self.parts["BYDAY"].split(",")})

    def weeks(self, day):
        """The week belongs to the year in which it has four days or more."""
        start = day - DAY * ((day.weekday() - self.first) % 7)
        year = (start + 3 * DAY).year
        starts = weeks(year, self.first)
        return {starts.index(start) + 1, starts.index(start) - len(starts)}

    def period(self, reading):
        days = (reading.date() - EPOCH).days
        return {
            "YEARLY": reading.year - 1970,
            "MONTHLY": (reading.year - 1970) * 12 + reading.month - 1,
            "WEEKLY": (days + (3 - self.first) % 7) // 7,
            "DAILY": days,
            "HOURLY": days * 24 + reading.hour,
            "MINUTELY": days * 1440 + reading.hour * 60 + reading.minute,
            "SECONDLY": days * 86400 + reading.hour * 3600 + reading.minute * 60 + reading.second,
        }[self.freq]

    def readings(self, start, days):
        """All of these days, from the beginning of the period that the first lies in."""
        hours, minutes, seconds = (
            self.numbers(name) if name in self.parts else range(size)
            for name, size in (("BYHOUR", 24), ("BYMINUTE", 60), ("BYSECOND", 60))
        )
        periods = {}
        for day in (start + DAY * n for n in range(days)):
            if self.day(day):
                for hour in hours:
                    for minute in minutes:
                        for second in seconds:
                            reading = datetime(day.year, day.month, day.day, hour, minute, second)  # noqa: DTZ001
                            periods.setdefault(self.period(reading), []).append(reading)
        chosen = [found for number, found in periods.items() if number % self.interval == self.phase]
        positions = self.numbers("BYSETPOS")
        if positions:
            chosen = [[found[n - 1 if n > 0 else n] for n in positions if abs(n) <= len(found)] for found in chosen]
        return sorted({reading for found in chosen for reading in found})


def days_scanned(freq):
    return {Freq.YEARLY: 3 * 366, Freq.MONTHLY: 120, Freq.WEEKLY: 60}.get(freq, 12 if freq is Freq.DAILY else 2)


@settings(max_examples=150, deadline=None)
@given(rules(), st.dates(date(1999, 1, 1), date(2040, 1, 1)), st.integers(0, 4))
def test_readings_are_those_that_a_scan_of_the_days_finds(written, day, phase):
    rule = parse_rule(written)
    phase %= rule.interval
    start = {Freq.YEARLY: day.replace(month=1, day=1), Freq.MONTHLY: day.replace(day=1)}.get(rule.freq, day)
    if rule.freq is Freq.WEEKLY:
        start -= DAY * ((day.weekday() - rule.week_start) % 7)
    span = days_scanned(rule.freq)
    end = start + DAY * span
    while rule.positions and rule.freq < Freq.DAILY and (end.day != 1 if rule.freq < Freq.WEEKLY else span % 7):
        span, end = span + 1, end + DAY
    if rule.positions and rule.freq is Freq.YEARLY:
        end = end.replace(month=1, day=1)
        span = (end - start).days
    expected = Scan(str(rule), phase).readings(start, span)
    midnight = datetime.combine(start, datetime.min.time())
    found = []
    for reading in islice(readings_after(rule, phase, midnight - timedelta(microseconds=1)), 400):
        if reading.date() >= end:
            break
        found.append(reading)
    assert found == expected[: len(found)]
    assert len(found) in {len(expected), 400}


@settings(max_examples=150, deadline=None)
@given(rules(), zones_and_starts(), st.sampled_from(RULES))
def test_fires_rise_and_are_the_same_however_asked(written, zone_and_start, dst):
    zone, start = zone_and_start
    try:
        rrule = recurring(written, zone.key, dst, None)
    except InvalidField:
        return  # it never fires
    found = list(islice(rule_fires_after(rrule, start), 5))
    for one, other in pairwise([start, *found]):
        assert one < other
        assert next_fire(rrule, one + (other - one) / 2) == other
        assert next_fire(rrule, other - timedelta(microseconds=1)) == other
    assert parse_key(canonical_key(rrule)) == rrule


SIMPLE = st.sampled_from(
    [
        ("FREQ=DAILY;BYHOUR=2;BYMINUTE=30", "30 2 * * *"),
        ("FREQ=WEEKLY;BYDAY=SU;BYHOUR=0,3", "0 0,3 * * 0"),
        ("FREQ=MONTHLY;BYMONTHDAY=28,29,30,31;BYHOUR=1;BYMINUTE=45", "45 1 28-31 * *"),
        ("FREQ=MONTHLY;BYDAY=-1SU;BYHOUR=2;BYMINUTE=15,30", "15,30 2 * * 0L"),
        ("FREQ=DAILY;BYDAY=SA,SU;BYHOUR=23;BYMINUTE=30", "30 23 * * 0,6"),
        ("FREQ=HOURLY;BYMINUTE=7", "7 * * * *"),
        ("FREQ=HOURLY;INTERVAL=3", "0 */3 * * *"),
        ("FREQ=MINUTELY;INTERVAL=30", "*/30 * * * *"),
        ("FREQ=SECONDLY;BYMINUTE=0;BYSECOND=0,30;BYHOUR=1,2,3", "*/30 0 1,2,3 * * *"),
    ]
)


@settings(max_examples=150, deadline=None)
@given(SIMPLE, zones_and_starts(), st.sampled_from(RULES))
def test_days_on_which_the_clocks_change_are_as_with_cron(pair, zone_and_start, dst):
    (written, expression), (zone, start) = pair, zone_and_start
    if written.startswith("FREQ=SECONDLY"):  # a `*` among the seconds alone does not make a cron follow elapsed time
        dst = Dst("skip", "twice")
    rrule, cron = recurring(written, zone.key, dst, None), Cron(expression, zone.key, dst)
    after = start
    for _ in range(12):
        following = next_fire(cron, after)
        assert next_fire(rrule, after) == following
        after = following


@settings(max_examples=60, deadline=None)
@given(zones_and_starts(), st.sampled_from([2, 5, 90]))
def test_by_the_minute_every_instant_whose_reading_matches_counts(zone_and_start, interval):
    zone, start = zone_and_start
    rrule = recurring(f"FREQ=MINUTELY;INTERVAL={interval}", zone.key, USUAL, None)
    until = start + 30 * HOUR
    readings = [(now, now.astimezone(zone).replace(tzinfo=None)) for now in minutes_between(start, until)]
    epoch = datetime(1970, 1, 1)  # noqa: DTZ001
    expected = [now for now, shown in readings if now > start and not (shown - epoch) % (interval * MINUTE)]
    assert [fire for fire in islice(rule_fires_after(rrule, start), len(expected) + 1) if fire <= until] == expected


def test_24_hours_are_counted_by_the_wall_clock_and_stay_at_two():
    rrule = recurring("FREQ=HOURLY;INTERVAL=24", "Europe/Berlin", USUAL, utc(2026, 1, 1, 1))
    spring = list(islice(rule_fires_after(rrule, utc(2026, 3, 27, 12)), 2))
    assert spring == [utc(2026, 3, 28, 1), utc(2026, 3, 30)]  # on the 29th no clock shows two
    autumn = list(islice(rule_fires_after(rrule, utc(2026, 10, 24, 12)), 3))
    assert autumn == [utc(2026, 10, 25), utc(2026, 10, 25, 1), utc(2026, 10, 26, 1)]


def test_weeks_are_counted_from_the_end_of_the_year_that_they_belong_to():
    def mondays(week):
        rrule = recurring(f"FREQ=YEARLY;BYWEEKNO={week};BYDAY=MO", "UTC", USUAL, None)
        return [f"{fire:%Y-%m-%d}" for fire in islice(rule_fires_after(rrule, utc(2018, 12, 1)), 2)]

    assert mondays(-53) == ["2019-12-30", "2025-12-29"]  # 2020 and 2026 have 53
    assert mondays(-52) == ["2018-12-31", "2020-01-06"]


@pytest.mark.parametrize("week", [-53, -52, -1, 1, 53])
def test_weeks_are_those_of_the_iso_calendar_for_four_centuries(week):
    def number(monday):
        year, of_year, _ = monday.isocalendar()
        return of_year if week > 0 else of_year - date(year, 12, 28).isocalendar().week - 1

    mondays = [date(1969, 12, 29) + weeks * 7 * DAY for weeks in range(1, 52 * 390)]
    rule = parse_rule(f"FREQ=YEARLY;BYWEEKNO={week};BYDAY=MO")
    wanted = [monday for monday in mondays if number(monday) == week]
    found = readings_after(rule, 0, datetime(1970, 1, 1))  # noqa: DTZ001 - a reading
    assert [reading.date() for reading in islice(found, len(wanted))] == wanted


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("FREQ=MONTHLY;BYDAY=2TU;BYHOUR=9", "FREQ=MONTHLY;BYDAY=2TU;BYHOUR=9;BYMINUTE=0;BYSECOND=0"),
        (
            "rrule:byhour=17,9;byday=fr,mo,+1tu,mo;freq=monthly;interval=1;",
            "FREQ=MONTHLY;BYDAY=MO,FR,1TU;BYHOUR=9,17;BYMINUTE=0;BYSECOND=0",
        ),
        ("FREQ=WEEKLY", "FREQ=WEEKLY;BYDAY=TH;BYHOUR=0;BYMINUTE=0;BYSECOND=0"),
        ("FREQ=YEARLY", "FREQ=YEARLY;BYMONTH=1;BYMONTHDAY=1;BYHOUR=0;BYMINUTE=0;BYSECOND=0"),
        ("FREQ=HOURLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;WKST=SU", "FREQ=HOURLY;BYMINUTE=0;BYSECOND=0"),
        (
            "FREQ=WEEKLY;WKST=SU;INTERVAL=2;BYDAY=MO",
            "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;BYHOUR=0;BYMINUTE=0;BYSECOND=0;WKST=SU",
        ),
        ("FREQ=YEARLY;BYWEEKNO=20", "FREQ=YEARLY;BYWEEKNO=20;BYDAY=TH;BYHOUR=0;BYMINUTE=0;BYSECOND=0"),
        ("FREQ=SECONDLY;INTERVAL=10", "FREQ=SECONDLY;INTERVAL=10"),
    ],
)
def test_one_text_for_each_rule_with_nothing_left_to_be_guessed(written, canonical):
    assert str(parse_rule(written)) == canonical
    assert str(parse_rule(canonical, datetime(2026, 7, 14, 15, 16, 17))) == canonical  # noqa: DTZ001


def test_what_a_rule_leaves_open_is_as_when_it_begins():
    begin = utc(2026, 2, 3, 8, 30)  # a Tuesday, half past nine in Berlin
    rrule = recurring("FREQ=WEEKLY;INTERVAL=2", "Europe/Berlin", USUAL, begin)
    assert str(rrule.rule) == "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU;BYHOUR=9;BYMINUTE=30;BYSECOND=0"
    assert list(islice(rule_fires_after(rrule, begin - HOUR), 2)) == [begin, begin + 14 * DAY]


def test_jobs_that_begin_at_different_times_share_what_fires_alike():
    weekly = [
        recurring("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;BYHOUR=9;BYMINUTE=0;BYSECOND=0", "UTC", USUAL, utc(2026, 2, 3 + n))
        for n in (0, 1, 7, 14)
    ]
    assert weekly[0] == weekly[1] == weekly[3] != weekly[2]


def test_the_week_begins_where_the_rule_says():
    """The example of RFC 5545: the same rule, but weeks that begin on Sunday give other days."""
    begin = utc(1997, 8, 5, 9)
    for week_start, days in (("MO", [5, 10, 19, 24]), ("SU", [5, 17, 19, 31])):
        rrule = recurring(f"FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST={week_start}", "UTC", USUAL, begin)
        assert [fire.day for fire in islice(rule_fires_after(rrule, begin - HOUR), 4)] == days


@pytest.mark.parametrize(
    ("written", "fires"),
    [
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=17", [(2026, 1, 30, 17), (2026, 2, 27, 17)]),
        ("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", [(2026, 2, 13), (2026, 3, 13), (2026, 11, 13)]),
        ("FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8", [(2026, 11, 3), (2030, 11, 5)]),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO", [(2044, 2, 29), (2072, 2, 29), (2112, 2, 29)]),
        ("FREQ=YEARLY;BYDAY=20MO", [(2026, 5, 18), (2027, 5, 17)]),
        ("FREQ=MONTHLY;BYMONTHDAY=31", [(2026, 1, 31), (2026, 3, 31), (2026, 5, 31)]),
        ("FREQ=MONTHLY;BYMONTHDAY=-1", [(2026, 1, 31), (2026, 2, 28)]),
        ("FREQ=DAILY;BYHOUR=9,10;BYMINUTE=0,20,40;BYSETPOS=2,-1", [(2026, 1, 1, 9, 20), (2026, 1, 1, 10, 40)]),
    ],
)
def test_rules_that_people_know(written, fires):
    found = islice(rule_fires_after(recurring(written, "UTC", USUAL, None), utc(2025, 12, 31, 23)), len(fires))
    assert list(found) == [utc(*each) for each in fires]


@pytest.mark.parametrize(
    "written",
    [
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;INTERVAL=7;BYDAY=MO",  # counted from a Thursday
        "FREQ=SECONDLY;INTERVAL=2;BYSECOND=1",
        "FREQ=SECONDLY;BYSECOND=1;BYSETPOS=2",
        "FREQ=WEEKLY;BYDAY=MO;BYSETPOS=7",
        "FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29",  # counted from 1970
    ],
)
def test_a_rule_that_never_fires_is_refused_soon(written):
    begin = process_time()
    with pytest.raises(InvalidField, match="would not fire") as refused:
        recurring(written, "Europe/Berlin", USUAL, None)
    assert refused.value.field == "rrule"
    assert process_time() - begin < 3


@pytest.mark.parametrize(
    "written",
    [
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
        "FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
        "FREQ=SECONDLY;INTERVAL=999999;BYHOUR=3;BYMINUTE=7",
        "FREQ=SECONDLY;INTERVAL=2;BYHOUR=23",
    ],
)
def test_a_rare_rule_is_answered_soon(written):
    begin = process_time()
    assert next_fire(recurring(written, "Europe/Berlin", USUAL, None), utc(2073, 1, 1))
    assert process_time() - begin < 3


@pytest.mark.parametrize(
    ("written", "message", "hint"),
    [
        ("", "NAME=VALUE", "FREQ=MONTHLY"),
        ("BYDAY=MO", "no FREQ", "FREQ=MONTHLY"),
        ("FREQ=FORTNIGHTLY", "FREQ cannot be 'FORTNIGHTLY'", "YEARLY"),
        ("FREQ=DAILY;BYHUOR=9", "unknown part 'BYHUOR'", "BYHOUR"),
        ("FREQ=DAILY;COLOUR=RED", "unknown part 'COLOUR'", "known are FREQ"),
        ("FREQ=DAILY;BYHOUR=9;BYHOUR=10", "stands twice", "one list"),
        ("FREQ=DAILY;BYHOUR=24", "BYHOUR cannot be '24'", "0 to 23"),
        ("FREQ=DAILY;BYSECOND=60", "BYSECOND cannot be '60'", "0 to 59"),
        ("FREQ=DAILY;BYHOUR=٣", "BYHOUR cannot be", "0 to 23"),
        ("FREQ=MONTHLY;BYMONTHDAY=0", "BYMONTHDAY cannot be '0'", "-31 to -1"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL cannot be '0'", "1 to"),
        ("FREQ=DAILY;INTERVAL=1,2", "one number", "FREQ"),
        ("FREQ=WEEKLY;BYDAY=MONDAY", "BYDAY cannot be 'MONDAY'", "MO to SU"),
        ("FREQ=WEEKLY;BYDAY=2MO", "BYDAY with a number", "FREQ"),
        ("FREQ=MONTHLY;BYDAY=6MO", "more than five times", "FREQ"),
        ("FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY means nothing", "FREQ"),
        ("FREQ=DAILY;BYYEARDAY=1", "BYYEARDAY means nothing", "FREQ"),
        ("FREQ=MONTHLY;BYWEEKNO=1", "BYWEEKNO only", "FREQ"),
        ("FREQ=DAILY;BYSETPOS=1", "BYSETPOS needs", "FREQ"),
        ("FREQ=DAILY;COUNT=3", "COUNT is no part", "maxRuns"),
        ("DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY", "more than one rule", "scheduleAt"),
        ("FREQ=DAILY;BYHOUR=" + "1," * 300, "longer than 512", "several"),
    ],
)
def test_a_refusal_says_which_part_and_what_it_may_be(written, message, hint):
    with pytest.raises(InvalidField) as refused:
        parse_rule(written, field="rrule")
    assert message in refused.value.message
    assert hint in refused.value.hint


def test_what_ends_a_rule_is_taken_out_of_it():
    assert take_limits("FREQ=DAILY;COUNT=5;BYHOUR=9", "UTC") == ("FREQ=DAILY;BYHOUR=9", 5, None)
    assert take_limits("FREQ=DAILY;UNTIL=20260701T120000Z", "Europe/Berlin").until == utc(2026, 7, 1, 12)
    assert take_limits("FREQ=DAILY;UNTIL=20260701T120000", "Europe/Berlin").until == utc(2026, 7, 1, 10)
    assert take_limits("FREQ=DAILY;UNTIL=20260701", "Europe/Berlin").until == utc(2026, 7, 1, 21, 59, 59)


@pytest.mark.parametrize(
    "written",
    ["FREQ=DAILY;COUNT=0", "FREQ=DAILY;COUNT=1;UNTIL=20260101", "FREQ=DAILY;UNTIL=20261301", "FREQ=DAILY;UNTIL=soon"],
)
def test_an_end_that_is_none_is_refused(written):
    with pytest.raises(InvalidField) as refused:
        take_limits(written, "UTC")
    assert refused.value.field == "rrule"


def test_rules_for_the_clocks_mean_nothing_by_the_hour_so_such_schedules_are_shared():
    assert recurring("FREQ=HOURLY", "Europe/Berlin", Dst("skip", "twice"), None) == recurring(
        "FREQ=HOURLY", "Europe/Berlin", USUAL, None
    )
    daily = recurring("FREQ=DAILY;BYHOUR=2", "Europe/Berlin", Dst("skip", "twice"), None)
    assert canonical_key(daily).endswith("|0|Europe/Berlin|skip|twice")


def test_a_phase_that_the_interval_does_not_have_is_refused():
    with pytest.raises(ValueError, match="one of 2 periods"):
        Rrule(parse_rule("FREQ=DAILY;INTERVAL=2"), phase=2)


def test_what_was_missed_is_counted():
    rrule = recurring("FREQ=DAILY;BYHOUR=9", "UTC", USUAL, None)
    found = gap(rrule, utc(2026, 1, 1), utc(2026, 1, 31), most=5)
    assert (found.first, found.last, found.count, found.exact) == (utc(2026, 1, 1, 9), utc(2026, 1, 30, 9), 5, False)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
@pytest.mark.parametrize("freq", Freq)
def test_they_end_with_the_calendar(zone, freq):
    rrule = recurring(f"FREQ={freq.name}", zone, USUAL, None)
    assert next_fire(rrule, datetime.max.replace(tzinfo=UTC)) is None
    assert ZoneInfo(zone).key in canonical_key(rrule)


@pytest.mark.parametrize("form", ["FREQ=DAILY;BYSECOND={all};INTERVAL={n}", "FREQ=SECONDLY;INTERVAL=10000{n}"])
def test_rules_that_fire_each_second_are_not_remembered_at_megabytes_each(form: str):
    """Three to seven, for a thousand rules, which whoever may look ahead could ask for."""
    every = {name: ",".join(map(str, range(size))) for name, size in (("hours", 24), ("minutes", 60), ("all", 60))}
    tracemalloc.start()
    try:
        for number in range(1, 7):
            rule = form.format(n=number, **every) + f";BYHOUR={every['hours'][2:]};BYMINUTE={every['minutes']}"
            assert next(rule_fires_after(recurring(rule, "UTC", USUAL, None), utc(2026, 1, 1)))
        assert tracemalloc.get_traced_memory()[0] < 6 << 20
    finally:
        tracemalloc.stop()
