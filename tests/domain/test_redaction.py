"""Secrets are hidden in every form in which they are likely to be written."""

import base64
import json
from urllib.parse import quote, quote_plus

from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.domain.redaction import HIDDEN, Redaction

SECRETS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=8, max_size=40)
AROUND = st.binary(max_size=5)


@settings(max_examples=30)
@given(SECRETS, AROUND, AROUND)
def test_a_secret_is_hidden_as_it_is_in_addresses_in_json_and_in_base64(secret: str, before: bytes, after: bytes):
    redaction = Redaction([secret])
    for written in (
        secret,
        quote(secret, safe=""),
        quote(secret),
        quote_plus(secret),
        json.dumps(secret, ensure_ascii=False)[1:-1],
        json.dumps(secret)[1:-1],
    ):
        assert secret not in redaction.hide(f"a {written} b").replace(HIDDEN, "")
        assert redaction.hide(f"<{written}>") == f"<{HIDDEN}>"
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        assert HIDDEN in redaction.hide(encode(before + secret.encode() + after).decode())


def test_the_case_of_escapes_and_how_a_blank_is_written_are_the_libraries_choice():
    redaction = Redaction(["grün/tür zu"])
    for written in (
        "gr%c3%bcn/t%c3%bcr%20zu",
        "gr%C3%BCn%2Ft%C3%BCr+zu",
        "gr%c3%bcn%2ft%c3%bcr+zu",
        r"gr\u00fcn/t\u00fcr zu",
    ):
        assert redaction.hide(f"<{written}>") == f"<{HIDDEN}>"


@given(st.text())
def test_what_is_no_secret_is_left_alone(text: str):
    assert Redaction().hide(text) == text
    assert Redaction(["", "short"]).hide(text) == text


def test_the_longer_of_two_secrets_goes_first():
    assert Redaction(["password", "password-and-more"]).hide("password-and-more") == HIDDEN
