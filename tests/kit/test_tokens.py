"""Keys as people carry them about: copied, cut short, mistyped, leaked."""

from hypothesis import given
from hypothesis import strategies as some

from foliot.kit.tokens import is_whole, new_token, read_token, with_check

KEY = new_token()


@given(place=some.integers(0, len(KEY.text) - 1), letter=some.sampled_from("aZ0_- \u00e9"))
def test_a_key_with_one_letter_wrong_is_no_key_and_nobody_is_asked(place: int, letter: str):
    changed = KEY.text[:place] + letter + KEY.text[place + 1 :]
    assert is_whole(changed) == (changed == KEY.text)
    assert not is_whole(KEY.text[:place]) or place == len(KEY.text) - 6  # as keys were before they had a checksum


def test_a_key_carries_its_id_256_random_bits_and_a_checksum():
    assert read_token(KEY.text) == KEY
    assert KEY.text == with_check(KEY.text[:-6])
    assert KEY.text.startswith(f"fol_{KEY.id}_")
    assert len(KEY.text) == 4 + 12 + 1 + 43 + 6
    assert new_token().text != KEY.text


def test_a_key_of_before_there_were_checksums_is_still_one():
    former = KEY.text[:-6]
    assert is_whole(former)
    token = read_token(former)
    assert token is not None
    assert (token.id, token.text) == (KEY.id, former)
