"""Buckets: never more than the limit over any time, never refused without need, and shared without drift."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.bucket import Bucket, RateLimit, rate_limit, tightest
from foliot.domain.errors import InvalidField

LIMITS = st.builds(RateLimit, st.floats(0.1, 1_000), st.integers(1, 500))
CALLS = st.lists(st.tuples(st.floats(0, 5), st.integers(1, 1_000)), max_size=60)


def play(limit: RateLimit, calls: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """What is let in of calls that come so long after each other, as (instant, cost)."""
    bucket, now, let_in = Bucket(limit, 0.0), 0.0, []
    for pause, cost in calls:
        now += pause
        if not bucket.wait(now, cost):
            bucket.spend(cost)
            let_in.append((now, cost))
    return let_in


@given(LIMITS, CALLS)
def test_over_any_time_no_more_comes_in_than_the_rate_and_one_bucket_or_one_call(limit, calls):
    let_in = play(limit, calls)
    for first, (begin, _) in enumerate(let_in):
        total = 0
        for at, cost in let_in[first:]:
            total += cost
            assert total - limit.per_second * (at - begin) <= max(limit.burst, cost) + 0.001


@given(LIMITS, CALLS, st.integers(1, 1_000))
def test_who_waits_as_long_as_it_is_told_is_let_in_and_not_much_sooner(limit, calls, cost):
    bucket, now = Bucket(limit, 0.0), 0.0
    for pause, asked in calls:
        now += pause
        if not bucket.wait(now, asked):
            bucket.spend(asked)
    wait = bucket.wait(now, cost)
    if wait > 0.01:
        assert bucket.wait(now + wait - 0.01, cost) > 0
    assert bucket.wait(now + wait, cost) == 0


@given(LIMITS, st.floats(0, 100))
def test_silence_saves_up_one_bucket_and_no_more(limit, silence):
    bucket = Bucket(limit, 0.0)
    bucket.spend(limit.burst)
    bucket.wait(silence, 1)
    assert bucket.remaining <= limit.burst
    assert bucket.wait(silence + bucket.reset, limit.burst) == 0


def test_what_is_paid_already_need_not_be_there_again():
    bucket = Bucket(RateLimit(1, 10), 0.0)
    bucket.spend(1)
    assert bucket.wait(0.0, 50, paid=1) == 0
    bucket.spend(49)
    assert (bucket.remaining, bucket.wait(0.0, 1)) == (0, 41.0)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 20)), max_size=80), st.integers(1, 50))
def test_processes_that_share_a_limit_spend_no_more_in_the_long_run_than_one(calls, rate):
    """One true level; every second each reports what it let in and goes on from there. Debts are worked off by all."""
    limit = RateLimit(rate, rate)
    processes, true, spent = [Bucket(limit, 0.0) for _ in range(3)], float(rate), 0
    for second in range(1, 30):
        for who, cost in calls:
            processes[who].note_asked(cost)
            if not processes[who].wait(second - 0.5, cost):
                processes[who].spend(cost)
        reports = [each.report() for each in processes]
        asked = sum(report[1] for report in reports)
        true = min(limit.burst, true + rate) - sum(report[0] for report in reports)
        spent += sum(report[0] for report in reports)
        for each, report in zip(processes, reports, strict=True):
            each.adopt(true, report[1] / asked if asked else 1.0, float(second))
        # Each of them may have let in all that was left before it heard of the others.
        assert spent <= rate * second + limit.burst + 2 * (limit.burst + rate) + 3 * 20


def test_a_changed_limit_keeps_what_is_there_and_what_is_owed():
    bucket = Bucket(RateLimit(1, 10), 0.0)
    bucket.change(RateLimit(100, 4), 0.0)
    assert bucket.remaining == 4
    bucket.spend(24)
    bucket.change(RateLimit(20, 100), 0.0)
    assert bucket.wait(1.0, 1) == pytest.approx(0.05)


def test_a_report_that_did_not_arrive_is_told_again():
    bucket = Bucket(RateLimit(1, 10), 0.0)
    bucket.note_asked(5)
    bucket.spend(3)
    bucket.take_back(*bucket.report())
    bucket.spend(1)
    assert bucket.report() == (4, 5)
    assert bucket.report() == (0, 0)


def test_what_was_spent_while_the_report_was_under_way_is_not_forgotten():
    bucket = Bucket(RateLimit(1, 10), 0.0)
    bucket.spend(2)
    bucket.report()
    bucket.spend(3)
    bucket.adopt(6.0, 0.5, 0.0)
    assert bucket.remaining == 3
    assert bucket.wait(2.0, 4) == 0


@pytest.mark.parametrize(
    ("per_second", "burst", "field"), [(0, None, "perSecond"), (-1, 5, "perSecond"), (5, 0, "burst")]
)
def test_a_limit_that_cannot_be(per_second, burst, field):
    with pytest.raises(InvalidField) as refused:
        rate_limit(per_second, burst)
    assert refused.value.field == f"rateLimit.{field}"
    assert refused.value.hint


def test_a_burst_is_a_seconds_worth_unless_set():
    assert (rate_limit(0.2, None).burst, rate_limit(12.5, None).burst, rate_limit(5, 100).burst) == (1, 13, 100)
    few, many = Bucket(RateLimit(9, 3), 0.0), Bucket(RateLimit(1, 5), 0.0)
    assert tightest([many, few]) is few
