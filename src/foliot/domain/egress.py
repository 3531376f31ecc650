"""Where handlers may call to: what an operator allows, less what an operator denies."""

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_network
from typing import Final, NamedTuple, Self
from urllib.parse import urlsplit

from foliot.domain.address import Address, Kind, Network, carried, kind_of, parse_address, plain
from foliot.domain.errors import InvalidField

ALLOW: Final = "FOLIOT_HTTP_ALLOW"
DENY: Final = "FOLIOT_HTTP_DENY"
USUAL: Final = ("public",)
DEVELOPING: Final = ("public", "loopback")
"""What `foliot up` allows: the machine's own services, so that a first target can be tried out."""
_ORIGIN: Final = re.compile(r"https?://[^/?#]*", re.IGNORECASE)
_EVERY_PORT: Final = range(65_536)
_PORTS: Final = re.compile(r"(.+):(\d{1,5})(?:-(\d{1,5}))?", re.ASCII)
_NAME: Final = re.compile(r"(\*\.)?[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*\.?")
_BY_NAME: Final = frozenset({Kind.PUBLIC, Kind.PRIVATE, Kind.SHARED})
"""Where a name that is allowed may lead. Whoever can change it could otherwise lead it to the worker itself."""
_PHRASES: Final = {
    Kind.METADATA: "the address of a cloud's metadata",
    Kind.UNSPECIFIED: "an unspecified address",
    Kind.LINK_LOCAL: "a link-local address",
    Kind.TUNNEL: "an IPv4 address inside an IPv6 one",
}
_HINT: Final = (
    "public, private, shared, loopback, link-local, metadata, an address or network, a name, *.suffix or *,"
    " each with :PORT or :FIRST-LAST after it if only these are meant"
)


class Refusal(NamedTuple):
    """Why a target may not be called, and what would change that."""

    message: str
    hint: str

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})"


class Rule(NamedTuple):
    """One entry of a list. Of `kind`, `network` and `name` one is set; if none is, it speaks of every target."""

    text: str
    ports: range = _EVERY_PORT
    kind: Kind | None = None
    network: Network | None = None
    name: str | None = None

    @classmethod
    def parse(cls, text: str, field: str) -> Self:
        what, ports = _split(text.strip().lower(), field)
        if what == "*":
            return cls(text, ports)
        if what in {kind.value for kind in Kind}:
            return cls(text, ports, kind=Kind(what))
        try:
            return cls(text, ports, network=ip_network(what.removeprefix("[").removesuffix("]")))
        except ValueError as error:
            if "/" in what:
                raise InvalidField(field, f"{text!r}: {error}", "a network is written like 10.0.0.0/8") from None
        # What ends in a number is an address to every resolver, and this one is spelled oddly.
        if not _NAME.fullmatch(what) or what.rstrip(".").rpartition(".")[2].isdigit():
            raise InvalidField(field, f"{text!r} is no target", _HINT)
        return cls(text, ports, name=what.rstrip("."))

    def names(self, host: str, port: int) -> bool:
        """Whether it speaks of this host by its name."""
        if self.name is None or port not in self.ports:
            return False
        return host.endswith(self.name[1:]) if self.name.startswith("*.") else host == self.name

    def covers(self, address: Address, port: int) -> bool:
        """Whether it speaks of this address."""
        if self.name is not None or port not in self.ports:
            return False
        if self.kind is not None:
            return kind_of(address) is self.kind
        return self.network is None or (address.version == self.network.version and address in self.network)

    @property
    def is_one_address(self) -> bool:
        return self.network is not None and self.network.num_addresses == 1


