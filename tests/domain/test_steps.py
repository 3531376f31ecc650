"""Calendar steps: the time of day stays, short months do not shorten the next, elapsed parts are elapsed."""

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.readings import ZONES, utc
from foliot.domain.daylight import Dst
from foliot.domain.errors import InvalidField
from foliot.domain.schedule import Every, canonical_key, gap, next_fire, parse_key, repeating
from foliot.domain.steps import Step, Steps, parse_step

STEPS = st.builds(
    Step,
    months=st.sampled_from([0, 0, 1, 3, 12, 18, 118]),
    days=st.sampled_from([1, 1, 7, 30]),
    clock=st.sampled_from([timedelta(), timedelta(), timedelta(hours=2), timedelta(seconds=90)]),
)
INSTANTS = st.integers(0, 20 * 365 * 86_400).map(lambda seconds: utc(2020, 1, 1) + timedelta(seconds=seconds))
RULES = [Dst(gap, fold) for gap in ("end", "skip") for fold in ("once", "twice")]
RECURRING = st.builds(
    Steps,
    STEPS,
    st.sampled_from([zone for zone in ZONES if zone != "UTC"]),
    st.none() | INSTANTS,
    st.sampled_from(RULES),
)


def fires(recurrence, after, count):
    found = []
    while len(found) < count:
        after = next_fire(recurrence, after)
        found.append(after)
    return found


@settings(max_examples=150, deadline=None)
@given(RECURRING, INSTANTS)
def test_fires_rise_and_are_the_same_however_asked(steps, start):
    found = fires(steps, start, 6)
    assert found == sorted(set(found))
    assert found[0] > start
    for one, other in pairwise(found):
        assert next_fire(steps, one + (other - one) / 2) == other
        assert next_fire(steps, other - timedelta(microseconds=1)) == other


@settings(max_examples=150, deadline=None)
@given(st.builds(Steps, STEPS.map(lambda step: Step(step.months, step.days)), st.sampled_from(ZONES[:5]), INSTANTS))
def test_without_clock_parts_the_time_of_day_is_the_anchors_wherever_it_exists(steps):
    zone = ZoneInfo(steps.timezone)
    wanted = steps.anchor.astimezone(zone).time()
    for fire in islice(fires(steps, steps.anchor, 8), 8):
        shown = fire.astimezone(zone)
        exists = datetime.combine(shown.date(), wanted, zone)
        if exists.astimezone(UTC).astimezone(zone).time() == wanted:
            assert shown.time() == wanted


@settings(max_examples=100, deadline=None)
@given(RECURRING)
def test_the_key_of_a_schedule_reads_back(steps):
    assert parse_key(canonical_key(steps)) == steps


@pytest.mark.parametrize(
    ("written", "anchor", "expected"),
    [
        ("P1M", (2026, 1, 31, 9), [(2026, 2, 28, 9), (2026, 3, 31, 9), (2026, 4, 30, 9), (2026, 5, 31, 9)]),
        ("P1Y", (2024, 2, 29), [(2025, 2, 28), (2026, 2, 28), (2027, 2, 28), (2028, 2, 29)]),
        ("P2Y", (2024, 2, 29), [(2026, 2, 28), (2028, 2, 29), (2030, 2, 28), (2032, 2, 29)]),
        ("P18M", (2026, 8, 31), [(2028, 2, 29), (2029, 8, 31), (2031, 2, 28), (2032, 8, 31)]),
        ("P10Y", (2026, 1, 1), [(2036, 1, 1), (2046, 1, 1)]),
        ("P3650D", (2026, 1, 1), [(2035, 12, 30), (2045, 12, 27)]),
        ("P1M1D", (2026, 1, 1), [(2026, 2, 2), (2026, 3, 3), (2026, 4, 4), (2026, 5, 5)]),
        ("P1MT6H", (2026, 1, 1), [(2026, 2, 1, 6), (2026, 3, 1, 12), (2026, 4, 1, 18), (2026, 5, 2)]),
    ],
)
def test_steps_are_counted_from_the_anchor(written, anchor, expected):
    steps = repeating(parse_step(written, "every"), "UTC", utc(*anchor))
    assert fires(steps, utc(*anchor), len(expected)) == [utc(*each) for each in expected]


