"""A web server of the test's own, and an application's database."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from world import World

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
Serve = Callable[[Answer], Awaitable[str]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts servers and tells their addresses."""
    servers = []

    async def start(handler: Answer) -> str:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        server = TestServer(app)
        servers.append(server)
        await server.start_server()
        return str(server.make_url("/hook"))

    yield start
    for server in servers:
        await server.close()


@pytest.fixture
async def shop(world: World) -> World:
    """A database that an application shares with Foliot."""
    await world.sql("CREATE TABLE public.receipt (run bigint)")
    return world