class Egress:
    """What may be called. The deny list goes before the allow list; what neither speaks of is refused."""

    def __init__(self, allow: Iterable[Rule], deny: Iterable[Rule] = ()) -> None:
        self.allow = tuple(allow)
        self.deny = tuple(deny)
        # Few targets are called often, and a verdict is 40 times as dear to find as to remember.
        self._remembered = lru_cache(4_096)(self._refusal)
        self._of_origin = lru_cache(4_096)(self._refusal_of_origin)

    @classmethod
    def parse(cls, allow: Iterable[str] = USUAL, deny: Iterable[str] = ()) -> Self:
        """Of entries as they stand in the settings, or InvalidField."""
        return cls([Rule.parse(text, ALLOW) for text in allow], [Rule.parse(text, DENY) for text in deny])

    def refusal(self, host: str, port: int, address: Address | None = None) -> Refusal | None:
        """Why `host` may not be called, at `address` if that is known by now; none if it may.

        Without the address only what is certain already is refused: a literal address, `localhost`, a denied name.
        """
        return self._remembered(host, port, address)

    def refusal_of_url(self, url: str) -> Refusal | None:
        """As far as it can be told without asking a name server, of an address that `check_url` let through."""
        found = _ORIGIN.match(url)
        return None if found is None else self._of_origin(found[0])

    def reason(self, host: str, port: int, address: str | None = None) -> str | None:
        """The refusal in a sentence; what is no address is refused as one."""
        parsed = None if address is None else parse_address(address)
        if address is not None and parsed is None:
            return f"{host}, port {port}, leads to {address!r}, which is no address"
        found = self.refusal(host, port, parsed)
        return None if found is None else str(found)

    def _refusal(self, host: str, port: int, address: Address | None) -> Refusal | None:
        name = host.rstrip(".").lower()
        literal = parse_address(name)
        if address is None:
            address = literal or (_LOCALHOST if name == "localhost" or name.endswith(".localhost") else None)
        if self._denies(name, port, address):
            hint = f"an operator takes it off {DENY} if it shall be called"
            return Refusal(f"{host}, port {port}, is among the targets that this deployment denies", hint)
        if address is None or self._allows(None if literal else name, port, address):
            return None
        kind = kind_of(address)
        leads = "is" if literal or address is _LOCALHOST else "leads to"
        return Refusal(
            f"{host}, port {port}, {leads} {_PHRASES.get(kind, f'a {kind} address')}, which handlers may not call",
            f"an operator adds {name if kind in _BY_NAME else kind} to {ALLOW} if it shall be called",
        )

    def _refusal_of_origin(self, origin: str) -> Refusal | None:
        parts = urlsplit(origin)
        return self.refusal(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))

    def _denies(self, name: str, port: int, address: Address | None) -> bool:
        faces = () if address is None else carried(address)
        return any(rule.names(name, port) or any(rule.covers(each, port) for each in faces) for rule in self.deny)

    def _allows(self, name: str | None, port: int, address: Address) -> bool:
        where, kind = plain(address), kind_of(address)
        for rule in self.allow:
            if name is not None and kind in _BY_NAME and rule.names(name, port):
                return True
            # A network that happens to hold the metadata of a cloud was hardly meant to.
            is_meant = kind is not Kind.METADATA or rule.kind is kind or rule.is_one_address
            if is_meant and (rule.covers(address, port) or rule.covers(where, port)):
                return True
        return False

    def __str__(self) -> str:
        denied = f"; never {', '.join(rule.text for rule in self.deny)}" if self.deny else ""
        return (", ".join(rule.text for rule in self.allow) or "nothing") + denied


def _split(text: str, field: str) -> tuple[str, range]:
    """What a rule speaks of, and its ports. An IPv6 address with ports is in brackets."""
    if text.count(":") > 1 and not text.startswith("["):
        return text, _EVERY_PORT
    if not (found := _PORTS.fullmatch(text)):
        return text, _EVERY_PORT
    first, last = int(found[2]), int(found[3] or found[2])
    if not 0 < first <= last < 65_536:
        raise InvalidField(field, f"{text!r}: ports go from 1 to 65535, the lower one first", _HINT)
    return found[1], range(first, last + 1)


EVERYWHERE: Final = Egress.parse(["*", "metadata"])
"""No guard: for whoever only passes addresses on."""
_LOCALHOST: Final = parse_address("127.0.0.1")
