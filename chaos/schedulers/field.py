"""The processes of the proof: a database, three schedulers, jobs that fire every second, and who hurts them."""

import asyncio
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from chaos.ground import Clocks, Lacking
from chaos.node import Node
from chaos.patience import until
from chaos.schedulers.judge import PROMISED, SECOND, Job, Missed, Run, Spell
from chaos.schedulers.wires import Wires, wires
from chaos.topology import ROOT
from foliot.domain.ids import instant_of
from foliot.kit.postgres import PostgresServer
from foliot.services.control import Control
from foliot.services.tenants import Tenants
from foliot.store.database import Database, Row
from foliot.store.migrate import migrate
from foliot.store.specs import SpecBook
from foliot.store.tenants import find_tenant
from foliot.wire.jobs import JobBody, draft_of

NODES: Final = ("scheduler-0", "scheduler-1", "scheduler-2")
CROWD: Final = 4
"""One job in so many shares one schedule with all others of its kind; the rest are on schedules of a few."""
SMALL: Final = 3
BOOT: Final = 8.0
"""Seconds that a process takes to be of use after its predecessor's end, on a machine that is busy."""
RECONNECTED: Final = 3.0
"""Seconds that a process takes to have its connections again when its wire has been mended."""
PATIENCE: Final = 90.0
JUMP: Final = 40
"""Seconds by which the database's clock jumps: longer than what still counts as on time."""
JUMPS: Final = ((0.2, JUMP), (0.6, -JUMP))
"""After which share of the time it does, and where to."""
WRONG: Final = 8.0
"""Seconds that it then stays wrong, at most."""
WAYS: Final = ("kill", "kill", "stop", "stop", "cut", "leave")
_DATABASE: Final = "postgres"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def micros(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)


