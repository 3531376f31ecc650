"""Each scheduler's own wire to the database, which can be cut without anybody being told."""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from chaos.patience import until
from chaos.proxy import Mode, Proxies
from chaos.site import free_ports, socket_of
from chaos.topology import ROOT

PATIENCE: Final = 30.0


class Wires:
    def __init__(self, dsn: str, ports: dict[str, int], control: Path) -> None:
        self._account = dsn.partition("@")[0]
        self._ports = ports
        self._proxies = Proxies(control)

    def dsn(self, node: str) -> str:
        """The database, by this one's wire."""
        return f"{self._account}@127.0.0.1:{self._ports[node]}/foliot?sslmode=disable"

    async def cut(self, node: str) -> None:
        """Nothing arrives any more, either way, and nothing says so."""
        await self._proxies.set(node, Mode.DARK)

    async def mend(self, node: str) -> None:
        await self._proxies.set(node, Mode.PASS)


@asynccontextmanager
async def wires(dsn: str, home: Path, nodes: Sequence[str]) -> AsyncIterator[Wires]:
    """Between these nodes and the server that listens at a socket."""
    ports = dict(zip(nodes, free_ports(len(nodes)), strict=True))
    control = home / "proxy.sock"
    ends = [f"{name}=127.0.0.1:{port}" for name, port in ports.items()]
    command = [sys.executable, "-m", "chaos.proxy", socket_of(dsn), str(control), *ends]
    proxy = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=asyncio.subprocess.PIPE)
    try:

        async def is_there() -> bool:
            return control.exists()

        if not await until(is_there, PATIENCE, 0.05):
            raise TimeoutError(f"the proxy was not there within {PATIENCE:.0f} s")
        yield Wires(dsn, ports, control)
    finally:
        proxy.kill()
        await proxy.wait()
