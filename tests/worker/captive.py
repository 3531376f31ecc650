"""An application whose functions run in processes of their own, and do there what handlers should not."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from foliot import Context, Permanent, Worker

worker = Worker(concurrency=4)


@worker.task(isolation="process")
def plain(ctx: Context, payload: Any) -> Any:
    match payload:
        case "return":
            return {"rows": 7}
        case "raise":
            raise ValueError("it broke")
        case "give up":
            raise Permanent("no use")
        case "exit":
            sys.exit(3)
        case "die":
            os._exit(4)
        case "crash":
            signal.raise_signal(signal.SIGSEGV)
        case "main thread":
            asyncio.run(asyncio.sleep(0))
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
    return None


@worker.task(isolation="process")
async def on_loop(ctx: Context, payload: Any) -> None:
    await asyncio.sleep(0)
    if ctx.attempt > 1:
        raise ValueError(f"{ctx.name} {ctx.run} {payload}")


@worker.task(isolation="process")
def hang(ctx: Context, payload: dict[str, str]) -> None:
    """Go on for ever, and so does somebody who has left the family; `mood` says how it takes being told to end."""
    place = Path(payload["place"])
    if not os.fork():
        os.setsid()
        if not os.fork():
            place.with_suffix(".orphan").write_text(str(os.getpid()))
            time.sleep(600)
        os._exit(0)
    if payload["mood"] == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    place.with_suffix(".child").write_text(str(os.getpid()))
    try:
        time.sleep(600)
    finally:
        place.with_suffix(".cleaned").touch()


@worker.task
async def quick(ctx: Context, payload: Any) -> None:
    await asyncio.sleep(0)


@worker.task
async def slow(ctx: Context, payload: Any) -> None:
    await asyncio.sleep(0.2)


@worker.task
async def poison(ctx: Context, payload: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@worker.task(isolation="process")
def report_plain(ctx: Context, payload: Any) -> None:
    assert ctx.last_checkpoint() is None
    ctx.progress(0.5, "half")
    assert ctx.heartbeat() > ctx.started_at
    ctx.checkpoint({"row": 1})
    while not ctx.draining:
        time.sleep(0.001)
    ctx.checkpoint({**ctx.last_checkpoint(), "drained": True})


@worker.task(isolation="process")
async def report_on_loop(ctx: Context, payload: Any) -> None:
    assert await ctx.last_checkpoint() is None
    ctx.progress(0.5, "half")
    assert ctx.heartbeat() > ctx.started_at
    await ctx.checkpoint({"row": 1})
    while not ctx.draining:  # noqa: ASYNC110 - a handler has to ask
        await asyncio.sleep(0.001)
    await ctx.checkpoint({**await ctx.last_checkpoint(), "drained": True})
