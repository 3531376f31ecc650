"""How attempts end: each ending leads where the transition table says."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.outcome import LONGEST_ERROR, SUCCEEDED, Ending, Failure, Outcome, judge
from foliot.domain.retry import LONGEST_RETRY_AFTER, Backoff
from foliot.domain.states import State

BACKOFF = Backoff(initial=timedelta(seconds=10), factor=2.0, max=timedelta(minutes=1))


def judged(failure: Failure, failures: int = 1, max_retries: int = 3, chance: float = 0.5) -> Outcome:
    return judge(failure, failures=failures, max_retries=max_retries, backoff=BACKOFF, chance=chance)


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (SUCCEEDED, State.SUCCEEDED),
        (Outcome.released(), State.READY),
        (Outcome.cancelled(), State.CANCELLED),
        (Outcome.again(Ending.FAILED, "x", timedelta()), State.SCHEDULED),
        (Outcome.dead(Ending.FAILED, "x"), State.DEAD),
    ],
)
def test_an_outcome_leads_where_the_table_says(outcome: Outcome, state: State):
    assert outcome.state is state


def test_a_failure_is_retried_after_its_back_off():
    outcome = judged(Failure("boom"), failures=2)
    assert (outcome.ending, outcome.state, outcome.delay) == (Ending.FAILED, State.SCHEDULED, timedelta(seconds=10))
    assert outcome.error == "boom"


def test_a_time_out_stays_a_time_out():
    assert judged(Failure("slow", ending=Ending.TIMED_OUT)).ending is Ending.TIMED_OUT
    assert judged(Failure("slow", ending=Ending.TIMED_OUT), failures=9).ending is Ending.TIMED_OUT


def test_a_permanent_failure_is_not_retried():
    assert judged(Failure("no", permanent=True)).state is State.DEAD


def test_the_longest_wait_that_a_handler_may_ask_for_is_a_day():
    asked = Failure("busy", retry_after=timedelta(days=9))
    assert judged(asked, chance=0.0).delay == LONGEST_RETRY_AFTER


@given(st.integers(1, 20), st.integers(0, 10))
def test_a_run_is_tried_once_more_than_it_is_retried(failures: int, max_retries: int):
    outcome = judged(Failure("boom"), failures, max_retries)
    assert (outcome.state is State.SCHEDULED) == (failures <= max_retries)
    assert (outcome.delay is not None) == (outcome.state is State.SCHEDULED)


def test_of_a_long_error_the_end_is_kept():
    error = "beginning" + "x" * LONGEST_ERROR + "end"
    for failures in (1, 9):
        kept = judged(Failure(error), failures).error
        assert kept is not None
        assert (len(kept), kept[-3:]) == (LONGEST_ERROR, "end")


def test_stored_numbers_never_change_meaning():
    assert {ending.name: ending.value for ending in Ending} == {
        "NONE": 0, "COMPLETED": 1, "FAILED": 2, "TIMED_OUT": 3, "CANCELLED": 4, "LOST": 5, "UNKNOWN": 6, "SNOOZED": 7,
        "RELEASED": 8,
    }  # fmt: skip
