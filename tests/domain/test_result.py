"""What is kept of what handlers return."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.result import LARGEST_RESULT, is_small_json, small_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON | st.binary() | st.sets(st.integers()))
def test_whatever_is_returned_is_kept_as_json_or_not_at_all(value: Any):
    kept = small_json(value)
    if kept is not None:
        assert is_small_json(kept)
    elif value is not None:
        with pytest.raises((UnicodeEncodeError, msgspec.EncodeError, ValueError, OverflowError, AssertionError)):
            assert len(msgspec.json.encode(value)) > LARGEST_RESULT


def test_what_is_large_or_has_no_end_is_left():
    endless: list[Any] = []
    endless.append(endless)
    for value in ("x" * LARGEST_RESULT, [0] * 3_000, endless, {"a": ["b" * 5_000]}, object(), {1: object()}):
        assert small_json(value) is None
    assert small_json(["x"] * 100) == msgspec.json.encode(["x"] * 100)
    assert not is_small_json(b"")
    assert not is_small_json(b"[" * 4_000)
    assert not is_small_json(b"nonsense")
