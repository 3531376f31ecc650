"""Both ways to work, for tests that hold of either."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from foliot.kit.settings import Access
from foliot.store.database import Line
from foliot.worker.carrier import SqlCarrier
from foliot.worker.gateway import HttpCarrier, open_gateway_session
from foliot.worker.port import Carrier
from sdk.serving import served
from world import World

NewCarrier = Callable[[int], Carrier]
"""Makes the carrier of a worker by its number."""


@asynccontextmanager
async def through_sql(dsn: str) -> AsyncIterator[NewCarrier]:
    made: list[Carrier] = []

    def new(worker: int) -> Carrier:
        made.append(SqlCarrier(partial(Line, dsn), worker, f"worker {worker}"))
        return made[-1]

    yield new
    for carrier in made:
        await carrier.close()


@asynccontextmanager
async def through_http(world: World) -> AsyncIterator[NewCarrier]:
    async with served(world) as foliot, open_gateway_session() as session:
        yield lambda worker: HttpCarrier(session, Access(foliot.url, foliot.key), worker, f"worker {worker}")
