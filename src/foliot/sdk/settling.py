"""A handler's own writes and the success of its run, committed together: `ctx.transaction()`."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import AbstractAsyncContextManager, contextmanager
from types import TracebackType
from typing import Any, Final, NoReturn, TypeVar

from foliot.kit.loop import is_on_a_loop
from foliot.sdk.desk import Desk

T = TypeVar("T")
LOOK: Final = 0.5
"""Seconds after which a thread that waits for the database asks whether it is to end."""


class NotHere(Exception):  # noqa: N818 - reads aloud: "raise NotHere"
    """What a handler asked for cannot be had where it runs."""


Begin = Callable[..., AbstractAsyncContextManager[Any]]
"""Begins a transaction that ends with the success of the attempt."""


def no_transactions(reason: str) -> Begin:
    """For handlers that can have none: says why."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise NotHere(reason)

    return refuse


class Transaction:
    """`async with ctx.transaction() as connection`, in a plain function without `async`; see `Context.transaction`."""

    def __init__(
        self, begun: AbstractAsyncContextManager[Any], desk: Desk, attempt: Any, settled: Callable[[], None]
    ) -> None:
        """`desk` knows the attempt; `settled` is called when its success is on disk."""
        self._begun = begun
        self._desk = desk
        self._attempt = attempt
        self._settled = settled

    async def __aenter__(self) -> Any:
        return await self._begun.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        swallowed = await self._begun.__aexit__(kind, error, trace)
        if error is None:
            self._settled()
        return swallowed

    def __enter__(self) -> Any:
        if is_on_a_loop():
            raise TypeError("write `async with ctx.transaction()`: in a coroutine nobody may wait without `await`")
        # Waited for to the end, also by one that is to end: nobody would give back what it gets while it leaves.
        connection = self._desk.do(self.__aenter__()).result()
        return BlockingConnection(connection, self._wait) if hasattr(connection, "fetchval") else connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._desk.do(self.__aexit__(kind, error, trace)).result()

    def _wait(self, deed: Coroutine[Any, Any, T]) -> T:
        """The answer to a statement; whoever is to end waits no longer, and hears of it as a coroutine does."""
        begun = self._desk.do(deed)
        while not wait([begun], LOOK).done:
            if (why := self._desk.why_stopped(self._attempt)) is not None:
                begun.cancel()
                raise asyncio.CancelledError(why)
        return begun.result()


class BlockingConnection:
    """asyncpg's connection for a plain function: the same calls, and each returns when the database has answered."""

    def __init__(self, connection: Any, wait: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self._connection = connection
        self._wait = wait

    def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:
        """Run a statement, or several without arguments; says what was done, such as `INSERT 0 1`."""
        return str(self._wait(self._connection.execute(query, *args, timeout=timeout)))

    def executemany(self, command: str, args: Iterable[Sequence[Any]], *, timeout: float | None = None) -> None:
        """Run a statement for each of these arguments."""
        self._wait(self._connection.executemany(command, args, timeout=timeout))

    def fetch(self, query: str, *args: Any, timeout: float | None = None) -> list[Any]:
        """All rows; each answers by name and by place."""
        rows: list[Any] = self._wait(self._connection.fetch(query, *args, timeout=timeout))
        return rows

    def fetchrow(self, query: str, *args: Any, timeout: float | None = None) -> Any:
        """The first row, or None."""
        return self._wait(self._connection.fetchrow(query, *args, timeout=timeout))

    def fetchval(self, query: str, *args: Any, column: int = 0, timeout: float | None = None) -> Any:
        """One value of the first row, or None."""
        return self._wait(self._connection.fetchval(query, *args, column=column, timeout=timeout))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A savepoint: what its block writes is taken back if an exception leaves it."""
        savepoint = self._connection.transaction()
        self._wait(savepoint.start())
        try:
            yield
        except BaseException:
            self._wait(savepoint.rollback())
            raise
        self._wait(savepoint.commit())
