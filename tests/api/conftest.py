"""The application with one tenant, and what a test needs around it."""

import pytest

from api.calling import Caller, application
from foliot.services.tenants import Tenants
from world import World


@pytest.fixture
async def api(world: World) -> Caller:
    return Caller(application(world), world.key)


@pytest.fixture
async def stranger(world: World, api: Caller) -> Caller:
    """Another tenant at the same application."""
    return Caller(api.app, await Tenants(world.database).create("rival"))
