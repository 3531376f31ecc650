"""Who called, told by trusted proxies and by nobody else."""

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.origin import origin_of

PROXIES = [ip_network("10.0.0.0/8"), ip_network("fd00::/8")]
ADDRESSES = st.ip_addresses().map(str)


@pytest.mark.parametrize(
    ("peer", "forwarded", "who"),
    [
        ("203.0.113.9", "", "203.0.113.9"),
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),  # a stranger's word
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "198.51.100.1, 10.0.0.2", "198.51.100.1"),  # two proxies in a row
        ("10.0.0.1", "1.2.3.4, 198.51.100.1, 10.0.0.2", "198.51.100.1"),  # the caller made up the first
        ("10.0.0.1", "10.9.9.9", "10.9.9.9"),  # a call from within
        ("10.0.0.1", "198.51.100.1:4711", "198.51.100.1"),
        ("fd00::1", "[2001:db8::5]:4711", "2001:db8::5"),
        ("::ffff:10.0.0.1", "::ffff:198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "unknown", "10.0.0.1"),
        ("10.0.0.1", "198.51.100.1, nonsense", "10.0.0.1"),
        ("unix", "198.51.100.1", "unix"),
    ],
)
def test_what_is_said_is_read_from_the_right_and_only_past_trusted_proxies(peer: str, forwarded: str, who: str):
    assert origin_of(peer, forwarded, PROXIES) == who


@given(ADDRESSES, st.text())
def test_where_nobody_is_trusted_the_header_means_nothing(peer: str, forwarded: str):
    assert origin_of(peer, forwarded, []) == peer


@given(st.text(), ADDRESSES.filter(lambda each: origin_of(each, "192.0.2.1", PROXIES) == each))
def test_nothing_that_a_caller_writes_hides_where_the_proxy_saw_it(made_up: str, seen: str):
    honest = origin_of("10.0.0.1", seen, PROXIES)
    assert origin_of("10.0.0.1", f"{made_up},{seen}", PROXIES) == honest
