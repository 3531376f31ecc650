"""Suspicion: whoever kills workers soon runs alone, however quickly it does it and whoever is beside it."""

from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.suspicion import CRASHES_ALLOWED, Manner, deaths, manner, mark_after_death
from foliot.store.statements import SQL

MOST_DEATHS = 3
"""Of workers, that one run can cause."""


@given(st.data(), st.integers(1, 4), st.integers(0, 6))
def test_a_run_that_kills_workers_does_so_three_times_at_most(data: st.DataObject, poisons: int, innocents: int):
    """Whoever is at hand is claimed; some of it begins; a poison among it, quick or slow, kills the worker."""
    marks = [0] * (poisons + innocents)
    fallen = 0
    while any(manner(mark) is not Manner.ALONE for mark in marks[:poisons]):
        begun = [each for each in range(len(marks)) if manner(marks[each]) is not Manner.ALONE]
        begun = data.draw(st.lists(st.sampled_from(begun), min_size=1, unique=True), "begun")
        killers = [each for each in begun if each < poisons]
        if not killers:
            continue
        killer = data.draw(st.sampled_from(killers), "killer")
        for each in range(len(marks)):
            is_noted = manner(marks[each]) is not Manner.USUAL or (each != killer and data.draw(st.booleans(), "noted"))
            marks[each] = mark_after_death(marks[each], begun=each in begun and is_noted)
        fallen += 1
    assert fallen <= MOST_DEATHS * poisons


def test_one_death_alone_makes_nobody_a_suspect():
    """A thousand runs of a worker that an operator killed do not need a thousand processes."""
    assert manner(0) is Manner.USUAL
    assert manner(mark_after_death(0, begun=False)) is Manner.NOTED
    assert manner(mark_after_death(0, begun=True)) is Manner.NOTED
    assert manner(mark_after_death(1, begun=True)) is Manner.ALONE


@given(st.lists(st.booleans(), max_size=20))
def test_the_mark_counts_lost_attempts_and_never_forgets_them(begun: list[bool]):
    mark = 0
    for each in begun:
        mark = mark_after_death(mark, begun=each)
    assert deaths(mark) == sum(begun)
    assert (mark == 0) == (not begun)


def test_the_store_has_the_same_bound():
    assert f"coalesce(crashes, 0) + 1 >= {CRASHES_ALLOWED}" in SQL["conclude"]
