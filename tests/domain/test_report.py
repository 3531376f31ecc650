"""What handlers tell of their work: whatever they say can be kept, and means what they meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.errors import InvalidField
from foliot.domain.report import LONGEST_MESSAGE, pack_checkpoint, progress_of

NUMBERS = st.floats(min_value=-1e12, max_value=1e12) | st.integers(-(10**9), 10**9)


@given(NUMBERS, st.text())
def test_a_fraction_lies_between_nothing_and_all(fraction: float, message: str):
    said = progress_of(fraction, message)
    assert said.fraction is not None
    assert 0 <= said.fraction <= 1
    assert said.fraction == fraction or not 0 <= fraction <= 1
    assert said.message is not None
    assert len(said.message) <= LONGEST_MESSAGE
    assert "\0" not in said.message
    said.message.encode()


@given(NUMBERS, st.none() | NUMBERS)
def test_done_out_of_total_is_a_fraction_if_there_is_a_total(done: float, total: float | None):
    said = progress_of(done=done, total=total)
    assert (said.done, said.total) == (done, total)
    assert (said.fraction is None) == (not total)


@pytest.mark.parametrize(("arguments", "field"), [((float("nan"),), "fraction"), ((0.5, None, 1), "fraction")])
def test_what_means_nothing_is_refused(arguments: tuple[float, ...], field: str):
    with pytest.raises(InvalidField) as refused:
        progress_of(*arguments)
    assert refused.value.field == field


def test_a_checkpoint_is_json():
    assert pack_checkpoint({"row": 7, "names": ["a"]}) == b'{"row":7,"names":["a"]}'
    with pytest.raises(InvalidField, match="cannot be written as JSON"):
        pack_checkpoint(object())
