from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.condition import UNCONDITIONAL, condition_of, is_known, tag_of
from foliot.domain.errors import InvalidField, Stale

VERSIONS = st.integers(0, 10**12)


@given(VERSIONS, VERSIONS, st.binary(max_size=20))
def test_the_tag_of_a_version_lets_that_one_be_changed_and_no_other(read: int, present: int, content: bytes):
    condition = condition_of(tag_of(read, content), None)
    if read == present:
        condition.check(present)
    else:
        with pytest.raises(Stale) as refused:
            condition.check(present)
        assert refused.value.present == present


@given(VERSIONS, st.binary(max_size=20), st.binary(max_size=20))
def test_a_reader_knows_what_looks_the_same(version: int, seen: bytes, now: bytes):
    tag = tag_of(version, now)
    assert is_known(f'"a", W/{tag_of(version, seen)}', tag) == (seen == now)
    assert is_known(" * ", tag)


@given(st.text(max_size=60))
def test_any_header_is_read_or_refused(text: str):
    is_known(text, '"1-000000000000"')
    for headers in ((text, None), (None, text)):
        with suppress(InvalidField):
            condition_of(*headers)


def test_without_headers_anything_goes():
    assert condition_of(None, None) == UNCONDITIONAL
    UNCONDITIONAL.check(None)
    UNCONDITIONAL.check(7)
