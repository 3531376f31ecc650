"""Where a call came from: the nearest address that is not one of our own proxies'."""

from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address

from foliot.domain.address import Address, Network


def origin_of(peer: str, forwarded: str, trusted: Sequence[Network]) -> str:
    """Who called, by what trusted proxies say of it; without one, whoever is at the other end of the connection.

    `forwarded` is X-Forwarded-For, to which each proxy adds on the right whom it was called by. Read from there, and
    only as far as trusted ones wrote it: what stands further left, anybody may have made up.
    """
    nearest = peer
    for said in reversed(forwarded.split(",")):
        if not _is_trusted(nearest, trusted) or (address := _address(said)) is None:
            break
        nearest = str(address)
    return nearest


def _is_trusted(text: str, trusted: Sequence[Network]) -> bool:
    address = _address(text)
    return address is not None and any(address in network for network in trusted)


def _address(text: str) -> Address | None:
    """An address, with or without a port; IPv4 inside IPv6 is what it stands for."""
    bare = text.strip()
    if bare.startswith("["):
        bare = bare[1:].partition("]")[0]
    elif bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        found = ip_address(bare)
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found
