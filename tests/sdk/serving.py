"""A Foliot that answers on a real socket, for clients that know nothing of the test."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from api.calling import application
from foliot.api.server import serve
from foliot.cli.compose import bind, url_of
from foliot.sdk import AsyncFoliot, Foliot
from world import PATIENCE, World


class Served(NamedTuple):
    """Where it is, and clients that know it."""

    url: str
    key: str

    def client(self, **more: Any) -> Foliot:
        return Foliot(self.url, self.key, **more)

    def aio(self, **more: Any) -> AsyncFoliot:
        return AsyncFoliot(self.url, self.key, **more)


@asynccontextmanager
async def served(world: World) -> AsyncIterator[Served]:
    stop = asyncio.Event()
    with bind("127.0.0.1", 0) as listener:
        task = asyncio.ensure_future(serve(application(world), listener, stop))
        try:
            yield Served(url_of(listener), world.key)
        finally:
            world.gateway.dismiss()  # as the API process does: who waits for work would hold up its end
            stop.set()
            await asyncio.wait_for(task, PATIENCE)