def test_a_day_keeps_the_time_of_day_and_24_hours_do_not():
    anchor = utc(2026, 3, 27, 8)  # nine in Berlin
    daily = repeating(parse_step("P1D", "every"), "Europe/Berlin", anchor)
    elapsed = repeating(parse_step("PT24H", "every"), "Europe/Berlin", anchor)
    assert fires(daily, anchor, 3) == [utc(2026, 3, 28, 8), utc(2026, 3, 29, 7), utc(2026, 3, 30, 7)]
    assert fires(elapsed, anchor, 3) == [utc(2026, 3, 28, 8), utc(2026, 3, 29, 8), utc(2026, 3, 30, 8)]


@pytest.mark.parametrize("micros", [1, 500_000, 999_999])
def test_an_anchor_between_two_seconds_finds_the_end_of_a_gap(micros):
    anchor = utc(2026, 3, 28, 1, 0, 0, micros)  # two in Berlin, and a little
    daily = repeating(parse_step("P1D", "every"), "Europe/Berlin", anchor)
    assert fires(daily, anchor, 2) == [utc(2026, 3, 29, 1), utc(2026, 3, 30, 0, 0, 0, micros)]


@pytest.mark.parametrize(
    ("dst", "spring", "autumn"),
    [
        (Dst(), [utc(2026, 3, 29, 1)], [utc(2026, 10, 25, 0, 30)]),
        (Dst("skip", "twice"), [], [utc(2026, 10, 25, 0, 30), utc(2026, 10, 25, 1, 30)]),
    ],
)
def test_half_past_two_in_berlin(dst, spring, autumn):
    def fired(day):
        daily = repeating(parse_step("P1D", "every"), "Europe/Berlin", utc(2026, 1, 1, 1, 30), dst)
        return [fire for fire in fires(daily, day, 3) if fire < day + timedelta(hours=24)]

    assert fired(utc(2026, 3, 28, 12)) == spring
    assert fired(utc(2026, 10, 24, 12)) == autumn


def test_an_anchor_at_a_second_showing_is_the_first_fire():
    second = utc(2026, 10, 25, 1, 30)  # half past two in Berlin, again
    daily = repeating(parse_step("P1D", "every"), "Europe/Berlin", second, Dst("end", "twice"))
    assert fires(daily, utc(2026, 10, 24), 2) == [second, utc(2026, 10, 26, 1, 30)]


def test_the_key_without_rules_of_its_own_is_the_one_that_it_always_was():
    steps = repeating(parse_step("P1D", "every"), "Europe/Berlin", None)
    assert canonical_key(steps) == "steps|P1D|Europe/Berlin|-"
    skipping = repeating(parse_step("P1D", "every"), "Europe/Berlin", None, Dst("skip"))
    assert canonical_key(skipping) == "steps|P1D|Europe/Berlin|-|skip|once"


def test_without_an_anchor_they_begin_with_the_first_of_a_month_or_of_a_day_in_the_zone():
    monthly = repeating(parse_step("P1M", "every"), "Europe/Berlin", None)
    assert fires(monthly, utc(2026, 2, 15), 2) == [utc(2026, 2, 28, 23), utc(2026, 3, 31, 22)]


def test_where_a_day_has_24_hours_it_is_shared_with_24_hours():
    day = repeating(parse_step("P1D", "every"), "UTC", None)
    assert day == Every(timedelta(days=1)) == repeating(parse_step("PT24H", "every"), "UTC", None)


def test_what_was_missed_is_counted():
    steps = repeating(parse_step("P1D", "every"), "Europe/Berlin", None)
    found = gap(steps, utc(2026, 3, 27), utc(2026, 4, 1))
    assert (found.first, found.last, found.count) == (utc(2026, 3, 27, 23), utc(2026, 3, 31, 22), 5)


def test_they_end_with_the_calendar():
    assert next_fire(repeating(parse_step("P1Y", "every"), "UTC", None), utc(9999, 6, 1)) is None


@pytest.mark.parametrize("written", ["P0D", "P0Y0M", "P1M-1D", "PM", "P1H", "P1.5M", "month", ""])
def test_what_is_no_step_is_refused(written):
    with pytest.raises(InvalidField):
        parse_step(written, "every")


@pytest.mark.parametrize(("written", "canonical"), [("p1w", "P7D"), ("P14M", "P1Y2M"), ("P1DT90S", "P1DT90S")])
def test_one_text_for_each(written, canonical):
    assert str(parse_step(written, "every")) == canonical


@pytest.mark.parametrize("written", ["P121M", "P10Y2D", "P3654D", "PT87673H"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_longer_than_ten_years_is_refused(written, zone):
    with pytest.raises(InvalidField, match="ten years"):
        repeating(parse_step(written, "every"), zone, None)
