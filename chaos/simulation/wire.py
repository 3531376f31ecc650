"""Connections that are late, break before or after the statement was done, or deliver it when its sender is gone."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import asyncpg
import msgspec

from chaos.simulation.statement import Physical
from foliot.store.database import Database, Line
from foliot.store.statements import SQL

if TYPE_CHECKING:
    from chaos.simulation.node import Node

_NAMES: Final = {text: name for name, text in SQL.items()}
_IDLE: Final = 5.0
"""Seconds after which the server ends a transaction whose client says nothing: as Foliot asks it to."""
_LONGEST_STATEMENT: Final = 30.0


class Loss(Enum):
    """Where a connection breaks."""

    BEFORE = auto()  # the statement never arrives
    AFTER = auto()  # executed, and the answer is lost
    LATE = auto()  # the client is told that the connection broke; the statement arrives all the same, later


class Weather(msgspec.Struct):
    """How bad the network is, from a seed of its own."""

    chance: random.Random
    loss: float = 0.0
    """The share of statements under which the connection breaks."""
    slow: float = 0.0
    """The share that takes seconds."""

    def latency(self) -> float:
        if self.slow and self.chance.random() < self.slow:
            return self.chance.choice((0.2, 0.5, 1.5))
        return 0.0001 + self.chance.expovariate(2_000)

    def fate(self) -> Loss | None:
        if self.loss and self.chance.random() < self.loss:
            return self.chance.choice((Loss.BEFORE, Loss.AFTER, Loss.AFTER, Loss.LATE))
        return None


def _broken(detail: str) -> ConnectionError:
    return ConnectionResetError(f"simulated: {detail}")


@asynccontextmanager
async def said_aloud(connection: Any) -> AsyncIterator[None]:
    """A transaction whose beginning and end are statements like any other, so that these can be lost too."""
    await connection.execute("BEGIN")
    try:
        yield
    except BaseException:
        if not connection.is_closed():
            await connection.execute("ROLLBACK")
        raise
    await connection.execute("COMMIT")


class SimConnection:
    """What Foliot uses of asyncpg's connection, over a network that the simulation rules."""

    def __init__(self, node: "Node", physical: Physical, settings: dict[str, str]) -> None:
        self._node = node
        self.number = node.opened
        self._server = node.world.server
        self._physical: Physical | None = physical
        self._era = self._server.era
        self._patience = _seconds(settings.get("lock_timeout", settings.get("statement_timeout", "30s")))
        self._running: asyncio.Task[Any] | None = None
        self._idle: asyncio.TimerHandle | None = None

    def is_closed(self) -> bool:
        return self._physical is None or self._era != self._server.era

    def terminate(self) -> None:
        if self._physical is not None:
            physical, self._physical = self._physical, None
            self._stay()
            self._server.hang_up(physical, self._running)
            self._node.connections.discard(self)

    async def close(self) -> None:
        self.terminate()

    async def fetch(self, query: str, *arguments: Any) -> list[Any]:
        if query == SQL["notify"]:
            await self._say(SQL["sign_of_life"], ())
            for channel in arguments[0]:
                self._node.world.hear(channel)
            return []
        return await self._say(query, arguments)

    async def fetchrow(self, query: str, *arguments: Any) -> Any:
        rows = await self.fetch(query, *arguments)
        return rows[0] if rows else None

    async def fetchval(self, query: str, *arguments: Any) -> Any:
        row = await self.fetchrow(query, *arguments)
        return None if row is None else row[0]

    async def execute(self, query: str, *arguments: Any) -> None:
        await self.fetch(query, *arguments)

    async def prepare(self, query: str, *, name: str) -> "Prepared":  # noqa: ARG002 - as asyncpg's
        return Prepared(self, query)

    async def add_listener(self, channel: str, callback: Callable[..., None]) -> None:
        await self._say(SQL["sign_of_life"], ())
        self._node.world.listen(self, channel, callback)

    def transaction(self) -> AbstractAsyncContextManager[None]:
        return said_aloud(self)

    async def _say(self, query: str, arguments: tuple[Any, ...]) -> list[Any]:
        node, weather = self._node, self._node.weather
        if self.is_closed():
            raise _broken("the connection is closed")
        await node.awake()
        fate = weather.fate()
        await asyncio.sleep(weather.latency())
        physical = self._physical
        if physical is None or self.is_closed() or fate is Loss.BEFORE or node.is_cut:
            return self._break(query, "before")
        if fate is Loss.LATE:
            delay = weather.chance.uniform(0.01, 2)
            self._running = asyncio.ensure_future(self._arrive_late(physical, query, arguments, delay))
            self._running.add_done_callback(_look_at)
            return self._break(query, "late")
        self._stay()
        try:
            rows = await self._done(physical, query, arguments)
        except asyncpg.PostgresError as error:
            node.tell(_NAMES.get(query, query), type(error).__name__)
            await asyncio.sleep(weather.latency())
            raise
        node.heard(_NAMES.get(query, query))
        if fate is Loss.AFTER:
            return self._break(query, "after")
        if physical.connection.is_in_transaction():  # the server counts from here, whether anybody reads the answer
            self._idle = asyncio.get_running_loop().call_later(_IDLE, self.terminate)
        await asyncio.sleep(weather.latency())
        await node.awake()
        if self.is_closed() or node.is_cut:
            return self._break(query, "after")
        node.tell(_NAMES.get(query, query), str(len(rows)))
        return rows

    async def _done(self, physical: Physical, query: str, arguments: tuple[Any, ...]) -> list[Any]:
        """The answer, at once unless it waits for a lock. Whoever stops waiting for it does not undo it."""
        statement = self._server.execute(physical, query, arguments)
        if not statement.is_done:
            self._running = asyncio.ensure_future(self._server.wait(statement, self._patience))
            self._running.add_done_callback(_look_at)
            await asyncio.shield(self._running)
        return statement.result()

    async def _arrive_late(self, physical: Physical, query: str, arguments: tuple[Any, ...], delay: float) -> None:
        await asyncio.sleep(delay)
        if self._era == self._server.era:
            try:
                statement = self._server.execute(physical, query, arguments)
                await self._server.wait(statement, self._patience)
                statement.result()
            except asyncpg.PostgresError:
                return
            self._node.heard(_NAMES.get(query, query))
            self._node.world.late(self._node.name)

    def _break(self, query: str, when: str) -> list[Any]:
        self._node.tell(_NAMES.get(query, query), f"lost {when}")
        self._node.world.lost[when] += 1
        self.terminate()
        raise _broken(f"the connection broke {when} the statement")

    def _stay(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None


def _look_at(task: "asyncio.Task[Any]") -> None:
    if not task.cancelled():
        task.exception()  # somebody may have stopped waiting for it: that is no news


class Prepared(NamedTuple):
    """A statement that is said when it is carried out."""

    connection: SimConnection
    query: str

    async def fetch(self, *arguments: Any) -> list[Any]:
        return await self.connection.fetch(self.query, *arguments)


class SimLine(Line):
    def __init__(self, node: "Node", *, hot: bool, settings: dict[str, str]) -> None:
        super().__init__("", hot=hot, **settings)
        self._node = node

    async def connection(self) -> Any:
        if self._connection is None or self._connection.is_closed():
            self._connection = await self._node.connect(hot=self._hot, settings=self._settings)
        return self._connection


class SimPool:
    """Enough of asyncpg's pool for `Database`."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._free: list[SimConnection] = []

    @asynccontextmanager
    async def acquire(self, *, timeout: float) -> AsyncIterator[SimConnection]:  # noqa: ARG002, ASYNC109 - as asyncpg's
        while self._free and self._free[-1].is_closed():
            self._free.pop()
        connection = self._free.pop() if self._free else await self._node.connect(hot=False, settings={})
        try:
            yield connection
        except asyncio.CancelledError:
            connection.terminate()
            raise
        finally:
            if not connection.is_closed():
                self._free.append(connection)

    async def expire_connections(self) -> None:
        for each in self._free:
            each.terminate()
        self._free.clear()

    def terminate(self) -> None:
        for each in self._free:
            each.terminate()


class SimDatabase(Database):
    def __init__(self, node: "Node") -> None:
        super().__init__("", SimPool(node))
        self._node = node

    def line(self, *, hot: bool = True, **settings: str) -> Line:
        return SimLine(self._node, hot=hot, settings=settings)


def _seconds(text: str) -> float:
    return float(text[:-2]) / 1000 if text.endswith("ms") else min(float(text[:-1]), _LONGEST_STATEMENT)
