"""A rate of late: steady for what is steady, and soon nothing when nothing comes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.domain.rate import MEMORY, Rate


@settings(deadline=None)
@given(st.integers(1, 20_000), st.sampled_from([0.005, 0.01, 0.02]))
def test_what_comes_steadily_is_told_as_it_comes(each: int, apart: float):
    rate = Rate()
    for step in range(int(8 * MEMORY / apart)):
        rate.saw(step * apart, each)
    assert rate.a_second(8 * MEMORY) == pytest.approx(each / apart, rel=0.05)


@given(st.integers(0, 100_000), st.floats(0, 10), st.floats(0, 10))
def test_it_falls_while_nothing_comes(count: int, earlier: float, more: float):
    rate = Rate()
    rate.saw(0.0, count)
    assert rate.a_second(earlier + more) <= rate.a_second(earlier) <= count / MEMORY


def test_nothing_is_no_rate():
    assert Rate().a_second(5.0) == 0
