"""Graphs by themselves: cycles are found and named, and what a parent's end means for its children."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.errors import Cycle, InvalidField
from foliot.domain.graph import FAILED, MOST_NODES, Edge, Past, Verdict, When, components, find_cycle, stuck, verdict
from foliot.domain.job import Gate, Kind, Overlap
from foliot.domain.states import State
from foliot.domain.wiring import Member, Place, arrange

ENDS = [State.SUCCEEDED, State.DEAD, State.CANCELLED, State.UNKNOWN, State.SKIPPED, State.DISCARDED]


@st.composite
def graphs(draw: Any, most: int = 9) -> list[Edge]:
    """Edges from lower to higher numbers: no cycle."""
    size = draw(st.integers(2, most))
    pairs = draw(st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=20))
    chosen = {(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]}
    return [Edge(parent, child, draw(st.sampled_from(When))) for parent, child in sorted(chosen)]


def brute(edges: list[tuple[When, State | None]]) -> Verdict:
    """The rule in its own words: is there a way for the rest to end in which it runs, and does it run already?"""

    def runs(ends: list[tuple[When, State]]) -> bool:
        failures = [end in FAILED for when, end in ends if when is When.FAILED]
        return all(end is State.SUCCEEDED for when, end in ends if when is When.SUCCESS) and (
            not failures or any(failures)
        )

    def futures(end: State | None, when: When) -> list[State]:
        if end is None:
            return ENDS
        return [State.SUCCEEDED, State.DISCARDED] if end is State.DEAD and when is When.SUCCESS else [end]

    possible = [[]]
    for when, end in edges:
        possible = [[*before, (when, last)] for before in possible for last in futures(end, when)]
    if not any(map(runs, possible)):
        return Verdict.SKIPPED
    said = [
        end is not None and not (when is When.SUCCESS and end is State.DEAD)
        for when, end in edges
        if when is not When.FAILED
    ]
    alarms = [end in FAILED for when, end in edges if when is When.FAILED and end is not None]
    needs_alarm = any(when is When.FAILED for when, _ in edges)
    return Verdict.RUNS if all(said) and (not needs_alarm or any(alarms)) else Verdict.WAITS


@given(st.lists(st.tuples(st.sampled_from(When), st.sampled_from([None, *ENDS])), max_size=4))
def test_a_child_runs_when_all_it_waits_for_came_and_is_skipped_when_it_cannot_come(
    edges: list[tuple[When, State | None]],
):
    assert verdict((when, Past(end, end)) for when, end in edges) is brute(edges)


def test_what_was_told_stays_told_when_a_parent_is_replayed():
    died_then_succeeded = Past(State.DEAD, State.SUCCEEDED)
    assert verdict([(When.FAILED, died_then_succeeded)]) is Verdict.RUNS
    assert verdict([(When.DONE, Past(State.DEAD, None))]) is Verdict.RUNS
    assert verdict([(When.SUCCESS, Past(State.DEAD, None))]) is Verdict.WAITS
    assert verdict([(When.SUCCESS, died_then_succeeded)]) is Verdict.RUNS


@given(graphs(), st.data())
def test_a_cycle_is_found_if_there_is_one_and_leads_along_the_edges(edges: list[Edge], data: st.DataObject):
    assert find_cycle(edges) is None
    if edges:
        back = data.draw(st.sampled_from(edges))
        closed = [*edges, Edge(back.child, back.parent)]
        ring = find_cycle(closed)
        assert ring is not None
        assert ring[0] == ring[-1]
        pairs = {edge[:2] for edge in closed}
        assert all(step in pairs for step in pairwise(ring))


@given(graphs(), st.data())
def test_whoever_waits_for_a_dead_one_knows_which_it_is(edges: list[Edge], data: st.DataObject):
    edges = [edge._replace(when=When.SUCCESS) for edge in edges]
    nodes = sorted({node for edge in edges for node in edge[:2]})
    dead = set(data.draw(st.lists(st.sampled_from(nodes), max_size=2))) if nodes else set()
    states: dict[int, State] = {}
    for node in nodes:
        above = [states[edge.parent] for edge in edges if edge.child == node]
        blocked = any(state in {State.DEAD, State.BLOCKED} for state in above)
        states[node] = State.BLOCKED if blocked else State.DEAD if node in dead else State.SUCCEEDED
    found = stuck(states, edges)
    assert found.keys() == {node for node, state in states.items() if state is State.BLOCKED}
    assert all(states[each] is State.DEAD for blame in found.values() for each in blame)


def member(number: int, kind: Kind = Kind.ON_DEMAND, schedule: int | None = None, **terms: Any) -> Member:
    return Member(number, f"job {number}", kind, schedule, terms)


def these(*members: Member) -> Mapping[int, Member]:
    return {each.id: each for each in members}


def test_all_of_a_recurring_graph_have_the_schedule_of_its_roots_and_are_known_by_the_first():
    hourly = [member(7, Kind.RECURRING, 5), member(3, Kind.RECURRING, 5)]
    placed = arrange(these(*hourly, member(1), member(9)), [Edge(7, 1), Edge(3, 1)])
    assert placed == {
        7: Place(Kind.RECURRING, 5, 3),
        3: Place(Kind.RECURRING, 5, 3),
        1: Place(Kind.RECURRING, 5, 3),
        9: Place(Kind.ON_DEMAND),
    }


def test_one_time_jobs_have_no_head_and_a_child_of_one_is_one():
    assert arrange(these(member(1, Kind.ONE_TIME), member(2)), [Edge(1, 2)])[2] == Place(Kind.ONE_TIME)


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ([member(1, Kind.RECURRING, 5), member(2, Kind.RECURRING, 6), member(3)], "different schedules"),
        ([member(1, Kind.RECURRING, 5), member(2, Kind.RECURRING, 5, maxRuns=3), member(3)], "different schedules"),
        ([member(1, Kind.RECURRING, 5), member(2), member(3)], "what starts the graph"),
        ([member(1, Kind.RECURRING, 5), member(2, Kind.RECURRING, 5), member(3, Kind.ONE_TIME)], "runs once"),
        (
            [member(1, Kind.RECURRING, 5), member(2, Kind.RECURRING, 5), member(3, Kind.RECURRING, 6)],
            "schedule of its own",
        ),
        ([member(1), member(2), member(3, Kind.ONE_TIME)], "no run to wait for"),
        ([member(1)._replace(gate=Gate.CANCELLED), member(2), member(3)], "is cancelled"),
        (
            [member(1, Kind.RECURRING, 5)._replace(overlap=Overlap.QUEUE), member(2, Kind.RECURRING, 5), member(3)],
            "cannot be had",
        ),
    ],
)
def test_what_cannot_hang_together_is_refused_with_a_reason(jobs: list[Member], said: str):
    with pytest.raises(InvalidField, match=said):
        arrange(these(*jobs), [Edge(1, 3), Edge(2, 3)])


def test_a_cycle_is_named_by_what_its_owner_calls_the_jobs():
    with pytest.raises(Cycle, match="job 1 → job 2 → job 3 → job 1"):
        arrange(these(member(1), member(2), member(3)), [Edge(1, 2), Edge(2, 3), Edge(3, 1)])
    long = {number: member(number) for number in range(50)}
    with pytest.raises(Cycle, match=r"job 0 → .* → … → .* → job 0"):
        arrange(long, [Edge(number, (number + 1) % 50) for number in range(50)])


def test_a_graph_may_have_a_thousand_jobs_and_no_more():
    for count in (MOST_NODES, MOST_NODES + 1):
        jobs = {number: member(number) for number in range(count)}
        edges = [Edge(0, number) for number in range(1, count)]
        if count > MOST_NODES:
            with pytest.raises(InvalidField, match="at most 1,000 jobs"):
                arrange(jobs, edges)
        else:
            assert len(arrange(jobs, edges)) == count
    assert components([1, 2], []) == [{1}, {2}]
