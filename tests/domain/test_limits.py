"""Limits: which runs count together, and what cannot be a limit."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.errors import InvalidField
from foliot.domain.job import Overlap
from foliot.domain.limits import HIGHEST, Concurrency

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)
NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="."), min_size=1, max_size=9
)


def _key(value: object, *names: str) -> int | None:
    payload = value
    for name in reversed(names):
        payload = {"besides": 1, name: payload}
    return Concurrency(1, ".".join(["payload", *names])).key_of(msgspec.json.encode(payload))


@given(VALUES, VALUES, st.lists(NAMES, min_size=1, max_size=3))
def test_two_payloads_count_together_if_and_only_if_the_key_leads_to_the_same_value(one, other, names):
    encode = msgspec.json.Encoder(order="deterministic").encode
    assert (_key(one, *names) == _key(other, *names)) == (encode(one) == encode(other))


@given(VALUES, st.lists(NAMES, min_size=1, max_size=3, unique=True), NAMES)
def test_a_payload_that_lacks_the_key_is_refused(value, names, missing):
    path = ".".join(["payload", *names, missing])
    payload = msgspec.json.encode({names[0]: None} if isinstance(value, dict) else value)
    with pytest.raises(InvalidField) as refused:
        Concurrency(1, path).key_of(payload)
    assert refused.value.field == "payload"
    assert path in refused.value.hint


def test_without_a_key_all_count_together():
    assert Concurrency(1).key_of(b"not even read") is None


@pytest.mark.parametrize("limit", [0, -1, HIGHEST + 1])
def test_a_limit_is_a_number_that_something_can_go_by(limit):
    with pytest.raises(InvalidField, match=r"concurrency\.limit"):
        Concurrency(limit)


@pytest.mark.parametrize("path", ["", "account", "payload", "payload.", "payload.a..b", "Payload.a", "payload.a b"])
def test_a_key_is_a_path_into_the_payload(path):
    with pytest.raises(InvalidField, match=r"concurrency\.key"):
        Concurrency(1, path)


def test_stored_overlaps_never_change_meaning():
    numbers = {"skip": (True, 0), "queueOne": (False, 1), "queue": (False, 2), "allow": (False, 0)}
    numbers["cancelPrevious"] = (False, 3)
    assert {each.value: (each.is_exclusive, each.number) for each in Overlap} == numbers
    for each in Overlap:
        assert Overlap.stored(each.number, exclusive=each.is_exclusive) is each
