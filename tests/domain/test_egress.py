"""What may be called: allow lists, deny lists, and the sentences that a refusal is told in."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.address import Kind, kind_of
from foliot.domain.egress import DEVELOPING, EVERYWHERE, Egress, Rule
from foliot.domain.errors import InvalidField

ADDRESSES = st.integers(0, 2**32 - 1).map(IPv4Address) | st.integers(0, 2**128 - 1).map(IPv6Address)


def may_call(egress: Egress, host: str, port: int = 443, at: str | None = None) -> bool:
    return egress.refusal(host, port, None if at is None else ip_address(at)) is None


@given(ADDRESSES)
def test_only_what_is_public_may_be_called_unless_somebody_says_so(address):
    usual, developing = Egress.parse(), Egress.parse(DEVELOPING)
    assert may_call(usual, str(address)) == (kind_of(address) is Kind.PUBLIC)
    assert may_call(developing, str(address)) == (kind_of(address) in {Kind.PUBLIC, Kind.LOOPBACK})
    assert may_call(usual, "name.example", at=str(address)) == (kind_of(address) is Kind.PUBLIC)


@given(ADDRESSES, st.sampled_from(["*", "*:443", "0.0.0.0/0", "::/0", *Kind]), st.sampled_from(["n.example", None]))
def test_a_denied_target_is_refused_whatever_is_allowed(address, entry, name):
    denies = Rule.parse(entry, "deny").covers(address, 443)
    egress = Egress.parse(["*", "metadata", str(address), "n.example"], [entry])
    refused = egress.refusal(name or str(address), 443, address) is not None
    assert refused or not denies


@pytest.mark.parametrize(
    ("allow", "host", "port", "at", "may"),
    [
        ("reports.internal", "reports.internal", 443, "10.0.0.5", True),
        ("reports.internal", "Reports.Internal.", 443, "10.0.0.5", True),
        ("reports.internal", "xreports.internal", 443, "10.0.0.5", False),
        ("reports.internal", "a.reports.internal", 443, "10.0.0.5", False),
        ("*.internal", "a.b.internal", 443, "fd00::1", True),
        ("*.internal", "internal", 443, "fd00::1", False),
        ("*.internal", "evilinternal", 443, "fd00::1", False),
        ("*.internal", "a.internal", 443, "127.0.0.1", False),
        ("*.internal", "a.internal", 443, "169.254.169.254", False),
        ("reports.internal", "10.0.0.5", 443, None, False),
        ("reports.internal:8443", "reports.internal", 8443, "10.0.0.5", True),
        ("reports.internal:8443", "reports.internal", 443, "10.0.0.5", False),
        ("10.0.0.0/8", "reports.internal", 443, "10.0.0.5", True),
        ("10.0.0.0/8", "10.0.0.5", 443, None, True),
        ("10.0.0.0/8", "::ffff:10.0.0.5", 443, None, True),
        ("10.0.0.0/8", "2002:a00:5::1", 443, None, False),
        ("10.0.0.0/8:8000-8999", "10.0.0.5", 8500, None, True),
        ("10.0.0.0/8:8000-8999", "10.0.0.5", 9000, None, False),
        ("[fd00::/8]:443", "fd00::5", 443, None, True),
        ("[fd00::/8]:443", "fd00::5", 80, None, False),
        ("fd00::5", "fd00::5", 80, None, True),
        ("public:443", "example.com", 443, "8.8.8.8", True),
        ("public:443", "example.com", 25, "8.8.8.8", False),
        ("169.254.0.0/16", "169.254.0.1", 80, None, True),
        ("169.254.0.0/16", "169.254.169.254", 80, None, False),
        ("*", "169.254.169.254", 80, None, False),
        ("0.0.0.0/0", "169.254.169.254", 80, None, False),
        ("169.254.169.254", "169.254.169.254", 80, None, True),
        ("metadata", "fd00:ec2::254", 80, None, True),
        ("loopback", "localhost", 80, None, True),
        ("public", "localhost", 80, None, False),
        ("public", "sub.localhost", 80, None, False),
        ("metadata.", "metadata", 80, "10.0.0.1", True),
        ("hooks.example", "other.example", 80, "8.8.8.8", False),
    ],
)
def test_an_entry_means_what_it_says_and_no_more(allow, host, port, at, may):
    assert may_call(Egress.parse([allow]), host, port, at) == may


def test_a_name_may_be_denied_before_it_is_looked_up():
    egress = Egress.parse(["*"], ["*.corp.example", "10.0.0.0/8"])
    assert not may_call(egress, "wiki.corp.example")
    assert may_call(egress, "corp.example")
    for wrapped in ("10.0.0.1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "2001::f5ff:fffe", "::a00:1"):
        assert not may_call(egress, wrapped)


def test_a_refusal_says_what_it_is_and_which_setting_allows_it():
    usual = Egress.parse()
    assert usual.reason("10.0.0.5", 80) == (
        "10.0.0.5, port 80, is a private address, which handlers may not call"
        " (an operator adds 10.0.0.5 to FOLIOT_HTTP_ALLOW if it shall be called)"
    )
    assert "adds reports.internal to" in str(usual.reason("reports.internal", 80, "10.0.0.5"))
    # What a name inside leads to is nothing that its callers need to learn.
    assert "10.0.0.5" not in str(usual.reason("reports.internal", 80, "10.0.0.5"))
    assert "the address of a cloud's metadata" in str(usual.reason("169.254.169.254", 80))
    assert "adds loopback to FOLIOT_HTTP_ALLOW" in str(usual.refusal_of_url("https://LOCALHOST:8443/x?y#z"))
    assert "FOLIOT_HTTP_DENY" in str(Egress.parse(["*"], ["a.example"]).reason("a.example", 80))
    assert "is no address" in str(EVERYWHERE.reason("a.example", 80, "what"))
    assert str(Egress.parse(["public", "10.0.0.0/8:443"], ["*:25"])) == "public, 10.0.0.0/8:443; never *:25"


@pytest.mark.parametrize(
    "text",
    [
        "10.0.0.1/8",
        "10.0.0.0/33",
        "127.1",
        "0177.0.0.1",
        "http://a.example",
        "a.example/x",
        "a b",
        "a.example:0",
        "a.example:70000",
        "a.example:9-8",
        "*.",
        "a.*.b",
        "*x",
        "[::1",
        "ex\u00e4mple.com",
        ":80",
        "user@a.example",
    ],
)
def test_an_entry_that_cannot_be_is_told_with_its_setting(text):
    with pytest.raises(InvalidField) as caught:
        Egress.parse([text])
    assert caught.value.field == "FOLIOT_HTTP_ALLOW"
    assert caught.value.hint
