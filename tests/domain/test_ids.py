"""Ids: their time, their order, their text."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.domain.errors import InvalidField
from foliot.domain.ids import (
    BLOCK_SIZE,
    EPOCH,
    HIGHEST,
    Block,
    decode,
    decode_all,
    encode,
    first_id_at,
    instant_of,
    mint,
)

LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
numbers = st.integers(0, HIGHEST)
instants = st.datetimes(datetime(2025, 1, 1), datetime(2094, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
prefixes = st.sampled_from(["run", "job", "w"])


@settings(deadline=None)
@given(prefixes, numbers)
def test_text_and_number_are_one_to_one(prefix, number):
    text = encode(prefix, number)
    assert len(text) == len(prefix) + 14
    assert decode(prefix, text) == number


@settings(deadline=None)
@given(st.from_regex(r"\A[0-9a-z]{13}\Z"))
def test_whatever_decodes_encodes_to_the_same_text(body):
    try:
        number = decode("run", f"run_{body}")
    except InvalidField:
        assert set(body) - set(LETTERS) or body[0] > "7"
    else:
        assert encode("run", number) == f"run_{body}"


@settings(deadline=None)
@given(st.lists(numbers), st.data())
def test_many_are_read_like_each_of_them(many, data):
    texts = [encode("run", number) for number in many]
    assert decode_all("run", texts) == many
    if len(texts) > 1:  # put together, the parts are the same; none of the two is an id
        place = data.draw(st.integers(1, 16))
        texts[:2] = [texts[0] + texts[1][:place], texts[1][place:]]
        with pytest.raises(InvalidField):
            decode_all("run", texts)


@settings(deadline=None)
@given(numbers, numbers)
def test_text_sorts_like_the_number(one, other):
    assert (encode("run", one) < encode("run", other)) == (one < other)


@pytest.mark.parametrize("shift", range(0, 60, 5))
def test_each_letter_counts_upwards(shift):
    texts = [encode("run", digit << shift) for digit in range(33)]
    assert texts == sorted(set(texts))


@settings(deadline=None)
@given(numbers, st.integers(0, 16), st.characters())
def test_a_changed_letter_never_reads_as_the_same_id(number, place, letter):
    text = encode("run", number)
    changed = text[:place] + letter + text[place + 1 :]
    if changed != text:
        with suppress(InvalidField):
            assert decode("run", changed) != number


@pytest.mark.parametrize(
    "text",
    [
        "",
        "run",
        "run_",
        "job_0000000000000",  # another kind
        "run_000000000000",  # too short
        "run_00000000000000",  # too long
        "run_8000000000000",  # 2**63
        "run_000000000000A",  # not canonical: upper case
        "run_000000000000o",  # not canonical: o for 0
        "run_000000000000u",
        "run_000000000000\n",
        "run_0000000_00000",
        "run_000000000000٣",
        " run_000000000000",
    ],
)
def test_what_is_not_canonical_is_refused(text):
    with pytest.raises(InvalidField, match="id: not an id of this kind"):
        decode("run", text)


@pytest.mark.parametrize("number", [-1, HIGHEST + 1])
def test_only_63_bits_are_encoded(number):
    with pytest.raises(ValueError, match="63 bits"):
        encode("run", number)


@settings(deadline=None)
@given(instants, st.integers(0, 2**62), st.integers(1, BLOCK_SIZE))
def test_an_id_carries_the_millisecond_of_its_block(at, number, count):
    ids = mint(Block(number, at), count)
    assert len(ids) == count
    assert 0 <= ids[0] <= ids[-1] <= HIGHEST
    millisecond = at.replace(microsecond=at.microsecond // 1000 * 1000)
    assert instant_of(ids[0]) == instant_of(ids[-1]) == millisecond


@settings(max_examples=50)
@given(st.integers(0, 2**40), st.lists(st.tuples(st.integers(0, 1), st.integers(1, BLOCK_SIZE)), min_size=1))
def test_blocks_drawn_in_sequence_never_share_an_id(start, draws):
    at, seen, total = datetime(2026, 2, 3, tzinfo=UTC), set(), 0
    for drawn, (milliseconds, count) in enumerate(draws):
        at += timedelta(milliseconds=milliseconds)
        seen.update(mint(Block(start + drawn, at), count))
        total += count
    assert len(seen) == total


@settings(deadline=None)
@given(instants, instants, st.integers(0, 5000), st.integers(0, 5000))
def test_ids_of_a_later_millisecond_are_greater(at, later, number, other):
    if later - at >= timedelta(milliseconds=1):
        assert mint(Block(number, at), BLOCK_SIZE)[-1] < mint(Block(other, later), 1)[0]


@settings(deadline=None)
@given(instants, st.integers(0, 5000))
def test_the_first_id_of_an_instant_divides_earlier_from_later(at, number):
    mark = first_id_at(at)
    assert mint(Block(number, at), 1)[0] >= mark
    assert mint(Block(number, at + timedelta(milliseconds=1)), 1)[0] > mark
    if at - EPOCH >= timedelta(milliseconds=1):
        assert mint(Block(number, at - timedelta(milliseconds=1)), BLOCK_SIZE)[-1] < mark


def test_instants_outside_the_span_of_ids_become_its_ends():
    assert first_id_at(datetime(1999, 1, 1, tzinfo=UTC)) == 0
    assert first_id_at(datetime(2999, 1, 1, tzinfo=UTC)) == HIGHEST


def test_a_block_gives_no_more_than_it_holds():
    block = Block(7, datetime(2026, 1, 1, tzinfo=UTC))
    assert len(mint(block, 0)) == 0
    assert all(later - earlier == 1 for earlier, later in pairwise(mint(block, 10)))
    for count in (-1, BLOCK_SIZE + 1):
        with pytest.raises(ValueError, match="4096"):
            mint(block, count)


@pytest.mark.parametrize("year", [2024, 2095])
def test_a_database_clock_outside_the_span_of_ids_is_refused(year):
    with pytest.raises(ValueError, match="clock"):
        mint(Block(0, datetime(year, 12, 31, tzinfo=UTC)), 1)
