"""uvicorn inside our own loop, on a socket of ours, stopped by our own event."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import structlog
import uvicorn
from starlette.applications import Starlette

from foliot.api.head import BoundedHead

log = structlog.get_logger("api")


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process around us."""
        yield


async def serve(app: Starlette, listener: socket.socket, stop: asyncio.Event) -> None:
    """Answer on `listener` until `stop`, then let open calls come to their end."""
    config = uvicorn.Config(
        app,
        http=BoundedHead,
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=10,
        server_header=False,
        proxy_headers=False,  # whom to believe is a setting of ours, and only the audit trail asks
        timeout_keep_alive=75,  # longer than proxies and clients keep theirs: who hangs up first must not be us
    )
    server = _Server(config)
    host, port = listener.getsockname()[:2]
    log.info("listening", url=f"http://{host}:{port}")

    async def watch() -> None:
        await stop.wait()
        server.should_exit = True

    async with asyncio.TaskGroup() as group:
        watching = group.create_task(watch())
        await server.serve(sockets=[listener])
        watching.cancel()
