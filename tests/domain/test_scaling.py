"""How many worker processes: within bounds, for a reason that lasted, and never to and fro."""

from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from foliot.domain.errors import InvalidField
from foliot.domain.scaling import BLIND_AFTER, DEEP, DEEP_FOR, IDLE_FOR, Bounds, Sight, Watch, decide

EVERY = 5.0
BOUNDS = st.integers(1, 12).flatmap(lambda least: st.builds(Bounds, st.just(least), st.integers(least, 12)))


class Phase(NamedTuple):
    """So many looks at the same distance that find the same."""

    looks: int
    apart: float
    backlog: int
    idle: int


PHASES = st.lists(
    st.builds(
        Phase,
        st.integers(1, 150),
        st.sampled_from([1.0, EVERY, EVERY, EVERY, BLIND_AFTER, BLIND_AFTER + 1]),
        st.sampled_from([0, 0, 1, DEEP, DEEP + 1, DEEP + 1]),
        st.integers(0, 3),
    ),
    max_size=12,
)


def lived(bounds: Bounds, phases: list[Phase]) -> list[tuple[Sight, int]]:
    """What was seen, and how many processes were wanted thereupon, look by look."""
    watch, at, processes, seen = Watch(), 1_000.0, bounds.least, []
    for phase in phases:
        for _ in range(phase.looks):
            at += phase.apart
            sight = Sight(at, processes, max(0, processes - phase.idle), phase.backlog)
            watch, processes = decide(bounds, watch, sight)
            seen.append((sight, processes))
    return seen


def was_so(seen: list[Sight], seconds: float, held) -> bool:
    """Whether it held at every look of the last so many seconds, and the looks were close enough to tell."""
    span = [seen[-1]]
    for before in reversed(seen[:-1]):
        if span[-1].at - before.at > BLIND_AFTER:
            break
        span.append(before)
        if seen[-1].at - before.at >= seconds:
            break
    return seen[-1].at - span[-1].at >= seconds and all(map(held, span))


@given(BOUNDS, PHASES)
@example(Bounds(1, 8), [Phase(30, EVERY, DEEP + 1, 0), Phase(600, EVERY, 0, 1)])
def test_changes_stay_within_bounds_have_a_lasting_reason_and_never_flap(bounds: Bounds, phases: list[Phase]):
    seen: list[Sight] = []
    changed = float("-inf")
    for sight, wanted in lived(bounds, phases):
        seen.append(sight)
        assert bounds.least <= wanted <= bounds.most
        if wanted > sight.processes:
            assert wanted <= 2 * sight.processes
            assert was_so(seen, DEEP_FOR, lambda each: each.backlog > DEEP)
            assert sight.at - changed >= DEEP_FOR
        if wanted < sight.processes:
            assert wanted == sight.processes - 1
            assert was_so(seen, IDLE_FOR, lambda each: each.backlog == 0 and each.busy < each.processes)
            assert sight.at - changed >= IDLE_FOR
        if wanted != sight.processes:
            changed = sight.at


def test_a_backlog_doubles_the_processes_and_idleness_takes_them_one_by_one():
    seen = lived(Bounds(1, 8), [Phase(30, EVERY, DEEP + 1, 0), Phase(62 * 8, EVERY, 0, 1)])
    changes = [(sight.at, wanted) for sight, wanted in seen if wanted != sight.processes]
    assert [wanted for _, wanted in changes] == [2, 4, 8, 7, 6, 5, 4, 3, 2, 1]
    assert changes[0][0] - seen[0][0].at == DEEP_FOR


def test_processes_that_all_have_work_are_kept_however_short_the_queue():
    assert {wanted for _, wanted in lived(Bounds(1, 8), [Phase(7, EVERY, DEEP + 1, 0), Phase(200, EVERY, 0, 0)])} == {
        1,
        2,
    }


def test_who_is_outside_the_bounds_is_brought_back_at_once():
    bounds = Bounds(2, 4)
    assert decide(bounds, Watch(), Sight(0.0, 1, 0, 0))[1] == 2
    assert decide(bounds, Watch(), Sight(0.0, 9, 9, 5_000))[1] == 4
    assert bounds.without(1) == (1, 3)
    assert bounds.without(3) == (1, 1)
    assert bounds.without(9) == (0, 0)


@pytest.mark.parametrize(
    ("text", "bounds"), [("1", (1, 1)), ("auto", (6, 6)), ("1..8", (1, 8)), ("2..auto", (2, 6)), (" 256 ", (256, 256))]
)
def test_bounds_are_read_as_people_write_them(text: str, bounds: tuple[int, int]):
    assert Bounds.parse(text, cores=6) == bounds


@pytest.mark.parametrize("text", ["", "0", "-1", "8..1", "0..4", "257", "1..999", "many", "1...8", "1.5", "٣"])
def test_what_does_not_say_how_many_is_refused_with_a_hint(text: str):
    with pytest.raises(InvalidField, match=r"1\.\.8") as refused:
        Bounds.parse(text, cores=6)
    assert refused.value.field == "processes"
