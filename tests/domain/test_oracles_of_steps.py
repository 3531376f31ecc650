"""Steps of a calendar and of elapsed time, beside fires that are counted one by one from the start."""

from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from itertools import count
from random import Random
from zoneinfo import ZoneInfo

import pytest

from domain.oracles import DAY, HOUR, MICRO, RULES, YEARS, ZONES, seeded
from domain.scan import changes, offset_at, tape
from foliot.domain.schedule import Every, next_fire
from foliot.domain.steps import Step, Steps

CHANGING = [zone for zone in ZONES if changes(zone, *YEARS)]
PER_ZONE, PER_STEPS = 150, 15
UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(micros):
    return UNIX_EPOCH + timedelta(microseconds=micros)


def showings(zone, reading, rest, rule):
    """When a clock shows this minute and the `rest` of it, or the gap ends that swallows it; microseconds."""
    found = []
    for day in range(reading // 1440 - 1, reading // 1440 + 2):
        shown = tape(zone, day)
        found += [
            (day * 1440 + place) * 60 * MICRO + rest for place, each in enumerate(shown.readings) if each == reading
        ]
        for place, skipped in shown.skipped.items():
            if reading in skipped:
                return [(day * 1440 + place) * 60 * MICRO] if rule.gap == "end" else []
    assert found
    return found if rule.fold == "twice" else found[:1]


def counted(step, zone, anchor, rule, low, high):
    """All fires about (low, high], counted from the anchor; those much earlier are counted, but not looked up."""
    minute, rest = divmod(anchor or 0, 60 * MICRO)
    reading = 0 if anchor is None else minute + offset_at(ZoneInfo(zone), minute)
    start, time_of_day = date(1970, 1, 1) + timedelta(days=reading // 1440), reading % 1440
    year, month = start.year, start.month
    for number in count():
        day = date(year, month, min(start.day, monthrange(year, month)[1])) + timedelta(days=number * step.days)
        shown = (day - date(1970, 1, 1)).days * 1440 + time_of_day
        elapsed = number * step.clock // timedelta(microseconds=1)
        about = shown * 60 * MICRO + elapsed
        if about > high + 3 * DAY * MICRO:
            return
        if about > low - 3 * DAY * MICRO:
            at_all = [each + elapsed for each in showings(zone, shown, rest, rule)]
            if number == 0 and anchor is not None:
                at_all = [anchor, *(each for each in at_all if each > anchor)]
            yield from at_all
        for _ in range(step.months):
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)


def drawn_step(random):
    step = Step(
        random.choice([0, 0, 0, 0, 1, 2, 3, 12, 18, 24, 119]),
        random.choice([0, 1, 1, 2, 7, 10, 30]),
        timedelta(seconds=random.choice([0, 0, 0, 90, 2 * HOUR, 12_345, 30 * HOUR])),
    )
    return step if step.is_calendrical else drawn_step(random)


def drawn_anchor(random, change, jump):
    """An anchor whose time of day the change skips or repeats, some time before it; or none."""
    into = random.choice([0, abs(jump) // 2, abs(jump) - 1])
    anchor = (change + min(jump, 0) + into) * 60 - random.randrange(70) * DAY + random.choice([0, 0, 7])
    return random.choice([None, anchor * MICRO, anchor * MICRO, anchor * MICRO + random.choice([0, 500_000])])


@pytest.mark.parametrize("zone", CHANGING)
def test_steps_of_a_calendar_agree_with_counting(zone):
    random, cases = seeded(zone), set()
    while len(cases) < PER_ZONE:
        change, jump = random.choice(changes(zone, *YEARS))
        step, anchor = drawn_step(random), drawn_anchor(random, change, jump)
        low = (change * 60 - 4 * DAY) * MICRO
        high = low + (8 * DAY + int(3 * step.about.total_seconds())) * MICRO
        rule = random.choice(RULES)
        fires = sorted(set(counted(step, zone, anchor, rule, low, high)))
        steps = Steps(step, zone, None if anchor is None else at(anchor), rule)
        for _ in range(PER_STEPS):
            near = random.choice([random.choice(fires), change * 60 * MICRO])
            start = max(low, min(near + random.choice([0, 1, -1, MICRO, -HOUR * MICRO]), fires[-1] - 1))
            wanted = next(fire for fire in fires if fire > start)
            assert next_fire(steps, at(start)) == at(wanted), (steps, at(start))
            cases.add((step, anchor, rule, start))


def test_the_cases_are_as_many_as_promised():
    assert PER_ZONE * len(CHANGING) >= 5_000


def test_steps_of_elapsed_time_agree_with_adding_them_up():
    random, cases = Random("every"), set()
    while len(cases) < 3_000:
        period = random.choice([1, 1.5, 1.000001, 59, 90, 420, HOUR, DAY - 1, DAY, 7 * DAY, 366 * DAY, 3653 * DAY])
        period, anchor = round(period * MICRO), random.randrange(1_300_000_000 * MICRO, 1_900_000_000 * MICRO)
        grain = random.choice([1, period])
        start = anchor + random.randrange(-period, 200 * period) // grain * grain + random.choice([0, 0, 1, -1])
        wanted = next(fire for fire in count(anchor, period) if fire > start)
        assert next_fire(Every(timedelta(microseconds=period), at(anchor)), at(start)) == at(wanted)
        cases.add((period, anchor, start))


def test_without_an_anchor_they_agree_with_looking_at_every_half_second():
    random, cases = Random("every, from the epoch"), set()
    while len(cases) < 2_000:
        halves = random.choice([2, 3, 15, 118, 180, 840, 7200, random.randrange(2, 4000)])
        grain = random.choice([1, MICRO, 60 * MICRO])
        start = random.randrange(1_300_000_000 * MICRO, 1_900_000_000 * MICRO) // grain * grain
        wanted = next(half for half in count(start * 2 // MICRO + 1) if half % halves == 0)
        assert next_fire(Every(timedelta(seconds=halves / 2)), at(start)) == at(wanted * MICRO // 2)
        cases.add((halves, start))
