"""An address to call, in a process of its own, and the bare client that Foliot's calls of it are compared with."""

import asyncio
import gc
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import aiohttp
import msgspec
import uvloop
from aiohttp import web

from foliot.bench.produce import PAYLOAD
from foliot.domain.errors import FoliotError

CONCURRENCY: Final = 100


@asynccontextmanager
async def target() -> AsyncIterator[str]:
    """The address of a server that takes every call and answers at once."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "foliot.bench.target", "serve", stdout=asyncio.subprocess.PIPE
    )
    try:
        said = await process.stdout.readline() if process.stdout else b""
        if not said:
            raise FoliotError("the target of the HTTP measurement did not start", "its error stands above")
        yield said.decode().strip()
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()


async def call_barely(url: str, seconds: float) -> float:
    """Calls a second of a bare loop on the same machine, in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "foliot.bench.target", "call", url, str(seconds)), stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    if process.returncode:
        raise FoliotError("the bare client failed", "its error stands above")
    return float(said)


async def _serve() -> None:
    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(text="ok")

    app = web.Application()
    app.router.add_post("/", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1_024)
    await site.start()
    host, port = runner.addresses[0][:2]
    sys.stdout.write(f"http://{host}:{port}/\n")
    sys.stdout.flush()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    await runner.cleanup()


async def _call(url: str, seconds: float) -> None:
    done, headers = 0, {"Content-Type": "application/json"}
    body = msgspec.json.encode({"payload": msgspec.Raw(PAYLOAD)})
    # As the worker's session: connections are kept, cookies are not.
    connector = aiohttp.TCPConnector(limit=CONCURRENCY, limit_per_host=CONCURRENCY)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:

        async def caller(end: float) -> None:
            nonlocal done
            while time.monotonic() < end:
                async with session.post(url, data=body, headers=headers) as response:
                    await response.read()
                done += 1

        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        began = time.monotonic()
        await asyncio.gather(*(caller(began + seconds) for _ in range(CONCURRENCY)))
        sys.stdout.write(f"{done / (time.monotonic() - began)}\n")


def main(what: str, *arguments: str) -> None:
    match what:
        case "serve":
            uvloop.run(_serve())
        case "call":
            url, seconds = arguments
            uvloop.run(_call(url, float(seconds)))
        case _:
            raise ValueError(what)


if __name__ == "__main__":
    main(*sys.argv[1:])
