"""Everything under test and around it: a database, two APIs, two schedulers, four workers, each on its own wire."""

import asyncio
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from chaos.barracks import Barracks
from chaos.ends import ENDS
from chaos.ground import Clocks, Disk, Lacking, Network
from chaos.node import Node
from chaos.patience import until
from chaos.places import APART, NODES, REMOTE, Places
from chaos.proxy import Mode, Proxies
from chaos.records import CROWD, CROWDED, MOST_JOBS, NO_ROOM, RATIONED
from chaos.site import Site
from chaos.watch import Watch
from foliot.kit.postgres import PostgresError, PostgresServer
from foliot.kit.ready import is_ready

ROOT: Final = Path(__file__).parent.parent
TENANTS: Final = ("acme", "globex", CROWDED, RATIONED)
READY: Final = 120.0
"""Seconds within which a process that was started must answer: on a busy machine seven at once take half a minute."""
TAIL: Final = 15
"""Lines of its log that are shown of a process that does not come up."""
_DATABASE: Final = {"shared_buffers": "256MB", "max_wal_size": "1GB", "min_wal_size": "160MB"}


class Topology:
    def __init__(
        self,
        folder: Path,
        *,
        guard: bool = False,
        source: Path | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`source`: where the processes under test find Foliot, if not where the harness does."""
        self.folder = folder
        """Where the records go; what is only needed while it runs lies in `_home`."""
        self._site = Site()
        self._home = Path(tempfile.mkdtemp(prefix="foliot-chaos-home-"))
        self._home.chmod(0o755)  # the database may run under another account
        (folder / "logs").mkdir(parents=True, exist_ok=True)
        self.lacking: dict[str, str] = {}
        """Kinds of fault that cannot be done here, and why."""
        self.nodes: dict[str, Node] = {}
        self.keys: dict[str, str] = {}
        self.disk = self._try("diskFull", lambda: Disk(self._home / "disk.img", self._home / "postgres"))
        self.networks: dict[str, Network] = self._try("partition by network namespace", self._networks) or {}
        self.clocks = self._try("clockJump", lambda: Clocks(self._home))
        self.barracks = self._try("commands", lambda: Barracks(self._home, self._home / "ledger.sock"))
        self.server = PostgresServer(self._home, settings=_DATABASE, log=say)
        self.places = Places(self._site, self.networks, self.server)
        self.watch = Watch(self.server)
        self.proxies = Proxies(self._home / "proxy.sock")
        self.hold_database = asyncio.Event()
        """While set, a database that went down stays down."""
        self._guard = guard
        self._product = {} if source is None else {"PYTHONPATH": str(source)}
        self._master = {"FOLIOT_MASTER_KEY": secrets.token_hex(32)}
        self._say = say
        self._stop = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._helpers: list[asyncio.subprocess.Process] = []

    def _try(self, what: str, make: Callable[[], Any]) -> Any:
        try:
            return make()
        except (Lacking, OSError) as error:
            self.lacking[what] = str(error)
            return None

    def _networks(self) -> dict[str, Network]:
        made: dict[str, Network] = {}
        try:
            for place, name in enumerate(APART):
                made[name] = Network(self._site.number, place)
        except BaseException:
            for each in made.values():
                each.close()
            raise
        return made

    @property
    def mark(self) -> str:
        """Stands in the environment of every process under test here, and of nobody else."""
        return f"CHAOS_LEDGER={self._home / 'ledger.sock'}"

    @property
    def command(self) -> tuple[str, ...]:
        """What does what its payload says, if commands can be run here."""
        return self.barracks.argv if self.barracks else ()

    async def start(self) -> None:
        """Return when every API answers."""
        await asyncio.to_thread(self.server.start)
        await self._inspect_barracks()
        await self._command("migrate")
        for tenant in TENANTS:
            made = await self._command("tenant", "create", tenant, "--role", "operator", "--serve", "*", "--json")
            self.keys[tenant] = msgspec.json.decode(made)["key"]
        await self._command("tenant", "limit", CROWDED, str(CROWD))
        await self._command("tenant", "quota", RATIONED, "--jobs", str(MOST_JOBS))
        await self._command("encryption", "on", RATIONED)
        await self.watch.open_books()
        await self._help("chaos.proxy", self.places.socket, str(self._home / "proxy.sock"), *self.places.wires)
        addresses = [f"--address={host}" for host in self.places.ledger_hosts]
        ports = [str(self.places.ports[name]) for name in ("ledger", "forbidden")]
        where = [str(self.folder), str(self._home / "ledger.sock"), *ports]
        await self._help("chaos.ledger", *where, *addresses, *(["--guard"] if self._guard else []))
        await self._until_there("proxy.sock", "ledger.sock")
        self._tasks.append(asyncio.create_task(self._keep_database()))
        self._tasks.append(asyncio.create_task(self.watch.run(self._stop)))
        for name in NODES:
            self.nodes[name] = node = self._node(name)
            self._tasks.append(asyncio.create_task(node.keep(self._stop)))
        await self.ready()

    async def _inspect_barracks(self) -> None:
        try:
            if self.barracks:
                await self.barracks.inspect()
        except Lacking as error:
            self.lacking["commands"], self.barracks = str(error), None

    async def ready(self) -> None:
        """Wait until every API answers that it is ready; TimeoutError, with its last words, if one never does."""
        for number in (0, 1):
            if not await until(partial(is_ready, *self.places.api(number)), READY, 0.1):
                raise TimeoutError(
                    f"api-{number} was not ready within {READY:.0f} s\n{self._last_words(f'api-{number}')}"
                )

    def _last_words(self, name: str) -> str:
        path = self.folder / "logs" / f"{name}.log"
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        return "\n".join([f"the end of {path}:", *(f"  {line}" for line in lines[-TAIL:] or ["nothing"])])

    def kill(self) -> None:
        """End all nodes at once: nobody wants to know what they would still have done."""
        self._stop.set()
        for node in self.nodes.values():
            node.signal(signal.SIGKILL)

    async def stop(self) -> None:
        """End everything that was started here, in any case."""
        self._stop.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for helper in self._helpers:
            with suppress(ProcessLookupError):
                helper.kill()
            await helper.wait()
        await asyncio.to_thread(self.server.stop, "immediate")
        await asyncio.to_thread(self._clear)

    def _clear(self) -> None:
        with suppress(OSError):
            shutil.copy(self._home / "postgres.log", self.folder / "logs")
        if self.barracks:
            self.barracks.clear()
        for ground in (*self.networks.values(), self.disk):
            if ground is not None:
                ground.close()
        shutil.rmtree((self._home / "postgres").resolve(), ignore_errors=True)
        shutil.rmtree(self._home, ignore_errors=True)
        self._site.close()

    def workers(self, since: float, *nodes: str) -> list[str]:
        """All names of the worker processes that lived in these nodes since then: boot ids, and Foliot's own."""
        found, ids = [], self.watch.worker_ids
        for name in nodes or NODES:
            node = self.nodes[name]
            if node.kind == "worker":
                boots = set(node.boots_since(since))
                found += sorted(boots)
                found += [ids[boot.pid] for boot in node.boots if boot.name in boots and boot.pid in ids]
        return found

    def without_room(self) -> int:
        """Writes of the database that failed so far because the disk was full, by its own word."""
        logs = self._home.glob("postgres.log*")  # one that has grown too large is put aside when the server starts
        return sum(log.read_text(errors="replace").count(NO_ROOM) for log in logs)

    def names_of(self, boot: str) -> list[str]:
        """Its boot id, and Foliot's own name of the worker that it was."""
        pids = [each.pid for each in self.nodes[boot.partition(".")[0]].boots if each.name == boot]
        return [boot, *(self.watch.worker_ids[pid] for pid in pids if pid in self.watch.worker_ids)]

    def _node(self, name: str) -> Node:
        kind, _, number = name.partition("-")
        command = [sys.executable, "-m", "foliot", kind, *(["chaos.app:worker"] if kind == "worker" else [])]
        host, port = self.places.api(int(number)) if kind == "api" else ("127.0.0.1", 0)
        environment = {
            "FOLIOT_HOME": str(self._home / "nowhere"),
            **(self._through_gateway() if name == REMOTE else self._at_database(name)),
            "FOLIOT_HOST": host,
            "FOLIOT_PORT": str(port),
            "FOLIOT_SUPERVISED": "1",
            "FOLIOT_HTTP_ALLOW": "*",
            "CHAOS_LEDGER": str(self._home / "ledger.sock"),
            **self._product,
        }
        if self.clocks:
            environment |= self.clocks.environment(name)
        if kind == "worker":  # an API would not even take a run for it
            environment["FOLIOT_HTTP_DENY"] = f"*:{self.places.ports['forbidden']}"
        if self.barracks and kind == "worker":
            environment |= self.barracks.environment()
        if name in self.networks:
            command = self.networks[name].inside(command)
        log, ends = self.folder / "logs" / f"{name}.log", self.folder / ENDS
        return Node(name, command, environment, log, folder=ROOT, ends=ends)

    def _at_database(self, name: str) -> dict[str, str]:
        return {"FOLIOT_DATABASE_URL": self.places.dsn(name), **self._master}

    def _through_gateway(self) -> dict[str, str]:
        return {"FOLIOT_URL": self.places.gateway, "FOLIOT_KEY": self.keys[TENANTS[0]], "CHAOS_REMOTE": "1"}

    async def weigh(self, tenant: str, weight: int) -> None:
        """RuntimeError if the database does not answer."""
        await self._command("tenant", "weight", tenant, str(weight))

    async def _command(self, *arguments: str) -> bytes:
        own = {"FOLIOT_DATABASE_URL": self.server.dsn, **self._master, **self._product}
        environment: Mapping[str, str] = {**os.environ, **own}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "foliot",
            *arguments,
            env=environment,
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await process.communicate()
        if process.returncode:
            raise RuntimeError(f"foliot {' '.join(arguments)} ended with status {process.returncode}")
        return output

    async def _help(self, module: str, *arguments: str) -> None:
        log = (self.folder / "logs" / f"{module}.log").open("ab")
        with log:
            self._helpers.append(
                await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    module,
                    *arguments,
                    cwd=ROOT,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                )
            )

    async def _until_there(self, *names: str) -> None:
        if not await until(lambda: all((self._home / name).exists() for name in names), READY):
            words = map(self._last_words, ("chaos.proxy", "chaos.ledger"))
            raise TimeoutError("\n".join([f"a helper did not start within {READY:.0f} s", *words]))

    async def _keep_database(self) -> None:
        while not self._stop.is_set():
            if self.server.pid is None and not self.hold_database.is_set():
                try:
                    await asyncio.to_thread(self.server.start)
                except PostgresError as error:
                    self._say(f"the database does not start: {str(error).splitlines()[-1]}")
                    await asyncio.sleep(0.5)
            await asyncio.sleep(0.05)

    async def heal(self) -> None:
        """Undo whatever the nemesis left: wires, clocks, disk, network, stopped processes, the database."""
        self.hold_database.clear()
        if self.disk:
            self.disk.free()
        for network in self.networks.values():
            network.heal()
        for name, node in self.nodes.items():
            await self.proxies.set(name, Mode.PASS)
            if self.clocks:
                self.clocks.set(name, 0)
            if node.pid:
                os.kill(node.pid, signal.SIGCONT)
        await until(lambda: self.server.pid is not None, 60)
