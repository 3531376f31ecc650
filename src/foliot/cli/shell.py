"""What every process has around it: a loop, signals, and the watch over its parent."""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
import uvloop

from foliot.domain.errors import FoliotError
from foliot.kit.settings import Settings
from foliot.kit.telemetry import start_logging

SUPERVISED: Final = "FOLIOT_SUPERVISED"
"""Set for children of `foliot up`: when their standard input ends, the supervisor is gone, and so are they."""

Main = Callable[[asyncio.Event], Awaitable[None]]


def run_process(name: str, settings: Settings, main: Main) -> None:
    """Run `main` until it returns; SIGTERM and Ctrl-C set its `stop`. Exits with 1 if Foliot itself says why."""
    start_logging(process=name, level=settings.log_level, json=settings.log_json)

    async def shell() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        if os.environ.get(SUPERVISED):
            loop.add_reader(sys.stdin.fileno(), _on_parent, loop, stop)
        _tune_collector()
        await main(stop)

    try:
        uvloop.run(shell())
    except FoliotError as error:
        structlog.get_logger("foliot").error(str(error))
        sys.exit(1)


def _on_parent(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 1024):
        loop.remove_reader(sys.stdin.fileno())
        stop.set()


def _tune_collector() -> None:
    """Rows become objects by the thousand and die young: looking for cycles among them is wasted work."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
