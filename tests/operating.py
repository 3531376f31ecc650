"""Operations as tests serve and see them, whatever their kind."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from foliot.kit.tasks import background
from foliot.services.operate import Operator
from foliot.wire.operations import OperationView
from world import World


async def look(world: World, operation: int) -> OperationView:
    return await world.operations.operation(world.tenant, operation)


@asynccontextmanager
async def operator(world: World) -> AsyncIterator[Operator]:
    """Serves operations when told to."""
    duty = Operator(world.database)
    try:
        yield duty
    finally:
        await duty.close()


async def settle_down(duty: Operator) -> None:
    """Serve until there is nothing more to do for now."""
    while await duty.run_once():
        pass


@asynccontextmanager
async def served_operations(world: World) -> AsyncIterator[None]:
    """Operations are served for as long as the block lasts, as by a scheduler."""

    async def serve() -> None:
        async with operator(world) as duty:
            while True:
                await duty.run_once()
                await asyncio.sleep(0.02)

    async with background(serve()):
        yield
