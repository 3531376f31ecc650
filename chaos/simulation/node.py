"""A process that is none: it lives on the loop's time, to be killed, frozen or cut off."""

import asyncio
import random
from typing import TYPE_CHECKING, Final

from chaos.simulation.wire import SimConnection, Weather
from foliot.worker.process import LeaseLost

if TYPE_CHECKING:
    from chaos.simulation.world import World

RESTART: Final = (0.2, 2.0)
"""Seconds that a process which ended by itself takes to be back."""


class Node:
    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name
        self.boots = 0
        self.weather = Weather(random.Random(f"{world.seed}/weather/{name}"))  # noqa: S311 - guards nothing
        self.chance = random.Random(f"{world.seed}/{name}")  # noqa: S311 - guards nothing
        self.connections: set[SimConnection] = set()
        self.opened = 0
        self.frozen_until = 0.0
        self.cut_until = 0.0
        self.is_dead = False
        self._main: asyncio.Task[None] | None = None
        self._next: asyncio.TimerHandle | None = None

    @property
    def boot(self) -> str:
        return f"{self.name}/{self.boots}"

    @property
    def is_cut(self) -> bool:
        return self.world.server.is_down or self.world.loop.time() < self.cut_until

    async def connect(self, *, hot: bool, settings: dict[str, str]) -> SimConnection:
        if self.is_dead:
            raise ConnectionRefusedError("simulated: the process is dead")
        await self.awake()
        await asyncio.sleep(self.weather.latency())
        if self.is_cut:
            raise ConnectionRefusedError("simulated: nobody is there")
        self.opened += 1
        connection = SimConnection(self, await self.world.ground.lend(hot=hot), settings)
        self.connections.add(connection)
        return connection

    async def awake(self) -> None:
        """Stand still while frozen: as a stopped process does, wherever it next touches the world."""
        while (left := self.frozen_until - self.world.loop.time()) > 0:  # noqa: ASYNC110 - it may be prolonged
            await asyncio.sleep(left)

    def heard(self, statement: str) -> None:
        """The database has executed it."""

    def tell(self, statement: str, outcome: str) -> None:
        self.world.note(f"{self.boot} {statement}: {outcome}")

    def start(self) -> None:
        self.is_dead = False
        self.boots += 1
        self.world.note(f"{self.boot} starts")
        self._main = self.world.loop.create_task(self._live())

    async def _live(self) -> None:
        try:
            await self.serve()
        except LeaseLost:
            self.world.note(f"{self.boot} lost its lease")
        except Exception as error:  # noqa: BLE001 - whatever it is: nothing should end a node
            self.world.crash(self.boot, error)
        finally:
            self.hang_up()
        if not self.is_dead:  # killed while it was about to leave: whoever did that starts it again
            self.start_in(self.chance.uniform(*RESTART))

    def start_in(self, seconds: float) -> None:
        if self._next is not None:
            self._next.cancel()
        self._next = self.world.loop.call_later(seconds, self.start)

    async def serve(self) -> None:
        raise NotImplementedError

    async def kill(self) -> None:
        """Nothing of it goes on; what it had sent may still arrive."""
        self.world.note(f"{self.boot} is killed")
        if self._next is not None:
            self._next.cancel()
        self.is_dead = True
        main, self._main = self._main, None
        if main is not None:
            self.hang_up()
            main.cancel()
            await asyncio.wait([main])

    def hang_up(self) -> None:
        """The process is gone."""
        self.disconnect()

    def disconnect(self) -> None:
        for connection in sorted(self.connections, key=lambda each: each.number):
            connection.terminate()
