"""The transition table: every state can be reached, what is finished stays finished."""

from foliot.domain.states import FINISHED, STATUS_OF, TRANSITIONS, Event, State, Status, sources, states_of

BEGINNINGS = {State.SCHEDULED, State.READY, State.BLOCKED}
NEVER_RAN = {State.SKIPPED, State.MISSED}
"""Outcomes of an occurrence that never was a run."""


def test_every_state_can_be_reached():
    reached = set(BEGINNINGS)
    while more := {after for (before, _), after in TRANSITIONS.items() if before in reached} - reached:
        reached |= more
    assert reached | NEVER_RAN == set(State)


def test_a_finished_run_never_changes_and_a_dead_one_only_by_replay_or_discard():
    left = {(before, event) for before, event in TRANSITIONS if before in FINISHED}
    assert left == {(State.DEAD, Event.REPLAYED), (State.DEAD, Event.DISCARDED)}


def test_what_is_not_finished_can_still_end():
    for state in set(State) - FINISHED:
        assert any(before is state for before, _ in TRANSITIONS)


def test_a_run_runs_only_from_ready():
    running = {(before, event) for (before, event), after in TRANSITIONS.items() if after is State.RUNNING}
    assert running == {(State.READY, Event.CLAIMED), (State.RUNNING, Event.ENTRUSTED)}


def test_sources_are_the_states_in_which_an_event_is_legal():
    assert sources(Event.CLAIMED) == {State.READY}
    assert sources(Event.CANCELLED) == {State.SCHEDULED, State.READY, State.BLOCKED, State.RUNNING}
    for event in Event:
        assert sources(event) == {state for state in State if (state, event) in TRANSITIONS} != set()


def test_every_state_has_a_status():
    assert set(STATUS_OF) == set(State)
    assert set(STATUS_OF.values()) == set(Status) - {Status.PAUSED, Status.BLOCKED}


def test_a_filter_takes_either_word():
    assert states_of("pending") == {State.SCHEDULED, State.READY, State.BLOCKED}
    assert states_of("failed") == {State.DEAD, State.DISCARDED, State.UNKNOWN}
    assert states_of("ready") == {State.READY}
    assert states_of("nonsense") == frozenset()
    for state in State:
        assert state in states_of(state.word)
        assert state in states_of(STATUS_OF[state])


def test_stored_numbers_never_change_meaning():
    assert [state.name for state in State] == [
        "SCHEDULED", "READY", "BLOCKED", "RUNNING", "SUCCEEDED", "DEAD", "CANCELLED", "UNKNOWN", "SKIPPED", "MISSED",
        "DISCARDED",
    ]  # fmt: skip
    assert [state.value for state in State] == list(range(11))
