"""Recurrences: aligned, restart-proof, shared by key, and what they missed."""

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.readings import utc
from foliot.domain.cron import Dst, fires_after
from foliot.domain.errors import InvalidField
from foliot.domain.rrule import recurring
from foliot.domain.schedule import (
    LONGEST_PERIOD,
    SHORTEST_PERIOD,
    Cron,
    Every,
    Gap,
    Steps,
    canonical_key,
    gap,
    next_fire,
    parse_key,
)
from foliot.domain.steps import Step

UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TICK, SECOND, DAY = timedelta(microseconds=1), timedelta(seconds=1), timedelta(days=1)

instants = st.datetimes(datetime(1960, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
periods = st.timedeltas(SHORTEST_PERIOD, LONGEST_PERIOD) | st.integers(1, 4000).map(lambda n: n * SECOND)
anchored = st.builds(Every, periods, instants)
everies = anchored | st.builds(Every, periods)
crons = st.builds(
    Cron,
    st.sampled_from(
        ["30 2 * * *", "*/5 * * * *", "0 9 * * MON", "* * * * * *", "* * 9 * * *", "0 0 1 * *", "0 */3 * * *"]
    ),
    st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Cairo", "America/New_York"]),
)
recent = st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@settings(deadline=None)
@given(st.builds(Every, periods), instants)
def test_without_an_anchor_fires_are_whole_periods_from_the_unix_epoch(every, after):
    fire = next_fire(every, after)
    assert (fire - UNIX_EPOCH) % every.period == timedelta(0)
    assert timedelta(0) < fire - after <= every.period


@settings(deadline=None)
@given(anchored, instants)
def test_with_an_anchor_nothing_fires_before_it_and_all_are_whole_periods_from_it(every, after):
    fire = next_fire(every, after)
    if after < every.anchor:
        assert fire == every.anchor
    else:
        assert (fire - every.anchor) % every.period == timedelta(0)
        assert timedelta(0) < fire - after <= every.period


@settings(deadline=None)
@given(everies, instants)
def test_it_never_drifts(every, after):
    fire = next_fire(every, after)
    for _ in range(5):
        later = next_fire(every, fire)
        assert later - fire == every.period
        fire = later


@settings(deadline=None)
@given(everies | crons, recent, st.floats(0, 1, exclude_max=True))
def test_a_restart_at_any_moment_before_the_fire_does_not_move_it(recurrence, after, share):
    fire = next_fire(recurrence, after)
    restarted = after + (fire - after) * share
    if restarted < fire:
        assert next_fire(parse_key(canonical_key(recurrence)), restarted) == fire


@settings(deadline=None)
@given(everies | crons)
def test_a_key_reads_back_as_its_recurrence(recurrence):
    assert parse_key(canonical_key(recurrence)) == recurrence


@settings(deadline=None)
@given(everies | crons, everies | crons)
def test_recurrences_share_a_key_exactly_when_they_are_equal(one, other):
    assert (canonical_key(one) == canonical_key(other)) == (one == other)


def test_keys_are_readable_and_ignore_how_a_schedule_was_written():
    ahead = datetime(2026, 1, 31, 10, tzinfo=ZoneInfo("Europe/Berlin"))
    assert canonical_key(Cron("00 9 * * mon", "Europe/Berlin")) == "cron|0 9 * * 1|Europe/Berlin"
    assert canonical_key(Every(90 * SECOND)) == "every|PT90S|-"
    assert canonical_key(Every(DAY, ahead)) == "every|P1D|2026-01-31T09:00:00Z"


def test_anchors_a_period_apart_do_not_share_because_their_first_fires_differ():
    anchor = datetime(2026, 1, 1, tzinfo=UTC)
    assert canonical_key(Every(DAY, anchor)) != canonical_key(Every(DAY, anchor + DAY))


@pytest.mark.parametrize(
    ("alike", "key"),
    [
        (
            [
                Cron("0 9 * * *"),
                Cron("0 9 1-31 * MON-SUN", "Etc/UTC"),
                Cron("0 9 * * *", "GMT", Dst("skip")),
                Cron("0 9 * * *", "Zulu", Dst("end", "twice")),
            ],
            "cron|0 9 * * *|UTC",
        ),
        ([Cron("0 * * * *"), Cron("0 0-23 * * *"), Cron("0 0-23/1 * * *", "Etc/Zulu")], "cron|0 * * * *|UTC"),
        ([Cron("0 */12 * * *"), Cron("0 0,12 * * *")], "cron|0 */12 * * *|UTC"),
        (
            [
                recurring("FREQ=DAILY", "UTC", Dst(), None),
                recurring("FREQ=DAILY", "Etc/Universal", Dst("skip", "twice"), None),
            ],
            "rrule|FREQ=DAILY;BYHOUR=0;BYMINUTE=0;BYSECOND=0|0|UTC",
        ),
        ([Steps(Step(1), "UTC"), Steps(Step(1), "Etc/GMT", None, Dst("skip"))], "steps|P1M|UTC|-"),
    ],
)
def test_what_fires_alike_in_utc_is_one_schedule(alike, key):
    assert {canonical_key(each) for each in alike} == {key}


def test_where_clocks_change_the_same_texts_are_two_schedules():
    berlin = [Cron("0 * * * *", "Europe/Berlin"), Cron("0 0-23 * * *", "Europe/Berlin")]
    assert canonical_key(berlin[0]) != canonical_key(berlin[1])
    autumn = utc(2026, 10, 25, 0, 30)
    assert next_fire(berlin[0], autumn) != next_fire(berlin[1], autumn)


@pytest.mark.parametrize(
    ("key", "now"),
    [
        ("cron|0 9 1-31 * *|Etc/UTC|skip|once", "cron|0 9 * * *|UTC"),
        ("cron|0 0-23 * * *|UTC", "cron|0 * * * *|UTC"),
        (
            "rrule|FREQ=DAILY;BYHOUR=0;BYMINUTE=0;BYSECOND=0|0|GMT|end|twice",
            "rrule|FREQ=DAILY;BYHOUR=0;BYMINUTE=0;BYSECOND=0|0|UTC",
        ),
    ],
)
def test_a_key_of_an_earlier_spelling_is_still_read(key, now):
    assert canonical_key(parse_key(key)) == now


@pytest.mark.parametrize(
    "key", ["", "cron", "cron|* * * * *", "every|PT1S", "every|PT0S|-", "every|PT1S|soon", "a|b|c"]
)
def test_a_text_that_is_no_key_is_refused(key):
    with pytest.raises(ValueError, match=r".+"):
        parse_key(key)


@pytest.mark.parametrize("period", [timedelta(0), SECOND - TICK, LONGEST_PERIOD + TICK, -SECOND])
def test_a_period_out_of_bounds_is_refused(period):
    with pytest.raises(InvalidField) as refused:
        Every(period)
    assert refused.value.field == "every"


def test_an_anchor_without_an_offset_is_refused():
    with pytest.raises(InvalidField) as refused:
        Every(DAY, datetime(2026, 1, 1))  # noqa: DTZ001 - the mistake
    assert refused.value.field == "scheduleAt"


def test_the_end_of_the_calendar_is_an_end():
    assert next_fire(Every(DAY), datetime.max.replace(tzinfo=UTC)) is None


@settings(max_examples=150, deadline=None)
@given(everies, recent, st.timedeltas(timedelta(0), DAY))
def test_the_gap_of_a_period_is_what_stepping_through_it_finds(every, after, span):
    until = after + min(span, every.period * 50)
    fires, fire = [], next_fire(every, after)
    while fire <= until:
        fires.append(fire)
        fire = next_fire(every, fire)
    assert gap(every, after, until) == (Gap(fires[0], fires[-1], len(fires)) if fires else None)


@settings(max_examples=100, deadline=None)
@given(crons, recent, st.timedeltas(timedelta(0), timedelta(days=40)), st.integers(1, 60))
def test_the_gap_of_a_cron_has_its_first_and_last_fire_and_an_honest_count(cron, after, span, most):
    until = after + (span / 480 if len(cron.expression.split()) == 6 else span)
    fires = list(
        takewhile(lambda fire: fire <= until, fires_after(cron.expression, ZoneInfo(cron.timezone), after)),
    )
    found = gap(cron, after, until, most)
    if not fires:
        assert found is None
    else:
        assert (found.first, found.last) == (fires[0], fires[-1])
        assert (found.count, found.exact) == (min(most, len(fires)), len(fires) <= most)


@settings(max_examples=100, deadline=None)
@given(crons, recent, st.timedeltas(timedelta(0), timedelta(days=400)), st.sampled_from([TICK, SECOND, 60 * SECOND]))
def test_the_last_fire_of_a_gap_is_the_greatest_one_until_its_end(cron, after, span, grain):
    after, span = UNIX_EPOCH + (after - UNIX_EPOCH) // grain * grain, span // grain * grain
    found = gap(cron, after, after + span, most=1)
    if found:
        assert after < found.first <= found.last <= after + span
        assert next_fire(cron, found.last - TICK) == found.last
        assert next_fire(cron, found.last) > after + span


@settings(deadline=None)
@given(recent, st.integers(1, 10**6))
def test_a_long_outage_of_a_one_second_period_is_counted_without_stepping(after, seconds):
    start = after.replace(microsecond=0)
    end = start + seconds * SECOND
    assert gap(Every(SECOND), start, end) == Gap(start + SECOND, end, seconds)


def test_both_ends_of_an_interval_are_treated_as_promised():
    nine, ten = datetime(2026, 1, 1, 9, tzinfo=UTC), datetime(2026, 1, 1, 10, tzinfo=UTC)
    for hourly in (Cron("0 * * * *"), Every(timedelta(hours=1))):
        assert gap(hourly, nine, ten) == Gap(ten, ten, 1)
        assert gap(hourly, nine, ten - TICK) is None
        assert gap(hourly, nine - TICK, ten) == Gap(nine, ten, 2)
    for seconds in range(2, 20):  # the last fire is found by bisection here
        end = nine + seconds * SECOND
        assert gap(Cron("* * * * * *"), nine, end, most=1) == Gap(nine + SECOND, end, 1, exact=False)
    assert list(islice(fires_after("0 * * * *", ZoneInfo("UTC"), nine), 1)) == [ten]
