"""Who is under test, and who listens where: the nodes, and the addresses by which they reach each other."""

from collections.abc import Mapping
from typing import Final

from chaos.ground import Network
from chaos.site import Site, free_ports, socket_of
from foliot.kit.postgres import PostgresServer

NODES: Final = ("api-0", "api-1", "scheduler-0", "scheduler-1", "worker-0", "worker-1", "worker-2", "worker-3")
CLIENT: Final = "client"
"""The wire to the database of those who hand in runs inside their own transactions."""
ALONE: Final = "worker-2"
APART: Final = (ALONE, "scheduler-0", "scheduler-1", "api-0")
"""The nodes that live in networks of their own, where there can be any."""
REMOTE: Final = "worker-3"
"""The worker that has no database, and comes through the gateway of an API."""
GATEWAY: Final = "api-1"
"""That API: what happens to it may cost the worker its lease."""


class Places:
    """Every node has a wire of its own to the database, or to the gateway, which a proxy holds."""

    def __init__(self, site: Site, networks: Mapping[str, Network], server: PostgresServer) -> None:
        self._networks = networks
        self._server = server
        names = (*NODES, CLIENT, "ledger", "forbidden", "http-0", "http-1")
        self.ports = dict(zip(names, free_ports(len(names), site.ports), strict=True))

    @property
    def urls(self) -> list[str]:
        """Of the APIs."""
        return [f"http://{host}:{port}" for host, port in map(self.api, (0, 1))]

    def api(self, number: int) -> tuple[str, int]:
        """Where that API listens."""
        network = self._networks.get(f"api-{number}")
        return "127.0.0.1" if network is None else network.own, self.ports[f"http-{number}"]

    @property
    def ledger(self) -> str:
        """Where handlers call it: an address that all nodes reach."""
        return self._ledger_at("ledger")

    @property
    def forbidden(self) -> str:
        """Where the ledger listens as well, and no handler may call."""
        return self._ledger_at("forbidden")

    @property
    def ledger_hosts(self) -> list[str]:
        return ["127.0.0.1", *([self._networks[ALONE].ledger] if self._networks else [])]

    @property
    def gateway(self) -> str:
        """The wire by which the remote worker reaches it."""
        return f"http://127.0.0.1:{self.ports[REMOTE]}"

    @property
    def socket(self) -> str:
        """Where the database itself listens."""
        return socket_of(self._server.dsn)

    def dsn(self, name: str) -> str:
        """The database, by this one's wire."""
        account = self._server.dsn.partition("@")[0]
        return f"{account}@{self._address(name)}:{self.ports[name]}/foliot?sslmode=disable"

    @property
    def wires(self) -> list[str]:
        """All of them, as the proxy is told: a name, where it is offered, and whereto unless it is the database."""
        return [f"{name}={self._address(name)}:{self.ports[name]}{self._beyond(name)}" for name in (*NODES, CLIENT)]

    def _beyond(self, name: str) -> str:
        return f">127.0.0.1:{self.ports[GATEWAY.replace('api', 'http')]}" if name == REMOTE else ""

    def _address(self, name: str) -> str:
        return self._networks[name].database if name in self._networks else "127.0.0.1"

    def _ledger_at(self, port: str) -> str:
        return f"http://{self.ledger_hosts[-1]}:{self.ports[port]}"
