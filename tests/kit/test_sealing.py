"""What is sealed opens with its key, in its place, as it was; and in no other way."""

import re
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.kit.master import BadMasterKey, LocalMaster, Wrapped, name_of, new_master_text, parse_master
from foliot.kit.sealing import (
    OVERHEAD,
    CannotOpen,
    Head,
    head_of,
    in_text,
    is_sealed,
    open_sealed,
    prefix,
    seal,
    sealed_parts,
    text_prefix,
    to_text,
)
from foliot.store.vault import Mark, Owner, place

keys = st.binary(min_size=32, max_size=32)
heads = st.builds(Head, st.integers(0, 2**32 - 1), st.integers(0, 255))
places = st.binary(max_size=60)
plains = st.binary(max_size=200)


@given(keys, heads, places, plains)
def test_what_is_sealed_can_be_opened_where_it_belongs(key, head, where, plain):
    sealed = seal(key, head, where, plain)
    assert is_sealed(sealed)
    assert head_of(sealed) == head
    assert len(sealed) == len(plain) + OVERHEAD
    assert sealed.startswith(prefix(head.version))
    assert open_sealed(key, where, sealed) == plain


@given(keys, heads, places, plains, st.data())
def test_any_bit_that_is_flipped_is_noticed(key, head, where, plain, data):
    sealed = bytearray(seal(key, head, where, plain))
    bit = data.draw(st.integers(0, 8 * len(sealed) - 1))
    sealed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CannotOpen):
        open_sealed(key, where, bytes(sealed))


@given(keys, heads, places, plains, st.data())
def test_nothing_opens_elsewhere_with_another_key_or_cut_short(key, head, where, plain, data):
    sealed = seal(key, head, where, plain)
    elsewhere = data.draw(places.filter(lambda other: other != where))
    with pytest.raises(CannotOpen):
        open_sealed(key, elsewhere, sealed)
    with pytest.raises(CannotOpen):
        open_sealed(data.draw(keys.filter(lambda other: other != key)), where, sealed)
    with pytest.raises(CannotOpen):
        open_sealed(key, where, sealed[: data.draw(st.integers(0, len(sealed) - 1))])


numbers = st.integers(0, 2**63 - 1)
owners = st.tuples(st.integers(0, 2**31 - 1), numbers, st.sampled_from(["payload", "target", "result", "error"]))


@given(owners, owners)
def test_two_places_are_never_the_same_bytes(one, other):
    assert (place(*one) == place(*other)) is (one == other)


@given(st.integers(1, 9), numbers, numbers)
def test_a_job_and_a_run_of_the_same_number_are_different_places(tenant, run, job):
    key = bytes(32)
    sealed = seal(key, Head(1, Mark.JOB), place(tenant, run, "payload"), b"{}")
    forged = sealed[:6] + bytes([Mark.RUN]) + sealed[7:]
    with pytest.raises(CannotOpen):
        open_sealed(key, Owner(tenant, run, job).place(Mark.RUN, "payload"), forged)


def test_the_same_is_never_sealed_to_the_same():
    assert len({seal(bytes(32), Head(1, 1), b"", b"{}") for _ in range(100)}) == 100


@given(st.text(), st.text(max_size=20), st.text(max_size=20))
def test_sealed_text_is_found_between_other_words(plain, before, after):
    # A letter of base64 right behind it would be taken for its own.
    after = f" {after}"
    sealed = seal(bytes(32), Head(7, 2), b"here", plain.encode(errors="replace"))
    text = f"{before}{to_text(sealed)}{after}"
    assert to_text(sealed).startswith(text_prefix(7))
    assert sealed in sealed_parts(text)
    assert in_text(text, lambda each: "opened" if each == sealed else "?") == f"{before}opened{after}"


@given(st.text())
def test_text_of_people_stays_as_it_is(text):
    assert in_text(text, lambda _: "opened") == text or "sealed:" in text


async def test_a_wrapped_key_comes_back_under_its_own_context_only():
    first, second = LocalMaster([b"a" * 31 + b"b"]), LocalMaster([bytes(range(32)), b"a" * 31 + b"b"])
    wrapped = await first.wrap(b"key", b"tenant 1")
    assert await second.unwrap(wrapped, b"tenant 1") == b"key"
    assert second.current == name_of(bytes(range(32)))
    with pytest.raises(CannotOpen):
        await second.unwrap(wrapped, b"tenant 2")
    with pytest.raises(CannotOpen, match="mk_"):
        await first.unwrap(await second.wrap(b"key", b"tenant 1"), b"tenant 1")
    with pytest.raises(CannotOpen):
        await second.unwrap(Wrapped(second.current, wrapped.blob), b"tenant 1")


def test_master_keys_are_read_in_hex_or_base64_and_named_without_being_told():
    text = new_master_text()
    master = parse_master(f"{text}\n{'+/-_' + 'abcdefghijklmnopqrstuvwxyz0123456789ABC='}\n")
    assert len(master.names) == 2
    assert master.current == name_of(bytes.fromhex(text))
    assert re.fullmatch(r"mk_[0-9a-f]{12}", master.current)
    assert text[:8] not in master.current


@pytest.mark.parametrize("text", ["", "secret", "00" * 32, "ab" * 31, "ab" * 33, "not hex, not base64 either " * 3])
def test_weak_and_odd_master_keys_are_refused(text):
    with pytest.raises(BadMasterKey) as refused:
        parse_master(text)
    assert text not in str(refused.value) or not text


@settings(deadline=timedelta(seconds=5))
@given(st.binary(max_size=80))
def test_garbage_is_never_opened(garbage):
    with pytest.raises(CannotOpen):
        open_sealed(bytes(32), b"", garbage)
