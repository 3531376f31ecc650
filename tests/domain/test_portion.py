"""Portions: transactions stay short on any machine that is fast enough for the least, and a stall is forgotten soon."""

from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.portion import LEAST, LONGEST, STEP, Portion

sizes = st.integers(1, 5_000)
paces = st.floats(1e-7, 1e-2)


def least(most: int) -> int:
    return max(1, round(most * LEAST))


@given(most=sizes, each=paces, once=st.floats(0, 0.03))
def test_on_a_machine_of_any_pace_none_is_too_long_unless_the_least_is(most: int, each: float, once: float):
    portion = Portion(most)
    for _ in range(100):
        took = once + each * portion.size
        assert took <= LONGEST or portion.size == least(most)
        portion.took(portion.size, took)
        assert 1 <= portion.size <= most


@given(most=sizes, stalls=st.lists(st.integers(0, 5_000), max_size=20))
def test_after_stalls_a_few_full_portions_are_quick_and_all_is_as_before(most: int, stalls: list[int]):
    portion = Portion(most)
    for amount in stalls:
        portion.took(amount, 1.0)
    assert portion.size >= least(most)
    for _ in range(round(1 / STEP)):
        portion.took(portion.size, 0.001)
    assert portion.size == most


@given(most=st.integers(10, 5_000), amount=st.integers(0, 5_000))
def test_that_a_little_was_quick_says_nothing_of_much(most: int, amount: int):
    portion = Portion(most)
    size = portion.size
    portion.took(min(amount, size - 1), 0.0)
    assert portion.size == size
