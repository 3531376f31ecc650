"""A handler's own writes and the settlement of its run, in one transaction: both happen, or neither."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Literal

import asyncpg

from foliot.domain.errors import Conflict, FenceLost
from foliot.store import dispatch
from foliot.store.database import IDLE, Connection, Line
from foliot.store.dispatch import Settlement
from foliot.store.recovery import is_gone
from foliot.store.statements import SQL

Isolation = Literal["read_committed", "repeatable_read", "serializable"]


class Effects:
    """Connections for handlers, at most `most` at a time, besides those that the worker lives by.

    They are opened when a handler first asks for one.
    """

    def __init__(self, dsn: str, worker: int, most: int) -> None:
        self._dsn = dsn
        self._worker = worker
        self._most = most
        self._pool: asyncpg.Pool | None = None
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def transaction(
        self, settlement: Settlement, patience: timedelta, isolation: Isolation | None = None
    ) -> AsyncIterator[Connection]:
        """A connection in a transaction that ends with `settlement`; FenceLost, and no trace, if it came too late.

        When the block has ended without an exception, the run is settled. `patience` is how long the server waits for
        a handler that says nothing.
        """
        async with self._connection() as connection:
            transaction = connection.transaction(isolation=isolation)
            await transaction.start()
            try:
                await connection.fetchval(SQL["give_up_after"], str(patience // timedelta(milliseconds=1)))
                yield connection
                await self._settle(connection, settlement)
            except BaseException:
                with suppress(Exception):  # the connection is gone: the server takes it back by itself
                    await transaction.rollback()
                raise
            try:
                await transaction.commit()
            except Exception as error:
                if not is_gone(error) or not await self._is_on_record(settlement):
                    raise

    async def close(self) -> None:
        if self._pool is not None:
            self._pool.terminate()

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        async with self._opening:
            if self._pool is None:
                self._pool = await asyncpg.create_pool(
                    self._dsn,
                    min_size=0,
                    max_size=self._most,
                    timeout=10,
                    target_session_attrs="read-write",
                    server_settings={"application_name": "foliot handler"},
                )
        async with self._pool.acquire() as connection:
            yield connection

    async def _settle(self, connection: Connection, settlement: Settlement) -> None:
        if not connection.is_in_transaction():
            raise Conflict(
                "the handler ended the transaction itself", "leave COMMIT and ROLLBACK to the end of the block"
            )
        before = await connection.fetchval(SQL["foliot_first"], IDLE)
        if not await dispatch.settle(Line.over(connection), self._worker, [settlement]):
            raise FenceLost(
                "the lease was lost before the transaction ended: nothing of it was kept",
                "another attempt has the run now; let this one end",
            )
        await connection.fetchval(SQL["search_as_before"], before)

    async def _is_on_record(self, settlement: Settlement) -> bool:
        """The reply to the commit was lost: did it happen?

        To say no too early does no harm: whoever settles next waits for the end of a commit that is still under way.
        """
        line = Line(self._dsn)
        try:
            return bool(await dispatch.settled(line, self._worker, [settlement]))
        except Exception as error:
            if not is_gone(error):
                raise
            return False
        finally:
            await line.close()
