"""What kind of place an IP address is, however it is wrapped."""

from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class Kind(StrEnum):
    """Where an address leads. The table is ours: interpreters disagree about `is_private` and `is_global`."""

    PUBLIC = "public"
    PRIVATE = "private"
    SHARED = "shared"
    """Carrier-grade NAT: as private as 10.0.0.0/8, and used so by clouds and overlays."""
    LOOPBACK = "loopback"
    LINK_LOCAL = "link-local"
    METADATA = "metadata"
    """Where a cloud tells a machine its credentials."""
    TUNNEL = "tunnel"
    """IPv4 inside IPv6 by a relay of somebody's: what is at the end, nobody here can tell."""
    MULTICAST = "multicast"
    UNSPECIFIED = "unspecified"
    """0.0.0.0 and ::, which many systems take for themselves."""
    RESERVED = "reserved"


METADATA: Final = frozenset(
    map(
        ip_address,
        (
            "169.254.169.254",  # nearly everybody
            "169.254.170.2",  # Amazon ECS
            "169.254.170.23",  # Amazon EKS
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",  # Google
            "168.63.129.16",  # Azure, in public space
            "100.100.100.200",  # Alibaba
            "192.0.0.192",  # Oracle
            "169.254.0.23",  # Tencent
            "169.254.42.42",  # Scaleway
            "fd00:42::42",
        ),
    )
)
_KINDS: Final[tuple[tuple[Network, Kind], ...]] = tuple(
    (ip_network(text), kind)
    for kind, texts in {
        Kind.UNSPECIFIED: "0.0.0.0/8 ::/128",
        Kind.LOOPBACK: "127.0.0.0/8 ::1/128",
        Kind.PRIVATE: "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 fec0::/10",
        Kind.SHARED: "100.64.0.0/10",
        Kind.LINK_LOCAL: "169.254.0.0/16 fe80::/10",
        Kind.MULTICAST: "224.0.0.0/4 ff00::/8",
        # 6to4 and its relays, Teredo, IPv4-compatible, IPv4-translated, local NAT64
        Kind.TUNNEL: "192.88.99.0/24 2002::/16 2001::/32 ::/96 ::ffff:0:0:0/96 64:ff9b:1::/48",
        Kind.RESERVED: (
            "192.0.0.0/24 192.0.2.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4"
            " 2001::/23 2001:db8::/32 3fff::/20"
        ),
    }.items()
    for text in texts.split()
)
_GLOBAL: Final = IPv6Network("2000::/3")
"""All that has been given out of IPv6 to be reached from everywhere."""
_NAT64: Final = IPv6Network("64:ff9b::/96")
_ISATAP: Final = frozenset({0x0000_5EFE, 0x0200_5EFE})


def parse_address(text: str) -> Address | None:
    """The address that a text spells plainly; none if it is a name, or an odd spelling."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def plain(address: Address) -> Address:
    """Where a connection to it goes: an IPv4 address inside IPv6, by mapping or by NAT64, is that IPv4 address."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


@lru_cache(4_096)
def kind_of(address: Address) -> Kind:
    """What kind of place a connection to the address would reach."""
    address = plain(address)
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return Kind.LINK_LOCAL  # a zone has no meaning elsewhere
        if int(address) >> 32 & 0xFFFF_FFFF in _ISATAP:
            return Kind.TUNNEL
    if address in METADATA:
        return Kind.METADATA
    for network, kind in _KINDS:
        if address in network:
            return kind
    return Kind.PUBLIC if isinstance(address, IPv4Address) or address in _GLOBAL else Kind.RESERVED


def carried(address: Address) -> frozenset[Address]:
    """Every address that this one may stand for, itself included: what a list of the forbidden is held against."""
    found = {address, plain(address)}
    if isinstance(address, IPv6Address):
        if address.sixtofour is not None:
            found.add(address.sixtofour)
        if address.teredo is not None:
            found.update(address.teredo)
        if kind_of(address) is Kind.TUNNEL:
            found.add(IPv4Address(int(address) & 0xFFFF_FFFF))
    return frozenset(found)
