"""`H`: hashed, within its bounds, spread over jobs, and the same for ever."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.domain.cron import Cron
from foliot.domain.errors import InvalidField
from foliot.domain.expression import parse_cron
from foliot.domain.spread import is_hashed, spread

SEEDS = st.text(min_size=1, max_size=30)


@given(SEEDS)
def test_a_bare_h_is_one_number_that_every_field_has_in_every_month(seed):
    second, minute, hour, day, month, weekday = map(int, spread("H H H H H H", seed).split())
    assert 0 <= second <= 59
    assert 0 <= minute <= 59
    assert 0 <= hour <= 23
    assert 1 <= day <= 28
    assert 1 <= month <= 12
    assert 0 <= weekday <= 6


@given(SEEDS, st.integers(0, 59), st.integers(0, 59))
def test_bounds_hold(seed, one, other):
    low, high = sorted((one, other))
    assert low <= int(spread(f"H({low}-{high}) * * * *", seed).split()[0]) <= high


@settings(deadline=None)
@given(SEEDS, st.integers(2, 30))
def test_steps_are_even_from_a_hashed_beginning_on(seed, step):
    minutes = spread(f"H/{step} 9 * * *", seed).split()[0]
    first, _, rest = minutes.partition("-")
    assert int(first) < step
    assert rest == f"59/{step}"
    assert Cron(f"{minutes} 9 * * *")


@given(SEEDS)
def test_it_is_the_same_every_time_however_it_is_written(seed):
    assert spread("H H(8-17) * * MON-FRI", seed) == spread(" h h(8-17) * *  mon-fri", seed)
    assert parse_cron(spread("0 9 * * H(MON-FRI)", seed)) == parse_cron(spread("0 9 * * H(1-5)", seed))


@given(SEEDS, st.sampled_from(["0 9 * * THU", "@hourly", "*/5 * * * *", "0 9 * MAR *"]))
def test_what_has_no_h_stays_as_it_is(seed, expression):
    assert not is_hashed(expression)
    assert parse_cron(spread(expression, seed)) == parse_cron(expression)


def test_it_is_written_as_plain_cron():
    assert spread("H(5-50)/10 H 1,H(10-20) * *", "7/nightly") == "7-50/10 3 1,17 * *"
    assert spread("H/1 * * * *", "any") == "* * * * *"
    assert spread("H(50-59)/10 * * * *", "7/nightly").split()[0].isdigit()


def test_many_jobs_spread_over_the_minutes_and_minute_and_hour_are_independent():
    jobs = [spread("H H * * *", f"1/job-{number}").split()[:2] for number in range(6_000)]
    minutes = Counter(minute for minute, _ in jobs)
    assert len(minutes) == 60
    assert max(minutes.values()) < 2 * min(minutes.values())
    assert len({tuple(job) for job in jobs}) > 1_300  # of 1,440; one hash for both would give 120 at most


@pytest.mark.parametrize("term", ["H(9-3)", "H(0-60)", "H/0", "H/61", "H()", "HH", "H-5", "H(1-5", "H٣"])
def test_what_is_not_understood_is_refused_with_what_would_be(term):
    assert is_hashed(f"{term} * * * *") or term == "HH"
    with pytest.raises(InvalidField) as refused:
        spread(f"{term} * * * *", "seed")
    assert refused.value.field == "cronExpression"
    assert "minute field" in refused.value.message
    assert "H(a-b)/n within 0-59" in refused.value.hint


def test_a_text_of_too_few_fields_is_left_to_be_refused_as_any_other():
    assert spread("H H", "seed") == "H H"
