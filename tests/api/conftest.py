"""The application with one tenant, and what a test needs around it."""

from collections.abc import AsyncIterator

import pytest

from api.calling import Caller, application
from foliot.services.tenants import Tenants
from world import World


@pytest.fixture
async def api(world: World) -> Caller:
    return Caller(application(world), world.key)


@pytest.fixture
async def guarded(world: World, api: Caller) -> AsyncIterator[Caller]:
    """The same caller at an application that reaches what is a tenant's as the API process does: in a bound role."""
    own = await world.database.guarded(size=2)
    assert own is not None
    yield Caller(application(world, own=own), api.key)
    await own.close()


@pytest.fixture
async def stranger(world: World, api: Caller) -> Caller:
    """Another tenant at the same application."""
    return Caller(api.app, await Tenants(world.database).create("rival"))
