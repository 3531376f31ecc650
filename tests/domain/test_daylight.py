"""What a schedule's rules make of hours that are skipped, and of hours that come twice."""

from datetime import timedelta
from itertools import islice
from time import process_time
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.readings import BERLIN, ELAPSED, FIXED, HOUR, MINUTE, matcher, minutes_between, utc, zones_and_starts
from foliot.domain.cron import USUAL, Cron, Dst, fires_after, next_after
from foliot.domain.preview import preview
from foliot.domain.schedule import Every, canonical_key, next_fire, parse_key

RULES = [Dst(gap, fold) for gap in ("end", "skip") for fold in ("once", "twice")]
SPRING, AUTUMN = utc(2026, 3, 28, 12), utc(2026, 10, 24, 12)


def expected_fires(expression, zone, start, until, dst):
    """Minute by minute: what the wall clock shows, what it jumped over, and whether it has shown it before."""
    matches, fires = matcher(expression), []
    for now in minutes_between(start, until):
        local, before = now.astimezone(zone), (now - MINUTE).astimezone(zone)
        shown, reading = local.replace(tzinfo=None, fold=0), before.replace(tzinfo=None, fold=0) + MINUTE
        skipped = []
        while reading < shown:
            skipped.append(reading)
            reading += MINUTE
        natural = matches(shown) and (dst.fold == "twice" or not local.fold)
        late = dst.gap == "end" and any(map(matches, skipped))
        if now > start and (natural or late):
            fires.append(now)
    return fires


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(FIXED), zones_and_starts(), st.sampled_from(RULES))
def test_every_rule_does_what_a_wall_clock_watched_minute_by_minute_says(expression, zone_and_start, dst):
    zone, start = zone_and_start
    until = start + 36 * HOUR
    found = list(islice(fires_after(expression, zone, start, dst), 500))
    assert [fire for fire in found if fire <= until] == expected_fires(expression, zone, start, until, dst)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(FIXED + ELAPSED), zones_and_starts(), st.sampled_from(RULES), st.integers(0, 60 * 3600))
def test_asked_anew_from_any_start_it_agrees_with_one_continuous_iteration(expression, zone_and_start, dst, later):
    zone, start = zone_and_start
    middle = start + timedelta(seconds=later)
    continuous = next(fire for fire in fires_after(expression, zone, start, dst) if fire > middle)
    assert next_after(expression, zone, middle, dst) == continuous > middle


@pytest.mark.parametrize(
    ("dst", "spring", "autumn"),
    [
        (Dst(), [utc(2026, 3, 29, 1)], [utc(2026, 10, 25, 0, 30)]),
        (Dst("skip", "once"), [], [utc(2026, 10, 25, 0, 30)]),
        (Dst("end", "twice"), [utc(2026, 3, 29, 1)], [utc(2026, 10, 25, 0, 30), utc(2026, 10, 25, 1, 30)]),
        (Dst("skip", "twice"), [], [utc(2026, 10, 25, 0, 30), utc(2026, 10, 25, 1, 30)]),
    ],
)
def test_half_past_two_in_berlin(dst, spring, autumn):
    def fires(start):
        return [fire for fire in islice(fires_after("30 2 * * *", BERLIN, start, dst), 5) if fire < start + 24 * HOUR]

    assert fires(SPRING) == spring
    assert fires(AUTUMN) == autumn


def test_a_wildcard_among_the_minutes_of_a_fixed_hour_follows_the_wall_clock():
    def fires(start, dst=USUAL):
        found = islice(fires_after("*/15 2 * * *", BERLIN, start, dst), 20)
        return [fire for fire in found if fire < start + 24 * HOUR]

    first = [utc(2026, 10, 25, 0, minute) for minute in (0, 15, 30, 45)]
    assert fires(SPRING) == [utc(2026, 3, 29, 1)]
    assert fires(AUTUMN) == first
    assert fires(SPRING, Dst("skip", "twice")) == []
    assert fires(AUTUMN, Dst("skip", "twice")) == [*first, *(fire + HOUR for fire in first)]
    assert Cron("*/15 2 * * *", "Europe/Berlin", Dst("skip")).dst == Dst("skip")


@pytest.mark.parametrize("expression", ELAPSED)
def test_rules_mean_nothing_to_what_follows_elapsed_time_so_such_schedules_are_shared(expression):
    assert Cron(expression, "Europe/Berlin", Dst("skip", "twice")) == Cron(expression, "Europe/Berlin")


