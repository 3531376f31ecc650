"""Every single thing that can be done to the system under test, each undone by itself and logged."""

import asyncio
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from chaos.family import captives, freeze, thaw
from chaos.node import Node
from chaos.patience import until
from chaos.places import GATEWAY, REMOTE
from chaos.poison import Poisoner
from chaos.proxy import Mode
from chaos.records import Fault
from chaos.rush import PLENTY, Rusher
from chaos.topology import Topology
from chaos.watch import TROUBLE

HOUR: Final = 3_600
CUT_WAIT: Final = 12.0
"""Seconds that an armed cut waits for a commit to come by."""
CUTS: Final = 6
"""Commits of one API that are cut within that time."""
UP_AGAIN: Final = 60.0
SETTLE: Final = 2.0
"""Seconds that an API must have been ready before the other one is restarted, as every roll-out has it."""
OUTLIVED: Final = 3.0
"""Seconds more for which a supervisor stands still whose handlers must be gone: whoever is not is seen to live."""
BEGINS: Final = 30.0
"""Seconds within which some worker begins something in a process of its own."""
QUARANTINED: Final = 120.0
"""Seconds within which a run that kills its workers is in quarantine: three leases, and what a busy machine takes."""
FALL: Final = 0.5
FROZEN: Final = {"scheduler": (8.0, 14.0), "api": (11.0, 15.0)}
"""Seconds that whoever is no worker stands still, at least and at most. After 5 s a scheduler's shards are another's,
and the database has broken off what it had begun: it goes on with what is its own no more. After 10 s a client has left
and asks the other API: the first one then does what nobody waits for."""
OUTAGE: Final = (18.0, 22.0)
"""Seconds without a database: every lease ends, and nobody has died."""
RESTART: Final = (0.2, 3.0)
LONG: Final = 20.0
"""Seconds of a stand-still: longer than a lease, whoever it is."""
LONGEST: Final = 36.0
"""Seconds that a worker is kept from the database at most: a lease, and another if the database was just restarted."""
BY_THEMSELVES: Final = frozenset({"rollingRestart", "misfire", "stopSupervisor", "poison", "rush"})
"""Whoever these strike, they take turns by themselves."""

Deed = Callable[[str, random.Random], Awaitable[None]]


