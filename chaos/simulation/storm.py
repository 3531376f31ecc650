"""What goes wrong in a simulation, from the seed."""

import asyncio
import random
from collections.abc import Sequence
from typing import Final

from chaos.simulation.node import Node
from chaos.simulation.workers import WorkerNode
from chaos.simulation.world import World

LONG_OUTAGE: Final = (32.0, 55.0)
"""Seconds without any scheduler: longer than an instant's grace, so that some are missed."""
BLACKOUTS: Final = (40.0, 60.0, 150.0, 700.0, 4_000.0)
"""Seconds without anybody: while all are down nothing is asked of the database, so an hour costs nothing."""

FOR_EVER: Final = 1e6


class Storm:
    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = random.Random(f"{world.seed}/storm")  # noqa: S311 - guards nothing
        self._lost: set[Node] = set()

    async def blow(self, seconds: float) -> None:
        """Break things for that long. Bad weather everywhere, and something worse now and then."""
        until = self._world.loop.time() + seconds
        loss, slow = self._chance.choice((0.0, 0.005, 0.02, 0.06)), self._chance.choice((0.0, 0.0, 0.01, 0.03))
        for node in self._world.nodes:
            node.weather.loss, node.weather.slow = loss, slow
        if self._world.has_times:
            await asyncio.sleep(seconds / 2)
            await self._kill_all(self._world.schedulers, self._chance.uniform(*LONG_OUTAGE))
            return
        worst = self._chance.choice((0.5, 1.0, 2.0, 4.0))
        while True:
            await asyncio.sleep(self._chance.expovariate(1 / worst))
            if self._world.loop.time() >= until:
                return
            await self._strike()

    async def _strike(self) -> None:
        dice = self._chance
        node = dice.choice([*self._world.nodes, *self._world.workers])
        kind = dice.choices(
            ("kill", "freeze", "cut", "storm", "crash", "noSchedulers", "blackout"),
            (6, 4, 3, 3, 2, 0.4, 0.6),
        )[0]
        match kind:
            case "kill":
                await self._kill(node, dice.uniform(0.1, 4.0))
            case "freeze":
                self._hold("stop", node, dice.choice((0.3, 2.0, 5.0, 9.0)))
            case "cut":
                self._hold("partition", node, dice.choice((0.3, 2.0, 5.0, 9.0)))
            case "storm":
                self._spoil(node, dice.uniform(0.5, 4.0), dice.uniform(0.1, 0.5))
            case "crash":
                await self._crash(dice.uniform(0.1, 3.0))
            case "noSchedulers":
                await self._kill_all(self._world.schedulers, dice.uniform(*LONG_OUTAGE))
            case _:
                await self._kill_all(self._world.nodes, dice.choice(BLACKOUTS) * dice.uniform(1.0, 1.2))

    async def _kill_all(self, nodes: Sequence[Node], seconds: float) -> None:
        for each in nodes:
            await self._kill(each, seconds)
        await asyncio.sleep(seconds)

    async def _kill(self, node: Node, seconds: float) -> None:
        self._world.fault("kill", node.name, 0.0 if isinstance(node, WorkerNode) else seconds, workers=boots(node))
        await node.kill()
        node.start_in(seconds)

    def _hold(self, kind: str, node: Node, seconds: float) -> None:
        self._world.fault(kind, node.name, seconds, workers=boots(node))
        end = self._world.loop.time() + seconds
        if kind == "stop":
            node.frozen_until = max(node.frozen_until, end)
        else:
            node.cut_until = max(node.cut_until, end)

    def _spoil(self, node: Node, seconds: float, loss: float) -> None:
        self._world.fault("reset", node.name, seconds, f"{loss:.2f} of all statements")
        before, node.weather.loss = node.weather.loss, loss

        def clear() -> None:
            if node.weather.loss == loss:
                node.weather.loss = before

        self._world.loop.call_later(seconds, clear)

    async def _crash(self, seconds: float) -> None:
        if self._world.server.is_down:
            return
        self._world.fault("postgresKill", "postgres", seconds)
        await self._world.server.crash()
        for node in self._world.nodes:
            node.disconnect()
        await asyncio.sleep(seconds)
        await self._world.server.come_back()

    def _mend(self, node: Node) -> None:
        node.frozen_until = node.cut_until = 0.0
        if node.is_dead:
            node.start_in(0.0)
        for fault in self._world.faults:
            if fault.target == node.name:
                fault.ended = min(fault.ended, self._world.ground.seconds())

    async def heal(self) -> None:
        """From now on nothing more goes wrong; what has begun comes to its end."""
        world = self._world
        for node in world.nodes:
            node.weather.loss = node.weather.slow = 0.0
        longest = max(max(node.frozen_until, node.cut_until) for node in world.nodes)
        await asyncio.sleep(max(0.0, longest - world.loop.time()))
        for node in world.nodes:
            self._mend(node)
        for fault in world.faults:
            fault.ended = min(fault.ended, world.ground.seconds())

    async def ruin(self) -> None:
        """Leave a healthy core of one API, one scheduler and one worker; the others stay broken for ever."""
        world, dice = self._world, self._chance
        for node in world.nodes:
            node.weather.loss = node.weather.slow = 0.0
        front = dice.choice(world.apis)
        core: list[Node] = [front, dice.choice(world.schedulers), dice.choice(world.workers)]
        world.front = [front]
        for node in world.nodes:
            if node in core:
                self._mend(node)
            else:
                await self._spoil_for_ever(node)

    async def _spoil_for_ever(self, node: Node) -> None:
        match self._chance.choice(("dead", "frozen", "cut", "lossy")):
            case "dead":
                self._world.fault("kill", node.name, FOR_EVER, workers=boots(node))
                await node.kill()
            case "frozen":
                self._hold("stop", node, FOR_EVER)
            case "cut":
                self._hold("partition", node, FOR_EVER)
            case _:
                self._world.fault("reset", node.name, FOR_EVER, workers=boots(node))
                node.weather.loss = 0.5


def boots(node: Node) -> list[str]:
    return [node.boot] if isinstance(node, WorkerNode) else []
