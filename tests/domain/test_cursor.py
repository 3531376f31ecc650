import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.cursor import Cursors
from foliot.domain.errors import ForeignCursor
from foliot.domain.seal import Mac

OURS, THEIRS = Cursors(Mac(b"k" * 32)), Cursors(Mac(b"j" * 32))
POSITIONS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(st.binary(max_size=40), POSITIONS)
def test_what_was_written_for_a_list_is_read_by_it(place: bytes, position: str):
    assert OURS.read(place, OURS.write(place, position)) == position


@given(st.binary(max_size=40), st.binary(max_size=40), POSITIONS)
def test_another_list_and_another_deployment_refuse_it(place: bytes, other: bytes, position: str):
    with pytest.raises(ForeignCursor):
        OURS.read(place, THEIRS.write(place, position))
    if place != other:
        with pytest.raises(ForeignCursor):
            OURS.read(place, OURS.write(other, position))


@given(st.binary(max_size=40), POSITIONS, st.data())
def test_no_letter_of_it_can_be_changed_added_or_left_out(place: bytes, position: str, data: st.DataObject):
    text = OURS.write(place, position)
    at = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.characters(max_codepoint=0x2FF))
    for changed in (text[:at] + letter + text[at + 1 :], text[:at] + text[at + 1 :], text[:at] + letter + text[at:]):
        if changed != text:
            with pytest.raises(ForeignCursor):
                OURS.read(place, changed)


@given(st.text(max_size=80))
def test_nonsense_is_refused(text: str):
    with pytest.raises(ForeignCursor):
        OURS.read(b"", text)
