"""How attempts end: each ending leads where the transition table says."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.errorclass import RetryRule, classes_of
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


def test_a_snooze_waits_and_says_why():
    snoozed = Outcome.snoozed(timedelta(minutes=5), "not yet")
    assert (snoozed.ending, snoozed.state, snoozed.delay) == (Ending.SNOOZED, State.SCHEDULED, timedelta(minutes=5))
    assert (snoozed.error, Outcome.snoozed(timedelta(1)).error) == ("not yet", None)


RULES = (
    RetryRule(("ValueError",), never=True),
    RetryRule(("http:404", "OSError"), max_retries=10, backoff=Backoff(timedelta(0), 1, timedelta(0))),
    RetryRule(("Exception",)),
)


def ruled(failure: Failure, failures: int = 1) -> Outcome:
    return judge(failure, failures=failures, max_retries=3, backoff=BACKOFF, chance=0.5, rules=RULES)


@pytest.mark.parametrize(
    ("failure", "failures", "dies"),
    [
        (Failure("x", classes=classes_of(ValueError)), 1, True),  # never
        (Failure("x", classes=classes_of(UnicodeError)), 1, True),  # a base of it is named
        (Failure("x", classes=classes_of(ConnectionError)), 10, False),  # retries of its own
        (Failure("x", classes=classes_of(ConnectionError)), 11, True),
        (Failure("x", classes=("http:404", "http:4xx"), permanent=True), 1, False),  # the rule knows better
        (Failure("x", classes=("http:410", "http:4xx"), permanent=True), 1, True),  # no rule speaks of it
        (Failure("x", classes=classes_of(KeyError)), 3, False),  # a rule that leaves all as it is
        (Failure("x", classes=classes_of(KeyError)), 4, True),
        (Failure("x", classes=("timeout",), ending=Ending.TIMED_OUT), 4, True),
    ],
)
def test_the_first_rule_that_speaks_of_a_failure_decides(failure: Failure, failures: int, dies: bool):
    outcome = ruled(failure, failures)
    assert (outcome.state is State.DEAD) == dies
    assert outcome.error_class == failure.classes[0]


def test_a_rule_may_have_a_back_off_of_its_own():
    assert ruled(Failure("x", classes=("OSError",)), 5).delay == timedelta(0)
    assert ruled(Failure("x", classes=("KeyError", "Exception")), 2).delay == timedelta(seconds=10)


def test_of_a_long_error_the_end_is_kept():
    error = "beginning" + "x" * LONGEST_ERROR + "end"
    for failures in (1, 9):
        kept = judged(Failure(error), failures).error
        assert kept is not None
        assert (len(kept), kept[-3:]) == (LONGEST_ERROR, "end")


def test_stored_numbers_never_change_meaning():
    assert {ending.name: ending.value for ending in Ending} == {
        "NONE": 0, "COMPLETED": 1, "FAILED": 2, "TIMED_OUT": 3, "CANCELLED": 4, "LOST": 5, "UNKNOWN": 6, "SNOOZED": 7,
        "RELEASED": 8, "ENTRUSTED": 9,
    }  # fmt: skip
