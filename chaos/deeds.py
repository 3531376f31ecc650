"""Every single thing that can be done to the system under test, each undone by itself and logged."""

import asyncio
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final

from chaos.patience import until
from chaos.proxy import Mode
from chaos.records import Fault
from chaos.topology import ALONE, Topology
from chaos.watch import TROUBLE

HOUR: Final = 3_600
CUT_WAIT: Final = 12.0
"""Seconds that an armed cut waits for a commit to come by."""
UP_AGAIN: Final = 60.0
LONG: Final = 20.0
"""Seconds of a stand-still: longer than a lease, whoever it is."""


class Deeds:
    """What to do is named `kind`, to whom `target`; `chance` decides about lengths. One deed per target at a time."""

    def __init__(self, topology: Topology, chance: random.Random, log: Callable[[Fault], None]) -> None:
        self._topology = topology
        self._chance = chance
        self._log = log
        self._turn = {name: asyncio.Lock() for name in (*topology.nodes, "postgres")}
        self._by_kind: dict[str, Callable[[str], Awaitable[None]]] = {
            "kill": self._kill,
            "stop": self._stop,
            "postgresKill": partial(self._postgres, "postgresKill"),
            "postgresStop": partial(self._postgres, "postgresStop"),
            **{mode.value: partial(self._wire, mode) for mode in (Mode.DELAY, Mode.STALL, Mode.HALF_OPEN, Mode.RESET)},
            **{mode.value: partial(self._cut, mode) for mode in (Mode.CUT_BEFORE, Mode.CUT_AFTER)},
            "diskFull": self._disk_full,
            "clockJump": self._clock_jump,
            "partition": self._partition,
            "rollingRestart": self._rolling_restart,
            "misfire": self._misfire,
            "standStill": partial(self._stop, length=LONG),
        }

    async def do(self, kind: str, target: str) -> None:
        if kind in {"rollingRestart", "misfire"}:
            await self._by_kind[kind](target)
            return
        async with self._turn[target]:
            await self._by_kind[kind](target)

    def _note(self, kind: str, target: str, began: float, *, pid: int = 0, detail: str = "") -> None:
        nodes = [target] if target in self._topology.nodes else []
        workers = self._topology.workers(began, *nodes)
        ended = time.time()
        self._log(Fault(kind=kind, target=target, began=began, ended=ended, pid=pid, workers=workers, detail=detail))

    async def _kill(self, target: str) -> None:
        began, node = time.time(), self._topology.nodes[target]
        boot = node.boot
        pid = node.signal(signal.SIGKILL)
        if pid:
            self._note("kill", target, began, pid=pid, detail=boot)
            await node.until_reborn(boot, UP_AGAIN)

    async def _stop(self, target: str, length: float | None = None) -> None:
        node = self._topology.nodes[target]
        # A worker stands still for longer than its lease, so that others take over what it holds; the rest briefly.
        lengths = {"worker": (18.0, 22.0), "scheduler": (3.0, 5.0), "api": (2.0, 4.0)}
        length = length or self._chance.uniform(*lengths[node.kind])
        began, pid = time.time(), node.signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(length)
        finally:
            if pid and node.pid == pid:
                os.kill(pid, signal.SIGCONT)
        self._note("stop", target, began, pid=pid)

    async def _misfire(self, _: str) -> None:
        """Nobody fires for longer than what still counts as on time."""
        length = self._chance.uniform(36.0, 39.0)

        async def stop(name: str) -> None:
            async with self._turn[name]:
                await self._stop(name, length)

        async with asyncio.TaskGroup() as group:
            for name in ("scheduler-0", "scheduler-1"):
                group.create_task(stop(name))

    async def _postgres(self, kind: str, _: str) -> None:
        """End the server the hard way; it is over when it accepts again."""
        topology, began = self._topology, time.time()
        pid = topology.server.pid
        if pid is None:
            return
        topology.hold_database.set()
        os.kill(pid, signal.SIGKILL if kind == "postgresKill" else signal.SIGQUIT)
        await asyncio.sleep(self._chance.uniform(0.2, 3.0))
        topology.hold_database.clear()
        await self.accepting()
        self._note(kind, "postgres", began, pid=pid)

    async def accepting(self) -> None:
        """Return when the database takes connections."""

        async def accepts() -> bool:
            with suppress(*TROUBLE):
                await (await self._topology.watch.connect()).close()
                return True
            return False

        await until(accepts, UP_AGAIN)

    async def _wire(self, mode: Mode, target: str) -> None:
        began = time.time()
        late = round(self._chance.uniform(0.05, 0.4), 2) if mode is Mode.DELAY else 0.0
        await self._topology.proxies.set(target, mode, late)
        if mode is not Mode.RESET:
            await asyncio.sleep(self._chance.uniform(5.0, 9.0))
            await self._topology.proxies.set(target, Mode.PASS)
        self._note(mode, target, began, detail=f"{late} s each way" if late else "")

    async def _cut(self, mode: Mode, target: str) -> None:
        began, proxies = time.time(), self._topology.proxies
        before = (await proxies.set(target, mode))[target]

        async def has_cut() -> bool:
            return (await proxies.cuts())[target] > before

        if await until(has_cut, CUT_WAIT):
            self._note(mode, target, began)
        await proxies.set(target, Mode.PASS)

    async def _disk_full(self, _: str) -> None:
        topology, began = self._topology, time.time()
        if topology.disk is None:
            return
        try:
            taken = await asyncio.to_thread(topology.disk.fill)
            await asyncio.sleep(self._chance.uniform(5.0, 8.0))
        finally:
            await asyncio.to_thread(topology.disk.free)
        await self.accepting()
        self._note("diskFull", "postgres", began, detail=f"{taken >> 20} MiB taken")

    async def _clock_jump(self, target: str) -> None:
        clocks, began = self._topology.clocks, time.time()
        if clocks is None:
            return
        jump = self._chance.choice((HOUR, -HOUR))
        clocks.set(target, jump)
        try:
            await asyncio.sleep(self._chance.uniform(12.0, 18.0))
        finally:
            clocks.set(target, 0)
        self._note("clockJump", target, began, detail=f"{jump:+d} s")

    async def _partition(self, target: str) -> None:
        topology, began = self._topology, time.time()
        by_network = topology.network is not None and target == ALONE
        if by_network:
            await asyncio.to_thread(topology.network.cut)
        else:
            await topology.proxies.set(target, Mode.DARK)
        try:
            await asyncio.sleep(self._chance.uniform(18.0, 22.0))
        finally:
            if by_network:
                await asyncio.to_thread(topology.network.heal)
            else:
                await topology.proxies.set(target, Mode.PASS)
        self._note("partition", target, began, detail="network namespace" if by_network else "wire")

    async def _rolling_restart(self, _: str) -> None:
        """One after the other is told to end and comes back; each that belongs to a pair waits for the other."""
        began = time.time()
        for name, node in self._topology.nodes.items():
            async with self._turn[name]:
                boot = node.boot
                node.signal(signal.SIGTERM)
                await node.until_reborn(boot, UP_AGAIN)
                if node.kind == "api":
                    await self._topology.ready(UP_AGAIN)
        self._note("rollingRestart", "all", began)
