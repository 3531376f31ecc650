"""Cron fires: strictly after, the same however asked, and right where clocks change."""

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import example, given, settings
from hypothesis import strategies as st

from domain.readings import (
    BERLIN,
    DAY,
    ELAPSED,
    FIXED,
    FIXED_WITH_SECONDS,
    HOUR,
    MINUTE,
    ZONES,
    changes,
    matcher,
    minutes_between,
    utc,
    zones_and_starts,
)
from foliot.domain.cron import Cron, fires_after, next_after
from foliot.domain.errors import InvalidField


def fires_between(expression, zone, start, until):
    fires = []
    for fire in fires_after(expression, zone, start):
        if fire > until:
            break
        fires.append(fire)
    return fires


numbers = {"minute": (0, 59), "hour": (0, 23), "day": (1, 28), "month": (1, 12), "weekday": (0, 6)}


def simple(low, high):
    number = st.integers(low, high)
    ranges = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    lists = st.lists(number, min_size=2, max_size=3).map(lambda some: ",".join(map(str, some)))
    return st.just("*") | st.just("*") | number.map(str) | ranges | lists | st.integers(2, 30).map("*/{}".format)


@settings(max_examples=150, deadline=None)
@given(st.tuples(*(simple(*span) for span in numbers.values())).map(" ".join), zones_and_starts(["UTC"]))
def test_in_utc_the_next_fire_is_the_first_minute_that_matches(expression, zone_and_start):
    zone, start = zone_and_start
    end = start + 4 * DAY
    matches = matcher(expression)
    expected = next((minute for minute in minutes_between(start, end) if minute > start and matches(minute)), None)
    found = next_after(expression, zone, start)
    if expected is None:
        assert found is None or found > end
    else:
        assert found == expected


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(ELAPSED), zones_and_starts())
def test_a_wildcard_hour_follows_elapsed_time_and_fires_at_every_minute_whose_reading_matches(
    expression, zone_and_start
):
    zone, start = zone_and_start
    until, matches = start + 36 * HOUR, matcher(expression)
    expected = [now for now in minutes_between(start, until) if now > start and matches(now.astimezone(zone))]
    assert fires_between(expression, zone, start, until) == expected


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(FIXED), zones_and_starts())
def test_a_fixed_time_fires_at_its_first_showing_or_at_the_end_of_the_gap(expression, zone_and_start):
    zone, start = zone_and_start
    until, matches = start + 36 * HOUR, matcher(expression)
    expected, reached = set(), None
    for now in minutes_between(start - 3 * HOUR, until):
        shown = now.astimezone(zone).replace(tzinfo=None)
        reached = reached or shown - MINUTE
        while reached < shown:  # every reading once, those a gap skips at its end
            reached += MINUTE
            if matches(reached):
                expected.add(now)
    assert fires_between(expression, zone, start, until) == sorted(now for now in expected if start < now <= until)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(FIXED + FIXED_WITH_SECONDS + ELAPSED), zones_and_starts(), st.integers(0, 60 * 3600))
@example("30 2 * * *", (BERLIN, utc(2026, 10, 24)), 25 * 3600 + 600)
def test_asked_anew_from_any_start_it_agrees_with_one_continuous_iteration(expression, zone_and_start, later):
    zone, start = zone_and_start
    middle = start + timedelta(seconds=later)
    continuous = next(fire for fire in fires_after(expression, zone, start) if fire > middle)
    assert next_after(expression, zone, middle) == continuous


@settings(max_examples=100, deadline=None)
@given(
    # To cronsim, as to Debian, a `*` among the minutes is enough to follow elapsed time; to us it is not.
    st.sampled_from([*(each for each in FIXED if not each.startswith("*")), "*/30 * * * *", "7 * * * *"]),
    zones_and_starts([name for name in ZONES if name != "Australia/Lord_Howe"]),
)
def test_where_clocks_change_by_hours_it_agrees_with_cronsim_running_through(expression, zone_and_start):
    zone, start = zone_and_start
    running = (fire.astimezone(UTC) for fire in CronSim(expression, (start - 3 * DAY).astimezone(zone)))
    expected = list(islice((fire for fire in running if fire > start), 8))
    assert list(islice(fires_after(expression, zone, start), 8)) == expected


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(FIXED + FIXED_WITH_SECONDS + ELAPSED), zones_and_starts())
def test_a_fire_is_strictly_after_its_start_in_utc_and_nothing_lies_between(expression, zone_and_start):
    zone, start = zone_and_start
    fire = next_after(expression, zone, start)
    assert fire > start
    assert fire.tzinfo is UTC
    assert fire.microsecond == 0
    assert next_after(expression, zone, fire - timedelta(microseconds=1)) == fire
    assert next_after(expression, zone, start + (fire - start) / 2) == fire
    assert next_after(expression, zone, fire) > fire


