"""What every process has around it: a loop, signals, the watch over its parent, and an end that comes."""

import asyncio
import gc
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
import uvloop

from foliot.cli.failing import code_of
from foliot.domain.errors import FoliotError
from foliot.kit.settings import Settings
from foliot.kit.telemetry import serve_metrics, start_logging
from foliot.worker.child.kernel import be_readable

SUPERVISED: Final = "FOLIOT_SUPERVISED"
"""Set for children of a supervisor: when their standard input ends, it is gone, and so are they."""
DRAINED: Final = 3
"""How a supervised worker ends that was drained: whoever supervises it does not start it again."""
LAST_WORDS: Final = 5.0
"""Seconds that threads get to end after everything else has."""

Main = Callable[[asyncio.Event], Awaitable[None]]


class Stopped(Exception):  # noqa: N818 - reads aloud
    """Told to stop before there was anything to do: a quiet end."""


class Drained(Stopped):
    """Nothing is left to do, and somebody wanted it so: not to be started again."""


def run_process(name: str, settings: Settings, main: Main, *, metrics: bool = False) -> None:
    """Run `main` until it returns; SIGTERM and Ctrl-C set its `stop`. Whoever fails says why, and exits so.

    With `metrics` the process shows its own, on the port that the settings name.
    """
    start_logging(process=name, level=settings.log_level, json=settings.log_json)
    log = structlog.get_logger("foliot")
    _keep_secrets(settings)
    is_child = os.environ.pop(SUPERVISED, None) is not None  # not for what handlers may start

    async def shell() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in _ending_signals():
            loop.add_signal_handler(number, stop.set)
        if is_child:
            loop.add_reader(sys.stdin.fileno(), _on_parent, loop, stop)
        if metrics and settings.metrics_port is not None:
            _show_metrics(settings.host, settings.metrics_port)
        _tune_collector()
        status = 1
        try:
            await main(stop)
            status = 0
        except Drained:
            status = drained
            raise
        finally:
            _end_in_any_case(status)

    drained = DRAINED if is_child else 0
    try:
        uvloop.run(shell())
    except Drained:
        sys.exit(drained)
    except Stopped:
        return
    except Exception as error:
        if (said := _said_on_purpose(error)) is not None:
            log.error(str(said))  # noqa: TRY400 - it says all
            sys.exit(code_of(said))
        log.exception("ended by an error that nobody expected")
        sys.exit(1)


def _keep_secrets(settings: Settings) -> None:
    """Commands of our own user must not find the database's password in our environment."""
    if settings.commands_same_user:
        be_readable(False)


def _show_metrics(host: str, port: int) -> None:
    try:
        serve_metrics(host, port)
    except OSError as error:
        hint = "choose another port with FOLIOT_METRICS_PORT"
        raise FoliotError(f"cannot show metrics on {host}:{port}: {error.strerror}", hint) from None


def _ending_signals() -> list[signal.Signals]:
    # The end of a terminal ends us too, in good order, unless we were started with nohup.
    hang_up = [] if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [signal.SIGHUP]
    return [signal.SIGTERM, signal.SIGINT, *hang_up]


def _on_parent(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 1024):
        loop.remove_reader(sys.stdin.fileno())
        stop.set()


def _end_in_any_case(status: int) -> None:
    """Python waits for its threads, and a handler's thread cannot be stopped: end around whoever overstays."""
    timer = threading.Timer(LAST_WORDS, os._exit, [status])
    timer.daemon = True
    timer.start()


def _said_on_purpose(error: BaseException) -> FoliotError | None:
    """The error that says what to do next, if that is what ended us; task groups wrap it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, FoliotError) else None


def _tune_collector() -> None:
    """Rows become objects by the thousand and die young: looking for cycles among them is wasted work."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
