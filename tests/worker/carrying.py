"""Both ways to work, for tests that hold of either."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from foliot.kit.settings import Access
from foliot.store.database import Line
from foliot.store.fleet import About
from foliot.store.vault import NO_VAULT, Vault
from foliot.worker.carrier import SqlCarrier
from foliot.worker.gateway import HttpCarrier, open_gateway_session
from foliot.worker.port import Carrier
from sdk.serving import served
from world import World

ABOUT = About("oslo", 4711, "9.9", "shop:worker", 30)

NewCarrier = Callable[[int], Carrier]
"""Makes the carrier of a worker by its number."""


@asynccontextmanager
async def through_sql(dsn: str, vault: Callable[[Line], Vault] = lambda _: NO_VAULT) -> AsyncIterator[NewCarrier]:
    made: list[Carrier] = []

    def new(worker: int) -> Carrier:
        made.append(SqlCarrier(partial(Line, dsn), worker, f"worker {worker}", ABOUT, vault))
        return made[-1]

    yield new
    for carrier in made:
        await carrier.close()


@asynccontextmanager
async def through_http(world: World) -> AsyncIterator[NewCarrier]:
    async with served(world) as foliot, open_gateway_session() as session:
        access = Access(foliot.url, foliot.key)
        yield lambda worker: HttpCarrier(session, access, worker, f"worker {worker}", ABOUT)
