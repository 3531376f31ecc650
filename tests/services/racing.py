"""What races of two have in common: one is in the middle of its transaction while the other comes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from foliot.services.control import Control
from foliot.store.database import Connection
from world import PATIENCE, World


class Within:
    """A database whose transactions are part of one that is open already."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        yield self._connection

    connection = transaction


def control(world: World, connection: Connection) -> Control:
    """Does what an owner asks for within a transaction that is open already."""
    return Control(Within(connection), world.specs, world.hints.append)  # type: ignore[arg-type]


async def done_or_waiting(world: World, rival: "asyncio.Future[Any]") -> None:
    """Return when the rival has come to its end, or waits for somebody."""
    waiting = asyncio.create_task(world.until_waiting())
    await asyncio.wait({rival, waiting}, timeout=PATIENCE, return_when="FIRST_COMPLETED")
    waiting.cancel()
