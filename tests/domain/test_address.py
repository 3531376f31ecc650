"""Kinds of addresses: nothing inside a wrapping is taken for public, on no interpreter."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from foliot.domain.address import Kind, carried, kind_of, parse_address, plain

V4 = st.integers(0, 2**32 - 1).map(IPv4Address) | st.sampled_from(
    [IPv4Address(text) for text in ("127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "8.8.8.8", "0.0.0.0")]
)
V6 = st.integers(0, 2**128 - 1).map(IPv6Address) | st.integers(0, 2**125 - 1).map(
    lambda number: IPv6Address(number | 1 << 125)
)

KINDS = {
    Kind.PUBLIC: "8.8.8.8 1.1.1.1 100.63.255.255 100.128.0.0 172.15.0.1 172.32.0.1 2606:4700::1111 2a00::1"
    " 64:ff9b::808:808 ::ffff:8.8.8.8",
    Kind.PRIVATE: "10.0.0.0 10.255.255.255 172.16.0.1 172.31.255.255 192.168.1.1 fd00::1 fc00::1 fec0::1"
    " ::ffff:10.0.0.1",
    Kind.SHARED: "100.64.0.1 100.127.255.255 64:ff9b::6440:1",
    Kind.LOOPBACK: "127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1 64:ff9b::7f00:1",
    Kind.LINK_LOCAL: "169.254.0.1 fe80::1 febf::1 fe80::1%eth0 ::1%lo 2606:4700::1111%1",
    Kind.METADATA: "169.254.169.254 168.63.129.16 100.100.100.200 192.0.0.192 fd00:ec2::254 fd20:ce::254"
    " ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe",
    Kind.TUNNEL: "2002:7f00:1:: 2002:a9fe:a9fe::1 2001::1 ::127.0.0.1 ::ffff:0:127.0.0.1 64:ff9b:1::7f00:1"
    " 2606:4700::5efe:7f00:1 2606:4700::200:5efe:7f00:1 192.88.99.1",
    Kind.MULTICAST: "224.0.0.1 239.255.255.250 ff02::1",
    Kind.UNSPECIFIED: "0.0.0.0 0.1.2.3 ::",
    Kind.RESERVED: "192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.1 240.0.0.1 255.255.255.255 192.0.0.1 2001:db8::1"
    " 2001:10::1 3fff::1 100::1 5f00::1 4000::1",
}


@pytest.mark.parametrize(("kind", "texts"), KINDS.items())
def test_each_kind_is_known_by_its_addresses(kind, texts):
    assert {text: kind_of(ip_address(text)) for text in texts.split()} == dict.fromkeys(texts.split(), kind)


@example(IPv4Address("169.254.169.254"))
@given(V4)
def test_what_is_wrapped_in_ipv6_is_no_more_public_than_it_is_alone(address):
    number, kind = int(address), kind_of(address)
    mapped, nat64 = IPv6Address(0xFFFF << 32 | number), IPv6Address(0x0064_FF9B << 96 | number)
    assert kind_of(mapped) is kind_of(nat64) is kind
    assert plain(mapped) == plain(nat64) == address
    six_to_four, teredo = (
        IPv6Address(0x2002 << 112 | number << 80 | 1),
        IPv6Address(0x2001 << 112 | number ^ 0xFFFFFFFF),
    )
    isatap = IPv6Address(0x2606 << 112 | 0x5EFE << 32 | number)
    for tunnel in (six_to_four, teredo, isatap, IPv6Address(0xFFFF << 48 | number)):
        assert kind_of(tunnel) is Kind.TUNNEL
        assert address in carried(tunnel)


@given(V4 | V6)
def test_what_is_called_public_is_so_for_the_interpreter_too(address):
    if kind_of(address) is Kind.PUBLIC:
        assert plain(address).is_global
        assert not address.is_multicast
        assert not address.is_reserved or plain(address) != address


@pytest.mark.parametrize(
    "text",
    [
        "0x7f.1",
        "2130706433",
        "127.1",
        "0177.0.0.1",
        "127.0.0.01",
        "127.0.0.1.",
        "\u0661\u0662\u0667.0.0.1",
        "a.example",
    ],
)
def test_an_odd_spelling_is_no_address(text):
    assert parse_address(text) is None