@pytest.mark.parametrize("expression", ["30 2 * * *", "0 30 2 * * *", "15 30 2 * * *", "*/10 15,45 2 * * *"])
def test_a_time_in_the_gap_fires_once_at_its_end(expression):
    fires = fires_between(expression, BERLIN, utc(2026, 3, 28, 12), utc(2026, 3, 29, 12))
    assert fires == [utc(2026, 3, 29, 1)]


def test_a_gap_at_midnight_fires_at_one_of_the_same_day():
    cairo = ZoneInfo("Africa/Cairo")
    fires = list(islice(fires_after("0 0 * * *", cairo, utc(2026, 4, 23, 12)), 2))
    assert [fire.astimezone(cairo).strftime("%d %H:%M") for fire in fires] == ["24 01:00", "25 00:00"]


def test_a_time_in_the_fold_fires_once_in_its_first_pass():
    fires = fires_between("30 2 * * *", BERLIN, utc(2026, 10, 24, 12), utc(2026, 10, 25, 12))
    assert fires == [utc(2026, 10, 25, 0, 30)]
    with_seconds = fires_between("15 30 2 * * *", BERLIN, utc(2026, 10, 24, 12), utc(2026, 10, 25, 12))
    assert with_seconds == [utc(2026, 10, 25, 0, 30, 15)]


@pytest.mark.parametrize("minute", [0, 10, 29, 30, 31, 59])
def test_asked_from_the_second_pass_it_does_not_go_back_to_the_first(minute):
    start = utc(2026, 10, 25, 1, minute)
    assert start.astimezone(BERLIN).fold == 1
    assert next_after("30 2 * * *", BERLIN, start) == utc(2026, 10, 26, 1, 30)


@pytest.mark.parametrize("day", [utc(2026, 3, 28, 12), utc(2026, 10, 24, 12)])
@pytest.mark.parametrize("name", ZONES)
def test_every_half_hour_stays_even_across_a_change(name, day):
    zone = ZoneInfo(name)
    for around in [day, *changes(name)]:
        fires = list(islice(fires_after("*/30 * * * *", zone, around - DAY), 100))
        assert {later - earlier for earlier, later in pairwise(fires)} == {HOUR / 2}


def test_six_fields_fire_on_the_second():
    fires = list(islice(fires_after("*/20 * * * * *", BERLIN, utc(2026, 1, 1, 0, 0, 19)), 4))
    assert [fire.second for fire in fires] == [20, 40, 0, 20]


def test_leap_days_are_waited_for_and_the_end_of_the_calendar_is_an_end():
    assert next_after("0 0 29 2 *", ZoneInfo("UTC"), utc(2026, 1, 1)) == utc(2028, 2, 29)
    assert next_after("0 0 29 2 *", ZoneInfo("UTC"), utc(2096, 3, 1)) == utc(2104, 2, 29)
    for expression in ("0 0 1 1 *", "* * * * * *"):
        assert next_after(expression, ZoneInfo("UTC"), datetime.max.replace(tzinfo=UTC)) is None
        assert next_after(expression, ZoneInfo("Asia/Kolkata"), datetime.max.replace(tzinfo=UTC)) is None


def test_a_start_without_an_offset_is_a_mistake():
    with pytest.raises(ValueError, match="offset"):
        next_after("* * * * *", BERLIN, datetime(2026, 1, 1))  # noqa: DTZ001 - what is refused


def test_a_cron_is_canonical_however_it_was_written():
    assert Cron(" 0 9 * * mon", "Europe/Berlin") == Cron("00 09 * * 1", "Europe/Berlin")
    assert hash(Cron("0 0 9 * * MON")) == hash(Cron("0 9 * * 1", "UTC"))
    with pytest.raises(InvalidField, match="timezone"):
        Cron("0 9 * * *", "Europe/Berln")
    with pytest.raises(InvalidField, match="cronExpression"):
        Cron("0 25 * * *")
