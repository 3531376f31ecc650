"""Labels: one form however they were written, so that the same labels are the same lane."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.errors import InvalidField
from foliot.domain.labels import MOST, joined, labels_of, parted
from foliot.domain.spec import FunctionHandler, Spec

words = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,62}", fullmatch=True)


@given(st.lists(words, max_size=MOST), st.randoms(use_true_random=False))
def test_neither_order_nor_repetition_matters(written: list[str], dice):
    labels = labels_of(written, "requires")
    again = written + written[:3]
    dice.shuffle(again)
    assert labels_of(again, "requires") == labels == tuple(sorted(set(written)))
    assert labels_of(labels, "requires") == labels


@given(st.lists(words, max_size=MOST))
def test_what_a_lane_writes_down_can_be_read_again(written: list[str]):
    labels = labels_of(written, "requires")
    assert parted(joined(labels)) == labels


@given(st.lists(words, max_size=MOST), st.lists(words, max_size=MOST))
def test_two_lanes_are_called_the_same_only_if_they_require_the_same(one: list[str], other: list[str]):
    names = [joined(labels_of(each, "requires")) for each in (one, other)]
    assert (names[0] == names[1]) == (set(one) == set(other))


@pytest.mark.parametrize("word", ["", "GPU", "a,b", "-a", "a b", "ü", "a\n", "a" * 64, "a=b"])
def test_what_is_no_label_is_named(word: str):
    with pytest.raises(InvalidField) as caught:
        labels_of(["gpu", word], "requires")
    assert caught.value.field == "requires[1]"


def test_there_are_not_too_many():
    assert len(labels_of(map(str, range(MOST)), "requires")) == MOST
    with pytest.raises(InvalidField, match="more than 8"):
        labels_of(map(str, range(MOST + 1)), "requires")


def test_one_word_is_one_label_and_not_its_letters():
    assert labels_of("gpu", "labels") == ("gpu",)


def test_a_spec_that_requires_nothing_keeps_its_name():
    plain = Spec(handler=FunctionHandler("noop"))
    assert b"requires" not in plain.body()
    assert plain.labels == ()
    asking = Spec(handler=FunctionHandler("noop"), requires=("gpu",))
    assert Spec.parse(asking.body()) == asking != plain
    assert asking.labels == ("gpu",)
