"""Connections that break under one statement: before the server has done it, or after, with the answer lost."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from chaos.simulation.wire import said_aloud
from foliot.store.database import Connection, Database, Line
from foliot.store.statements import SQL

NAMES = {text: name for name, text in SQL.items()}


class Scissors:
    """Cut the connection that says a certain statement next, once; or let others come before it."""

    def __init__(self) -> None:
        self._statement: str | None = None
        self._after = False
        self._awaited: str | None = None
        self._deed: Callable[[], Awaitable[Any]] | None = None

    def cut(self, statement: str, *, after: bool) -> None:
        """At the statement of that name, or at BEGIN or COMMIT."""
        self._statement, self._after = statement, after

    def before(self, statement: str, deed: Callable[[], Awaitable[Any]]) -> None:
        """Do this when the statement of that name is about to be said, once."""
        self._awaited, self._deed = statement, deed

    @property
    def is_done(self) -> bool:
        return self._statement is None and self._deed is None

    async def around(self, query: str, connection: Connection, say: Callable[[], Awaitable[Any]]) -> Any:
        if self._deed is not None and NAMES.get(query, query) == self._awaited:
            deed, self._deed = self._deed, None
            await deed()
        if NAMES.get(query, query) != self._statement:
            return await say()
        self._statement = None
        if self._after:
            await say()
        connection.terminate()
        raise ConnectionResetError("cut by the test")


class BrittleConnection:
    """What Foliot uses of a connection."""

    def __init__(self, connection: Connection, scissors: Scissors) -> None:
        self._connection = connection
        self._scissors = scissors

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def fetch(self, query: str, *arguments: Any) -> Any:
        return await self._around(self._connection.fetch, query, *arguments)

    async def fetchrow(self, query: str, *arguments: Any) -> Any:
        return await self._around(self._connection.fetchrow, query, *arguments)

    async def fetchval(self, query: str, *arguments: Any) -> Any:
        return await self._around(self._connection.fetchval, query, *arguments)

    async def execute(self, query: str, *arguments: Any) -> Any:
        return await self._around(self._connection.execute, query, *arguments)

    async def _around(self, say: Callable[..., Awaitable[Any]], query: str, *arguments: Any) -> Any:
        return await self._scissors.around(query, self._connection, lambda: say(query, *arguments))

    def transaction(self) -> AbstractAsyncContextManager[None]:
        return said_aloud(self)


class BrittleLine(Line):
    def __init__(self, dsn: str, scissors: Scissors, **settings: Any) -> None:
        super().__init__(dsn, **settings)
        self._scissors = scissors

    async def connection(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = BrittleConnection(await super().connection(), self._scissors)
        return self._connection


class BrittleDatabase(Database):
    """The same database, reached through brittle connections."""

    def __init__(self, database: Database, scissors: Scissors) -> None:
        super().__init__(database.dsn, database._pool)
        self._scissors = scissors

    def line(self, *, hot: bool = True, **settings: str) -> Line:
        return BrittleLine(self.dsn, self._scissors, hot=hot, **settings)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        async with super().connection() as connection:
            yield BrittleConnection(connection, self._scissors)