class Field:
    def __init__(
        self, database: Database, tenant: int, nodes: list[Node], wires: Wires, clocks: Clocks | None = None
    ) -> None:
        self._database = database
        self._tenant = tenant
        self.nodes = nodes
        self._wires = wires
        self._clocks = clocks
        self.spells: list[Spell] = []
        self.jumps: list[Spell] = []
        """When the database's clock was wrong, and until everything was fired that lay in between."""
        self.hurts: Counter[str] = Counter()
        self._phases: dict[int, int] = {}

    async def plant(self, count: int) -> None:
        """Create jobs that fire every second, each kind in its own moment of it."""
        control = Control(self._database, SpecBook(self._database), lambda _: None)
        begin = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=3)
        anchors = [begin] * (count // CROWD)
        while len(anchors) < count:
            place = timedelta(milliseconds=1 + len(anchors) * 997 % 998)
            anchors += [begin + place] * min(SMALL, count - len(anchors))
        common = {"name": "tick", "handler": "noop", "every": "PT1S", "overlap": "allow"}
        bodies = [msgspec.convert({**common, "scheduleAt": at.isoformat()}, JobBody) for at in anchors]
        made = await control.create_batch(self._tenant, list(map(draft_of, bodies)), render=msgspec.json.encode)
        numbers = msgspec.json.decode(made, type=list[int])
        self._phases = {job: micros(at) for job, at in zip(numbers, anchors, strict=True)}

    async def torment(self, seconds: float, dice: random.Random, say: Callable[[str], None]) -> None:
        """Hurt one of them every few seconds, and set the database's clock; at the end all are well again."""
        ends = time.monotonic() + seconds
        async with asyncio.TaskGroup() as group:
            if self._clocks is not None:
                group.create_task(self._jump(self._clocks, seconds, say))
            while (left := ends - time.monotonic()) > 0:
                await asyncio.sleep(min(dice.uniform(1.0, 4.0), left))
                node, how = dice.choice(self.nodes), dice.choice(WAYS)
                self.hurts[how] += 1
                say(f"{how} {node.name}")
                lasting = min(dice.uniform(1.0, 12.0), max(left, 0.1))
                match how:
                    case "stop":
                        group.create_task(self._stop(node, lasting))
                    case "cut":
                        group.create_task(self._cut(node, lasting))
                    case _:
                        self._spell(node, BOOT)
                        node.signal(signal.SIGKILL if how == "kill" else signal.SIGTERM)

    async def _jump(self, clocks: Clocks, seconds: float, say: Callable[[str], None]) -> None:
        """Each jump is two: there and back.

        Forward, what lies in between is late at once. Back, it has been fired already; and what a scheduler that falls
        now had looked after is its own for so much longer, so nobody is well before that is over.
        """
        began, wrong = time.monotonic(), min(WRONG, seconds / 6)
        for share, jump in JUMPS:
            await asyncio.sleep(max(0.0, began + share * seconds - time.monotonic()))
            self.hurts["jump"] += 1
            say(f"the database's clock jumps by {jump:+d} s")
            for node in self.nodes:
                self._spell(node, wrong + max(0, jump) + PROMISED / SECOND)
            self.jumps.append(self.spells[-1]._replace(node=_DATABASE))
            clocks.set(_DATABASE, jump)
            try:
                await asyncio.sleep(wrong)
            finally:
                clocks.set(_DATABASE, 0)

    async def _stop(self, node: Node, seconds: float) -> None:
        self._spell(node, seconds + 1)
        pid = node.signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            with suppress(ProcessLookupError):
                if pid:
                    os.kill(pid, signal.SIGCONT)

    async def _cut(self, node: Node, seconds: float) -> None:
        self._spell(node, seconds + RECONNECTED)
        await self._wires.cut(node.name)
        try:
            await asyncio.sleep(seconds)
        finally:
            await self._wires.mend(node.name)

    def _spell(self, node: Node, seconds: float) -> None:
        now = round(time.time() * SECOND)
        self.spells.append(Spell(node.name, now, now + round(seconds * SECOND)))

    async def come_to_rest(self) -> int:
        """Let everything up to this moment be fired; the moment."""
        now = (await self._ask("SELECT clock_timestamp() AS now"))[0]["now"]
        query = (
            "SELECT (SELECT min(next_at) FROM schedule) > $1 AND NOT EXISTS (SELECT FROM firing"
            " WHERE closed_at IS NULL AND at <= $1) AS quiet"
        )

        async def is_quiet() -> bool:
            return bool((await self._ask(query, now))[0]["quiet"])

        if not await until(is_quiet, PATIENCE, 0.2):
            raise TimeoutError(f"after {PATIENCE:.0f} s not everything had been fired that should have")
        return micros(now)

    async def jobs(self) -> list[Job]:
        rows = await self._ask("SELECT job, schedule, after FROM subscription")
        return [Job(row["job"], row["schedule"], self._phases[row["job"]], micros(row["after"])) for row in rows]

    async def runs(self) -> list[Run]:
        """All that schedules ever made; a run has one row here, or in the history one per attempt."""
        rows = await self._ask(
            "SELECT id, job, scheduled_at FROM run WHERE origin = 0"
            " UNION SELECT run, job, scheduled_at FROM history WHERE state <> 8"
        )
        return [Run(row["job"], micros(row["scheduled_at"]), micros(instant_of(row["id"]))) for row in rows]

    async def missed(self) -> list[Missed]:
        rows = await self._ask("SELECT schedule, at, through FROM firing WHERE missed OR passed_over > 0")
        return [Missed(row["schedule"], micros(row["at"]), micros(row["through"])) for row in rows]

    async def takeovers(self) -> int:
        """How often a shard got an owner."""
        return int((await self._ask("SELECT sum(epoch)::bigint AS epochs FROM shard"))[0]["epochs"])

    async def is_shared_out(self) -> bool:
        query = "SELECT count(DISTINCT owner) = $1 AND count(owner) = 256 AS shared FROM shard"
        return bool((await self._ask(query, len(self.nodes)))[0]["shared"])

    async def _ask(self, query: str, *arguments: object) -> list[Row]:
        async with self._database.connection() as connection:
            return await connection.fetch(query, *arguments)  # type: ignore[no-any-return]


def _home() -> Path:
    home = Path(tempfile.mkdtemp(prefix="foliot-schedulers-"))
    home.chmod(0o755)  # the database may run under another account
    return home


def _clocks(home: Path) -> Clocks | None:
    try:
        return Clocks(home)
    except Lacking:
        return None


def _node(name: str, dsn: str, home: Path, folder: Path) -> Node:
    environment = {"FOLIOT_HOME": str(home / "nowhere"), "FOLIOT_DATABASE_URL": dsn}
    environment |= {"FOLIOT_SUPERVISED": "1"}  # they end with us
    command = [sys.executable, "-m", "foliot", "scheduler"]
    return Node(name, command, environment, folder / f"{name}.log", folder=ROOT)


@asynccontextmanager
async def _kept(nodes: list[Node]) -> AsyncIterator[None]:
    stop = asyncio.Event()
    keeping = [asyncio.create_task(node.keep(stop)) for node in nodes]
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(*keeping, return_exceptions=True)


@asynccontextmanager
async def field(folder: Path) -> AsyncIterator[Field]:
    """Everything up and sharing the shards; everything gone when the block ends."""
    home = _home()
    clocks = _clocks(home)
    server = PostgresServer(home, variables=clocks.environment(_DATABASE) if clocks is not None else None)
    try:
        await asyncio.to_thread(server.start)
        await migrate(server.dsn)
        database = await Database.open(server.dsn, size=4)
        try:
            await Tenants(database).create("acme")
            tenant = await find_tenant(database, "acme")
            async with wires(server.dsn, home, NODES) as drawn:
                nodes = [_node(name, drawn.dsn(name), home, folder) for name in NODES]
                ready = Field(database, tenant or 0, nodes, drawn, clocks)
                async with _kept(nodes):
                    if not await until(ready.is_shared_out, PATIENCE, 0.1):
                        raise TimeoutError(f"the schedulers did not share out the shards within {PATIENCE:.0f} s")
                    yield ready
        finally:
            await database.close()
    finally:
        await asyncio.to_thread(server.stop, "immediate")
        shutil.rmtree((home / "postgres").resolve(), ignore_errors=True)
        shutil.rmtree(home, ignore_errors=True)
