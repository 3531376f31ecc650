"""Looks ahead: bounds, counts, and what an edit adds and removes."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.readings import utc
from foliot.domain.calendar import Calendar
from foliot.domain.preview import Outlook, compare, look_ahead
from foliot.domain.schedule import Cron, Every, OnCalendar, repeating
from foliot.domain.steps import Step

START = utc(2026, 1, 1)
HOUR = timedelta(hours=1)
OUTLOOKS = st.one_of(
    st.sampled_from([Every(HOUR), Every(2 * HOUR), Every(3 * HOUR), Cron("0 9 * * *")]).map(Outlook),
    st.builds(lambda hours: Outlook(once=START + hours * HOUR), st.integers(-5, 50)),
    st.just(Outlook()),
)


def test_nothing_fires_before_its_beginning_nor_after_its_end_nor_too_often():
    hourly = Outlook(Every(HOUR), not_before=START + 2 * HOUR, ends_at=START + 4 * HOUR)
    assert [fire.at for fire in look_ahead(hourly, START, 10)] == [START + n * HOUR for n in (2, 3, 4)]
    assert len(look_ahead(hourly._replace(most=2), START, 10)) == 2
    assert [fire.change for fire in look_ahead(hourly, START, 1)] == [None]


def test_one_instant_fires_once_and_only_if_it_is_to_come():
    once = Outlook(once=START + HOUR)
    assert [fire.at for fire in look_ahead(once, START, 10)] == [START + HOUR]
    assert look_ahead(once, START + HOUR, 10) == []


@pytest.mark.parametrize("rule", [None, "skip", "next", "previous", "nearest"])
def test_what_is_shown_ends_with_the_last_year_but_one(rule):
    for plain in (Every(24 * HOUR), repeating(Step(months=120), "Europe/Berlin", utc(2029, 12, 26))):
        calendar = Calendar("UTC", business_days=(0, 1, 2, 3, 4))
        outlook = Outlook(plain if rule is None else OnCalendar(plain, calendar, rule))
        fires = look_ahead(outlook, utc(9988, 1, 1), 5_000)
        assert fires
        assert fires[-1].at < utc(9999, 1, 1)


@settings(deadline=None)
@given(OUTLOOKS, OUTLOOKS, st.integers(1, 30))
def test_a_comparison_is_what_the_two_say_put_together(present, asked, count):
    found = compare(present, asked, START, count)
    old, new = ([fire.at for fire in look_ahead(each, START, 300)] for each in (present, asked))
    assert [fire.at for fire in found] == sorted({*old, *new})[:count]
    for fire in found:
        assert fire.change == {(1, 1): "same", (0, 1): "added", (1, 0): "removed"}[fire.at in old, fire.at in new]


def test_what_stays_and_comes_is_shown_by_the_new_clock_and_what_goes_by_the_old():
    present, asked = Outlook(Cron("0 9 * * *", "Asia/Tokyo")), Outlook(Cron("0 9 * * *", "Europe/Berlin"))
    assert [(fire.change, fire.local.isoformat()) for fire in compare(present, asked, START, 2)] == [
        ("added", "2026-01-01T09:00:00+01:00"),
        ("removed", "2026-01-02T09:00:00+09:00"),
    ]