class Deeds:
    """What to do is named `kind`, to whom `target`; `chance` decides about lengths. One deed per target at a time."""

    def __init__(
        self,
        topology: Topology,
        log: Callable[[Fault], None],
        poisoner: Poisoner | None = None,
        rusher: Rusher | None = None,
    ) -> None:
        self._topology = topology
        self._poisoner = poisoner
        self._rusher = rusher
        self._log = log
        self._turn = {name: asyncio.Lock() for name in (*topology.nodes, "postgres")}
        self._by_kind: dict[str, Deed] = {
            "kill": self._kill,
            "stop": self._stop,
            "stopSupervisor": self._stop_supervisor,
            "postgresKill": partial(self._postgres, "postgresKill", how=signal.SIGKILL),
            "postgresStop": partial(self._postgres, "postgresStop", how=signal.SIGQUIT),
            **{mode.value: partial(self._wire, mode) for mode in (Mode.DELAY, Mode.STALL, Mode.HALF_OPEN, Mode.RESET)},
            **{mode.value: partial(self._cut, mode) for mode in (Mode.CUT_BEFORE, Mode.CUT_AFTER)},
            "outage": partial(self._postgres, "outage", how=signal.SIGQUIT, away=OUTAGE),
            "diskFull": self._disk_full,
            "clockJump": self._clock_jump,
            "partition": self._partition,
            "rollingRestart": self._rolling_restart,
            "misfire": self._misfire,
            "standStill": partial(self._stop, length=LONG),
            "poison": self._poison,
            "rush": self._rush,
        }

    async def do(self, kind: str, target: str, chance: random.Random) -> None:
        if kind in BY_THEMSELVES:
            await self._by_kind[kind](target, chance)
            return
        async with self._turn[target]:
            await self._by_kind[kind](target, chance)

    def _note(self, kind: str, target: str, began: float, ended: float | None = None, **more: Any) -> None:
        nodes = [target] if target in self._topology.nodes else []
        nodes += [REMOTE] if target == GATEWAY else []
        workers = self._topology.workers(began, *nodes)
        self._log(Fault(kind=kind, target=target, began=began, ended=ended or time.time(), workers=workers, **more))

    async def _at_work(self, node: Node) -> None:
        """Whoever holds nothing has nothing to lose: strike a worker when it has taken something."""
        if node.kind == "worker":
            await until(lambda: self._topology.watch.at_work(node.pid), UP_AGAIN / 4)

    async def _until_overtaken(self, node: Node, chance: random.Random) -> bool:
        """Return when everything that the worker held was taken from it, and others have had time to begin it.

        Whether that came to pass, and there was anything to take.
        """
        pid, watch, held = node.pid, self._topology.watch, False

        def overtaken() -> bool:
            nonlocal held
            if watch.overtaken(pid):
                return True
            held = watch.holds(pid)
            return False

        taken = await until(overtaken, LONGEST)
        await asyncio.sleep(chance.uniform(1.0, 3.0))
        return taken and held

    async def _kill(self, target: str, _: random.Random) -> None:
        node = self._topology.nodes[target]
        await self._at_work(node)
        began, boot = time.time(), node.boot
        pid = node.signal(signal.SIGKILL)
        if pid:
            self._note("kill", target, began, pid=pid, detail=boot)
            await node.until_reborn(boot, UP_AGAIN)

    async def _stop(self, target: str, chance: random.Random, length: float | None = None) -> None:
        """With all that it has started, as when a machine is suspended."""
        node = self._topology.nodes[target]
        await self._at_work(node)
        began, pid = time.time(), node.pid
        if not pid:
            return
        frozen, bit = freeze(pid), True
        try:
            # A worker stands still until others have what it held: its handlers end too late.
            if length is None and node.kind == "worker":
                bit = await self._until_overtaken(node, chance)
            else:
                await asyncio.sleep(length or chance.uniform(*FROZEN[node.kind]))
                bit = node.kind != "worker" or self._topology.watch.overtaken(pid)
        finally:
            thaw(frozen)
        self._note("stop", target, began, pid=pid, idle=not bit)

    async def _stop_supervisor(self, target: str, chance: random.Random) -> None:
        """Stop whichever worker, of these, next begins something in a process of its own, and not that process.

        When an attempt takes its process, the worker starts another one for the next: that shows.
        """
        topology = self._topology
        workers = [node for node in self._workers() if target == "workers" or node.name in target.split(",")]
        known = {node.boot: captives(node.boot, topology.mark) for node in workers}
        struck: list[Node] = []

        def begun() -> bool:
            for node in workers:
                now = captives(node.boot, topology.mark)
                if known.get(node.boot) and now - known[node.boot]:
                    struck.append(node)
                known[node.boot] = now
            return bool(struck)

        if not await until(begun, BEGINS, 0.25):
            return
        node = struck[0]
        async with self._turn[node.name]:
            began, pid = time.time(), node.signal(signal.SIGSTOP)
            if not pid:
                return
            try:
                bit = await self._until_overtaken(node, chance)
                await asyncio.sleep(OUTLIVED)
            finally:
                if node.pid == pid:
                    os.kill(pid, signal.SIGCONT)
            self._note("stopSupervisor", node.name, began, pid=pid, idle=not bit)

    def _workers(self) -> list[Node]:
        return [node for node in self._topology.nodes.values() if node.kind == "worker"]

    async def _misfire(self, _: str, chance: random.Random) -> None:
        """Nobody fires for longer than what still counts as on time."""
        length = chance.uniform(38.0, 45.0)

        async def stop(name: str) -> None:
            async with self._turn[name]:
                await self._stop(name, chance, length)

        async with asyncio.TaskGroup() as group:
            for name, node in self._topology.nodes.items():
                if node.kind == "scheduler":
                    group.create_task(stop(name))

    async def _postgres(
        self, kind: str, _: str, chance: random.Random, how: signal.Signals, away: tuple[float, float] = RESTART
    ) -> None:
        """End the server, and let it start again after so many seconds; it is over when it accepts again."""
        topology, began = self._topology, time.time()
        pid = topology.server.pid
        if pid is None:
            return
        topology.hold_database.set()
        os.kill(pid, how)
        ended = await until(lambda: topology.server.pid is None, UP_AGAIN)
        await asyncio.sleep(chance.uniform(*away))
        topology.hold_database.clear()
        await self.accepting()
        self._note(kind, "postgres", began, pid=pid, detail=how.name, idle=not ended)

    async def accepting(self) -> None:
        """Return when the database takes connections."""

        async def accepts() -> bool:
            with suppress(*TROUBLE):
                await (await self._topology.watch.connect()).close()
                return True
            return False

        await until(accepts, UP_AGAIN)

    async def _wire(self, mode: Mode, target: str, chance: random.Random) -> None:
        node, proxies = self._topology.nodes[target], self._topology.proxies
        if mode is Mode.STALL:
            await self._at_work(node)
        began = time.time()
        late = round(chance.uniform(0.05, 0.4), 2) if mode is Mode.DELAY else 0.0
        # A busy worker mostly waits for an answer: a stall at any moment would hold up that, and never a write.
        order = Mode.HOLD if mode is Mode.STALL and node.kind == "worker" and target != REMOTE else mode
        pid, held = node.pid, (await proxies.set(target, order, late)).held[target]
        bit = True
        if mode is Mode.STALL and node.kind == "worker":  # what it wrote meanwhile arrives when others have its runs
            bit = await self._until_overtaken(node, chance)
        elif mode is not Mode.RESET:
            await asyncio.sleep(chance.uniform(5.0, 9.0))
        overtaken = self._topology.watch.overtaken(pid)
        await proxies.set(target, Mode.PASS)
        ended = time.time()
        await asyncio.sleep(0.5)  # what was held up arrives
        arrived = (await proxies.tally()).held[target] - held if overtaken else 0
        detail = f"{late} s each way" if late else ""
        self._note(mode, target, began, ended=ended, detail=detail, late=arrived, idle=not bit)

    async def _cut(self, mode: Mode, target: str, __: random.Random) -> None:
        began, proxies, cuts = time.time(), self._topology.proxies, 0
        # Some of what an API commits has no key: several are cut, so that among them is one that is asked for again.
        for _ in range(CUTS if self._topology.nodes[target].kind == "api" else 1):
            cuts += await self._cut_once(mode, target, began + CUT_WAIT - time.time())
        await proxies.set(target, Mode.PASS)
        if cuts:
            self._note(mode, target, began, detail=f"{cuts} cut")

    async def _cut_once(self, mode: Mode, target: str, patience: float) -> bool:
        proxies = self._topology.proxies
        before = (await proxies.set(target, mode)).cuts[target]

        async def has_cut() -> bool:
            return (await proxies.tally()).cuts[target] > before

        return await until(has_cut, patience)

    async def _disk_full(self, _: str, chance: random.Random) -> None:
        topology, began = self._topology, time.time()
        if topology.disk is None:
            return
        before = await asyncio.to_thread(topology.without_room)
        try:
            taken = await asyncio.to_thread(topology.disk.fill)
            await asyncio.sleep(chance.uniform(5.0, 8.0))
        finally:
            await asyncio.to_thread(topology.disk.free)
        await self.accepting()
        refused = await asyncio.to_thread(topology.without_room) - before
        self._note("diskFull", "postgres", began, detail=f"{taken >> 20} MiB taken", idle=refused <= 0)

    async def _clock_jump(self, target: str, chance: random.Random) -> None:
        clocks, began = self._topology.clocks, time.time()
        if clocks is None:
            return
        jump = chance.choice((HOUR, -HOUR))
        clocks.set(target, jump)
        try:
            await asyncio.sleep(chance.uniform(12.0, 18.0))
        finally:
            clocks.set(target, 0)
        self._note("clockJump", target, began, detail=f"{jump:+d} s")

    async def _partition(self, target: str, chance: random.Random) -> None:
        topology, node = self._topology, self._topology.nodes[target]
        await self._at_work(node)
        began = time.time()
        network = topology.networks.get(target)
        if network is not None:
            await asyncio.to_thread(network.cut)
        else:
            await topology.proxies.set(target, Mode.DARK)
        bit = True
        try:
            if node.kind == "worker":
                bit = await self._until_overtaken(node, chance)
            else:
                await asyncio.sleep(chance.uniform(12.0, 18.0))
        finally:
            if network is not None:
                await asyncio.to_thread(network.heal)
            else:
                await topology.proxies.set(target, Mode.PASS)
        detail = "wire" if network is None else "network namespace"
        self._note("partition", target, began, detail=detail, idle=not bit)

    async def _poison(self, _: str, __: random.Random) -> None:
        """Hand in what kills its worker again and again, until it is in quarantine; then note who fell, and when."""
        if self._poisoner is None or (run := await self._poisoner.hand_in()) is None:
            return
        await until(partial(self._poisoner.is_over, run), QUARANTINED, 1.0)
        for start in await asyncio.to_thread(self._poisoner.deaths, run):
            names, node = self._topology.names_of(start.worker), start.worker.partition(".")[0]
            fell = Fault(kind="poison", target=node, began=start.at, ended=start.at + FALL, workers=names, detail=run)
            self._log(fell)

    async def _rush(self, _: str, __: random.Random) -> None:
        """Too much work. No worker is named: it excuses nobody, for nothing may be lost or done twice by it."""
        if self._rusher is None:
            return
        began, most = time.time(), await self._rusher.rush()
        detail, idle = f"{most:,} waited", most < PLENTY
        self._log(Fault(kind="rush", target="workers", began=began, ended=time.time(), detail=detail, idle=idle))

    async def _rolling_restart(self, _: str, chance: random.Random) -> None:
        """One after the other is told to end and comes back; each that belongs to a pair waits for the other."""
        began, server, back = time.time(), self._topology.server, True
        for name, node in self._topology.nodes.items():
            async with self._turn[name]:
                boot = node.boot
                node.signal(signal.SIGTERM)
                back &= await node.until_reborn(boot, UP_AGAIN)
                if node.kind == "api":
                    await self._topology.ready()
                    await asyncio.sleep(SETTLE)
        async with self._turn["postgres"]:
            pid = server.pid
            await self._postgres("postgresStop", "postgres", chance, signal.SIGINT)
            back &= server.pid not in {None, pid}
        self._note("rollingRestart", "all", began, idle=not back)
