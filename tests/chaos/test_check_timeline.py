"""What a job may have looked like, from what its owner was told."""

import itertools
import math

from chaos.oracle import body_of
from chaos.records import Operation, Outcome
from chaos.timeline import Gate, Timeline

NUMBERS = itertools.count(1)


def call(kind, invoked, completed, outcome=Outcome.OK, body=None, answer=None):
    return Operation(
        number=next(NUMBERS),
        client=0,
        tenant="north",
        kind=kind,
        invoked=invoked,
        completed=completed,
        outcome=outcome,
        body=body,
        answer=answer,
    )


def create(**body):
    return call("createJob", 10, 11, body={"name": "a", **body})


def gates(standings):
    return {None if each is None else each.gate for each in standings}


def test_an_acknowledged_call_took_effect_between_call_and_answer():
    timeline = Timeline([create(every=5), call("pauseJob", 20, 22)])
    assert gates(timeline.between(0, 9)) == {None}
    assert gates(timeline.between(12, 19)) == {Gate.OPEN}
    assert gates(timeline.between(21, 21)) == {Gate.OPEN, Gate.PAUSED}
    assert gates(timeline.between(23, 99)) == {Gate.PAUSED}


def test_a_call_without_an_answer_may_have_happened_or_not_ever_after():
    timeline = Timeline([create(every=5), call("pauseJob", 20, 22, Outcome.UNKNOWN)])
    assert gates(timeline.between(15, 19)) == {Gate.OPEN}
    assert gates(timeline.between(1000, 1000)) == {Gate.OPEN, Gate.PAUSED}


def test_a_call_that_failed_for_certain_changes_nothing():
    timeline = Timeline([create(every=5), call("cancelJob", 20, 22, Outcome.FAIL)])
    assert gates(timeline.last) == {Gate.OPEN}


def test_a_job_has_a_time_that_ends_when_it_is_cancelled_for_certain():
    assert Timeline([create(every=5), call("pauseJob", 20, 22)]).span() == (10, math.inf)
    assert Timeline([create(every=5), call("cancelJob", 20, 22)]).span() == (10, 22)
    assert Timeline([create(every=5), call("cancelJob", 20, 22, Outcome.UNKNOWN)]).span() == (10, math.inf)
    assert Timeline([]).span()[0] == math.inf


def test_a_later_answer_tells_whether_an_earlier_call_happened():
    shown = {"scheduleType": "recurring", "status": "paused", "every": "PT7S", "name": "a"}
    timeline = Timeline(
        [
            create(every=5),
            call("changeJob", 20, 22, Outcome.UNKNOWN, {"every": 7}),
            call("pauseJob", 30, 31, answer=shown),
        ]
    )
    assert {each.definition.period for each in timeline.between(32, 40)} == {7_000_000}


def test_a_late_call_without_an_answer_may_undo_what_was_acknowledged_after_it_until_it_lingers_no_more():
    calls = [create(every=5), call("pauseJob", 20, 22, Outcome.UNKNOWN), call("resumeJob", 30, 31)]
    late = Timeline([*calls, call("resumeJob", 200, 201)], linger=60)
    assert gates(late.between(40, 41)) == {Gate.OPEN, Gate.PAUSED}
    assert gates(late.between(202, 999)) == {Gate.OPEN}


def test_a_cancelled_job_cannot_be_resumed():
    timeline = Timeline([create(every=5), call("cancelJob", 20, 21), call("resumeJob", 30, 31, Outcome.UNKNOWN)])
    assert gates(timeline.last) == {Gate.CANCELLED}


def test_an_answer_that_fits_no_world_is_noted_as_a_lie():
    shown = {"scheduleType": "recurring", "status": "pending", "every": "PT9S", "name": "a"}
    timeline = Timeline([create(every=5), call("changeJob", 20, 21, body={"every": 7}, answer=shown)])
    assert [each.kind for each in timeline.lies] == ["changeJob"]


def test_an_answer_of_a_moment_ago_is_no_lie_when_another_call_came_in_between():
    """The change was answered after a pause had taken effect, and describes the job before it."""
    shown = {"scheduleType": "recurring", "status": "pending", "every": "PT7S", "name": "a"}
    timeline = Timeline(
        [
            create(every=5),
            call("changeJob", 20, 25, body={"every": 7}, answer=shown),
            call("pauseJob", 21, 24, answer=shown | {"status": "paused"}),
        ]
    )
    assert not timeline.lies
    assert timeline.last == {next(iter(timeline.last))}
    assert gates(timeline.last) == {Gate.PAUSED}


def test_a_hundred_repetitions_of_a_call_without_an_answer_can_still_be_reasoned_about():
    calls = [create(every=5)]
    for number in range(100):
        calls.append(call("pauseJob", 20 + number, 21 + number, Outcome.UNKNOWN))
        calls.append(call("changeJob", 20 + number, 21 + number, Outcome.UNKNOWN, {"every": 7}))
    timeline = Timeline(calls)
    assert timeline.judged
    assert {(each.gate, each.definition.period) for each in timeline.last} == {
        (gate, period) for gate in (Gate.OPEN, Gate.PAUSED) for period in (5_000_000, 7_000_000)
    }


def test_the_order_of_overlapping_calls_is_unknown():
    timeline = Timeline(
        [
            create(every=5),
            call("changeJob", 20, 30, body={"every": 6}),
            call("changeJob", 21, 29, body={"every": 7}),
        ]
    )
    assert {each.definition.period for each in timeline.last} == {6_000_000, 7_000_000}


def test_fields_that_are_null_count_as_left_out():
    assert body_of({"name": "a", "endsAt": None}) == body_of({"name": "a"})
