"""Tokens and signatures: only who has the key can make them, and each is for one thing."""

import base64
import hmac

from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.seal import Attempt, Mac, Voucher, read_token, secret_text, signature

BIG = st.integers(0, 2**63 - 1)
KEY = b"k" * 32


@given(run=BIG, tenant=st.integers(0, 2**31 - 1), fence=BIG, worker=BIG)
def test_a_token_tells_its_attempt_and_proves_it(run: int, tenant: int, fence: int, worker: int):
    token = Voucher(worker, KEY).token(run, tenant, fence)
    attempt = read_token(run, token)
    assert attempt == Attempt(run, tenant, fence, worker)
    assert Voucher(worker, KEY).has_made(token, attempt)
    assert not Voucher(worker, b"x" * 32).has_made(token, attempt)


@given(place=st.integers(0, 107), letter=st.sampled_from("0123456789abcdefgABC_. "), run=st.integers(1, 3))
def test_whatever_is_changed_of_it_it_proves_nothing(place: int, letter: str, run: int):
    voucher = Voucher(9, KEY)
    token = voucher.token(1, 2, 3)
    changed = token[:place] + letter + token[place + 1 :]
    if (changed, run) != (token, 1):
        attempt = read_token(run, changed)
        assert attempt is None or not voucher.has_made(changed, attempt)


@given(
    st.text() | st.text().map("fct_{}".format) | st.binary().map(lambda raw: "fct_" + base64.b64encode(raw).decode())
)
def test_nothing_breaks_the_reader(text: str):
    attempt = read_token(1, text)
    assert attempt is None or not Voucher(9, KEY).has_made(text, attempt)


@given(st.binary(max_size=200), st.binary())
def test_a_mac_is_hmac_with_sha_256(key: bytes, message: bytes):
    assert Mac(key)(message) == hmac.digest(key, message, "sha256")


def test_signatures_are_those_of_standard_webhooks():
    """The example of its specification."""
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    assert secret_text(key) == "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    signed = signature(Mac(key), "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
