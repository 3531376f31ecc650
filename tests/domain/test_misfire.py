"""Late instants: fired within their grace, the latest still run, the rest on record; never one twice, none lost."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.cron import Cron
from foliot.domain.misfire import GRACE, WINDOW, Advance, advance
from foliot.domain.schedule import Every, Recurrence, next_fire

START = datetime(2026, 3, 1, tzinfo=UTC)
MINUTELY = Every(timedelta(minutes=1))
RECURRENCES = st.sampled_from(
    [
        MINUTELY,
        Every(timedelta(seconds=7)),
        Every(timedelta(hours=5), START),
        Cron("*/5 * * * *", "UTC"),
        Cron("30 2 * * *", "Europe/Berlin"),
        Cron("0 9 * * 1-5", "America/New_York"),
    ]
)
LATENESS = st.one_of(
    st.timedeltas(timedelta(0), 2 * GRACE),
    st.timedeltas(timedelta(0), 2 * WINDOW),
    st.timedeltas(timedelta(0), timedelta(days=40)),
)


def first_of(recurrence: Recurrence) -> datetime:
    first = next_fire(recurrence, START)
    assert first is not None
    return first


@given(RECURRENCES, st.timedeltas(timedelta(0), GRACE))
def test_an_instant_within_its_grace_is_fired(recurrence: Recurrence, late: timedelta):
    first = first_of(recurrence)
    assert advance(recurrence, next_at=first, now=first + late) == Advance(
        first, None, None, 0, next_fire(recurrence, first)
    )


@given(RECURRENCES, LATENESS)
def test_what_an_advance_deals_with_begins_with_the_next_instant_and_ends_before_the_following(
    recurrence: Recurrence, late: timedelta
):
    first = first_of(recurrence)
    step = advance(recurrence, next_at=first, now=first + late)
    assert first in {step.fire, step.missed_from}
    assert step.next_at == next_fire(recurrence, step.through)
    if step.missed_from is not None:
        assert step.missed_through is not None
        assert step.missed_from <= step.missed_through <= step.through
        assert step.missed >= 1
    if step.fire is not None and step.missed_through is not None:
        assert step.missed_through < step.fire


@given(RECURRENCES, LATENESS)
def test_nothing_is_fired_early_and_nothing_that_is_on_time_is_missed(recurrence: Recurrence, late: timedelta):
    first = first_of(recurrence)
    now = first + late
    step = advance(recurrence, next_at=first, now=now)
    assert step.through <= now
    if step.missed_through is not None:
        assert now - step.missed_through > GRACE
    if step.fire is not None:
        assert now - step.fire <= max(WINDOW, GRACE)


@given(RECURRENCES, LATENESS)
def test_what_is_left_after_an_advance_is_on_time_or_still_to_come(recurrence: Recurrence, late: timedelta):
    first = first_of(recurrence)
    now = first + late
    following = advance(recurrence, next_at=first, now=now).next_at
    assert following is not None
    assert now - following <= GRACE


@given(st.integers(1, 200))
def test_missed_instants_are_counted(minutes: int):
    first = first_of(MINUTELY)
    step = advance(MINUTELY, next_at=first, now=first + minutes * timedelta(minutes=1) + timedelta(seconds=45))
    late = minutes + 1
    assert step.missed == late - 1


def test_a_single_late_instant_is_still_run():
    first = first_of(MINUTELY)
    step = advance(MINUTELY, next_at=first, now=first + timedelta(seconds=40))
    assert (step.fire, step.missed_from, step.missed) == (first, None, 0)


def test_what_is_older_than_the_window_is_not_run():
    daily = Every(timedelta(days=1))
    first = first_of(daily)
    step = advance(daily, next_at=first, now=first + WINDOW + timedelta(seconds=1))
    assert (step.fire, step.missed_from, step.missed_through, step.missed) == (None, first, first, 1)


def test_an_instant_that_the_zone_no_longer_knows_is_dealt_with_all_the_same():
    """The rules of the zone were changed after the instant had been worked out."""
    nightly = Cron("30 2 * * *", "UTC")
    odd = datetime(2026, 3, 2, 3, 30, tzinfo=UTC)
    for late in (timedelta(), timedelta(minutes=10), timedelta(hours=5)):
        step = advance(nightly, next_at=odd, now=odd + late)
        assert step.next_at == datetime(2026, 3, 3, 2, 30, tzinfo=UTC)
