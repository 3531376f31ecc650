"""Which web addresses a handler may name."""

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

from foliot.domain.errors import InvalidField

LONGEST_URL: Final = 2_048
_NUMERIC_LABEL: Final = re.compile(r"\d+|0[xX][0-9a-fA-F]*")
_HOST: Final = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,62}))*\.?")
_BRACKETED: Final = re.compile(r"\[[^\[\]]*\](:[0-9]*)?")
_EXAMPLE: Final = "write it like https://example.com/path"


def check_url(url: str, field: str = "handler") -> str:
    """Return `url` if it is a plain http(s) address, else raise.

    Odd spellings of IPv4 addresses (`0x7f.1`, `2130706433`, `127.1`, `0177.0.0.1`) are refused outright: resolvers
    accept them, so a guard that compares text would be walked around.
    """
    if len(url) > LONGEST_URL:
        raise InvalidField(
            field, f"the address is longer than {LONGEST_URL} characters", "put what varies into the payload"
        )
    if any(character.isspace() or ord(character) < 33 or character in "\\\x7f" for character in url):
        raise InvalidField(field, "the address contains white space or control characters", "percent-encode them")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidField(field, f"not a web address: {error}", _EXAMPLE) from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidField(field, "only http:// and https:// addresses with a host can be called", _EXAMPLE)
    if parts.username is not None or parts.password is not None:
        raise InvalidField(field, "the address contains credentials", "send them as a header instead")
    if port == 0:
        raise InvalidField(field, "port 0 cannot be called")
    if "[" in parts.netloc:
        _check_ipv6(parts.netloc, parts.hostname, field)
    else:
        _check_host(parts.hostname, field)
    return url


def _check_ipv6(netloc: str, host: str, field: str) -> None:
    """Only the address between the brackets, and a port after them; parsers disagree about anything else."""
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        address = None
    if address is None or address.scope_id is not None or not _BRACKETED.fullmatch(netloc):
        raise InvalidField(field, f"{netloc!r} is not an IPv6 address", "write it like http://[2001:db8::1]:8080/")


def _check_host(host: str, field: str) -> None:
    if not _HOST.fullmatch(host):
        raise InvalidField(field, f"{host!r} is not a host name", "use letters, digits, hyphens and dots (IDNA form)")
    # A name whose last label is a number is an address to every resolver; only the plain dotted form is let through.
    if _NUMERIC_LABEL.fullmatch(host.rstrip(".").rsplit(".", 1)[-1]):
        try:
            ipaddress.IPv4Address(host)
        except ValueError:
            hint = "write IPv4 addresses as four decimal numbers, such as 127.0.0.1"
            raise InvalidField(field, f"{host!r} is an odd spelling of an address", hint) from None