@pytest.mark.parametrize("dst", RULES)
def test_the_key_of_a_schedule_says_its_rules(dst):
    cron = Cron("30 2 * * *", "Europe/Berlin", dst)
    assert parse_key(canonical_key(cron)) == cron
    assert (canonical_key(cron) == "cron|30 2 * * *|Europe/Berlin") == (dst == Dst())


def test_a_preview_shows_the_wall_clock_and_flags_the_days_on_which_it_changes():
    fires = preview(Cron("30 2 * * *", "Europe/Berlin"), utc(2026, 3, 27, 12), 3)
    assert [fire.at for fire in fires] == [utc(2026, 3, 28, 1, 30), utc(2026, 3, 29, 1), utc(2026, 3, 30, 0, 30)]
    assert [fire.local.isoformat() for fire in fires] == [
        "2026-03-28T02:30:00+01:00",
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:30:00+02:00",
    ]
    assert [fire.transition for fire in fires] == [None, "gap", None]
    (back,) = preview(Cron("0 9 * * *", "Europe/Berlin"), utc(2026, 10, 25, 1), 1)
    assert back.transition == "fold"


@pytest.mark.parametrize(
    ("zone", "after", "flagged"),
    [
        ("Africa/Cairo", utc(2026, 4, 22, 12), [None, "gap", None]),  # midnight of the 24th is skipped
        ("Africa/Cairo", utc(2026, 10, 28, 12), ["fold", None, None]),  # 23:00 of the 29th comes twice
        ("America/Havana", utc(2026, 3, 7, 0), [None, "gap", None]),
        ("America/Havana", utc(2026, 10, 31, 0), [None, "fold", None]),  # midnight of the 1st comes twice
        ("America/Santiago", utc(2026, 9, 5, 0), [None, "gap", None]),
        ("Asia/Beirut", utc(2026, 3, 27, 12), [None, "gap", None]),
        (
            "Pacific/Apia",
            utc(2011, 12, 29, 0),
            [None, "gap", "gap"],
        ),  # what 30 December would have had fires on the 31st
    ],
)
def test_a_change_at_midnight_is_flagged_on_the_day_that_it_shortens_or_lengthens(zone, after, flagged):
    fires = preview(Cron("30 12 * * *", zone), after, 3)
    assert [fire.transition for fire in fires] == flagged


def test_the_fire_that_a_gap_at_midnight_puts_off_is_the_one_that_is_flagged():
    fires = preview(Cron("30 0 * * *", "Africa/Cairo"), utc(2026, 4, 22, 12), 3)
    assert [(fire.local.isoformat(), fire.transition) for fire in fires] == [
        ("2026-04-23T00:30:00+02:00", None),
        ("2026-04-24T01:00:00+03:00", "gap"),
        ("2026-04-25T00:30:00+03:00", None),
    ]


def test_a_preview_of_an_interval_is_in_utc_and_one_that_ends_is_short():
    first, second = preview(Every(timedelta(hours=12)), utc(2026, 3, 29), 2)
    assert (first.at, second.at) == (utc(2026, 3, 29, 12), utc(2026, 3, 30))
    assert first.local.tzinfo == ZoneInfo("UTC")
    assert preview(Cron("0 0 1 1 *"), utc(9998, 6, 1), 5) == preview(Cron("0 0 1 1 *"), utc(9998, 6, 1), 1)


@pytest.mark.parametrize("fold", ["once", "twice"])
@pytest.mark.parametrize("expression", ["30 2 * 3 0L", "* * 2 * 3 0L"])
def test_what_the_clocks_always_skip_is_not_looked_for_until_the_end_of_time(expression: str, fold: str):
    """Every second of that hour, each year until 9999: one preview kept an API process busy for minutes, or hours."""
    begin = process_time()
    assert next_fire(Cron(expression, "Europe/Berlin", Dst("skip", fold)), utc(2026, 1, 1)) is None
    assert process_time() - begin < 3


def test_what_comes_right_after_a_gap_that_is_skipped_is_not_lost():
    cron = Cron("* * 2,3 * 3 0L", "Europe/Berlin", Dst("skip", "once"))
    assert next_fire(cron, utc(2026, 3, 1)) == utc(2026, 3, 29, 1)
    assert next_fire(cron, utc(2026, 3, 29, 1)) == utc(2026, 3, 29, 1, 0, 1)
