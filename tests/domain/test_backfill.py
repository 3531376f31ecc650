"""Which instants a back-fill runs, and when it will be over."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from foliot.domain.backfill import Range, Reprocess, choose, instants
from foliot.domain.errors import InvalidField
from foliot.domain.operation import OperationState, Progress, estimated_end
from foliot.domain.schedule import Cron, Every, next_fire
from foliot.domain.states import FINISHED, State

START = datetime(2026, 1, 1, tzinfo=UTC)
HOURS = [START + timedelta(hours=number) for number in range(24)]
HOURLY = Every(timedelta(hours=1))
ENDINGS = sorted(FINISHED)


def test_the_instants_of_a_range_are_those_of_the_recurrence_both_ends_included():
    assert list(instants(HOURLY, Range(START, HOURS[-1]))) == HOURS
    assert list(instants(Cron("0 * * * *", "UTC"), Range(START, HOURS[-1]))) == HOURS
    assert list(instants(HOURLY, Range(START + timedelta(seconds=1), HOURS[1]))) == [HOURS[1]]


@pytest.mark.parametrize("expression", ["30 2 * * *", "*/15 * * * *", "0 9 * * MON"])
def test_the_instants_of_a_cron_are_those_that_it_fires_one_by_one(expression: str):
    cron, range_ = Cron(expression, "Europe/Berlin"), Range(START, START + timedelta(days=120))
    found, after = [], START - datetime.resolution
    while (fire := next_fire(cron, after)) is not None and fire <= range_.until:
        found.append(fire)
        after = fire
    assert list(instants(cron, range_)) == found


def test_there_is_nothing_before_an_anchor():
    anchored = Every(timedelta(hours=1), HOURS[3])
    assert list(instants(anchored, Range(START, HOURS[5]))) == HOURS[3:6]


@pytest.mark.parametrize("last", [None, *ENDINGS])
def test_each_mode_wants_what_it_says(last: State | None):
    assert Reprocess.ALL.wants(last)
    assert Reprocess.NONE.wants(last) == (last is None)
    assert Reprocess.FAILED.wants(last) == (last is not State.SUCCEEDED)


@given(
    reprocess=some.sampled_from(Reprocess),
    under_way=some.sets(some.sampled_from(HOURS)),
    ended=some.dictionaries(some.sampled_from(HOURS), some.sampled_from(ENDINGS)),
    to_come=some.lists(some.tuples(some.sampled_from(HOURS), some.sampled_from(HOURS)), max_size=2),
)
def test_every_instant_is_run_or_accounted_for(reprocess, under_way, ended, to_come):
    choice = choose(HOURS, reprocess, under_way=under_way, to_come=to_come, ended=ended)
    assert choice.total == len(HOURS) == len(choice.chosen) + choice.done + choice.under_way
    assert list(choice.chosen) == sorted(set(choice.chosen))
    for at in choice.chosen:
        assert at not in under_way
        assert not any(after < at <= until for after, until in to_come)
        assert reprocess.wants(ended.get(at))


def test_a_range_ends_by_now():
    Range(START, HOURS[1]).check(HOURS[1])
    with pytest.raises(InvalidField, match="future"):
        Range(START, HOURS[1]).check(HOURS[1] - datetime.resolution)


def test_the_end_is_estimated_from_what_has_ended():
    half = Progress(total=12, submitted=6, succeeded=3, failed=1, cancelled=1, skipped=2)
    assert half.running == 1
    assert estimated_end(half, START, START + timedelta(minutes=5)) == START + timedelta(minutes=10)
    nothing = Progress(total=5, submitted=3, succeeded=0, failed=0, cancelled=0, skipped=0)
    assert estimated_end(nothing, START, HOURS[1]) is None
    assert estimated_end(half, None, HOURS[1]) is None
    slow = Progress(total=100_000, submitted=1, succeeded=1, failed=0, cancelled=0, skipped=0)
    assert estimated_end(slow, START, START + timedelta(days=3650)) is None  # beyond the calendar


def test_states_have_the_words_of_the_wire():
    assert [state.word for state in OperationState] == ["pending", "running", "completed", "cancelled", "failed"]
