"""The worker process: HTTP targets, and an application's functions if it has any."""

import asyncio
import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from typing import Final

import structlog

from foliot import __version__
from foliot.cli.commands import By, open_commands, own_secrets
from foliot.cli.compose import CannotStart, carried_by, egress_of
from foliot.cli.reaching import Reach, Reached, open_carrier
from foliot.cli.shell import Drained, run_process
from foliot.cli.supervise import ONE_OF_MANY, cores, supervise
from foliot.domain.redaction import Redaction
from foliot.domain.scaling import Bounds
from foliot.kit.loop import any_of
from foliot.kit.settings import Settings
from foliot.kit.tasks import background
from foliot.sdk import ApiError, AsyncFoliot, NotConfigured, Unavailable, Unreachable, Worker
from foliot.sdk.aio.declaring import declare, retire
from foliot.sdk.apps import reference_of
from foliot.store.fleet import About
from foliot.store.specs import StoredSpec
from foliot.worker.alone import Alone
from foliot.worker.child.nursery import Nursery, open_nursery
from foliot.worker.desk import WorkerDesk
from foliot.worker.executor import Executor
from foliot.worker.functions import function_executors
from foliot.worker.process import WorkerOptions, WorkerProcess
from foliot.worker.web import http_executor, open_session

log = structlog.get_logger("worker")

BY_ENVIRONMENT: Final = Reach()
LOOK_AGAIN: Final = timedelta(minutes=1)
"""Between looks at schedules that only workers of an earlier version serve."""

_DONE: Final = {"warn": "nothing: `foliot job delete` ends it", "pause": "paused", "cancel": "cancelled"}


def serve_worker(
    app: Worker, settings: Settings | None = None, name: str | None = None, reach: Reach = BY_ENVIRONMENT
) -> None:
    """Serve until told to stop, in this process or in several; `name` is what people know the application by."""
    settings = settings or Settings.read(os.environ)
    app.labels = carried_by(settings) or app.labels
    bounds = Bounds.parse(str(app.processes), cores())
    if os.environ.pop(ONE_OF_MANY, None) is None and bounds.most > 1:
        run_process("workers", settings, partial(supervise, settings, bounds, reach))
    else:
        run_process("worker", settings, partial(_worker, settings, app, name, reach), metrics=True)


async def _worker(settings: Settings, app: Worker, name: str | None, reach: Reach, stop: asyncio.Event) -> None:
    about = About(socket.gethostname(), os.getpid(), __version__, name, app.concurrency)
    async with (
        open_carrier(settings, reach, about, stop) as reached,
        background(_declare(app, stop, reach.url)),
        open_nursery(secretive=settings.commands_same_user) as nursery,
        open_commands(settings, nursery) as commands,
    ):
        await _work(settings, reached, app, nursery, commands, stop)


async def _work(
    settings: Settings, reached: Reached, app: Worker, nursery: Nursery, commands: dict[str, By], stop: asyncio.Event
) -> None:
    desk, egress = WorkerDesk(), egress_of(settings)
    alone = await _alone(app, nursery, desk)
    functions = {name: task.function for name, task in app.tasks.items() if not task.is_isolated}
    async with open_session(app.concurrency, settings.http_per_host, egress=egress) as session:
        with ExitStack() as stack:
            threads = ThreadPoolExecutor(min(app.concurrency, 64), thread_name_prefix="handler")
            # A thread cannot be stopped: whoever overstays its grace period is left behind when the process ends.
            stack.callback(threads.shutdown, wait=False, cancel_futures=True)
            if alone is not None:
                stack.callback(alone.close)
            served = function_executors(functions, threads, reached.effects, desk)
            by_group = {f"fn:{name}": each for name, each in served.items()}
            suspects: dict[str, Executor] = {}
            if alone is not None:
                by_group |= {f"fn:{name}": alone.isolated for name, task in app.tasks.items() if task.is_isolated}
                suspects = {f"fn:{name}": alone.suspect for name in functions}

            groups = ("http", *by_group, *commands)

            def executors(stored: StoredSpec) -> Executor | None:
                group = stored.spec.handler.group
                if group == "http":
                    return http_executor(session, stored.signing, lambda: reached.carrier.voucher)
                if run := commands.get(group):
                    return partial(run, stored.tenant)
                return by_group.get(group)

            def suspicious(stored: StoredSpec) -> Executor | None:
                return suspects.get(stored.spec.handler.group)

            options = WorkerOptions(queues=app.queues, groups=groups, labels=app.labels, concurrency=app.concurrency)
            carried = {"labels": ", ".join(app.labels)} if app.labels else {}
            ready = partial(log.info, "ready", handlers=", ".join(groups), concurrency=app.concurrency, **carried)
            log.info("HTTP handlers may call", targets=str(egress))
            hidden = Redaction(own_secrets(settings))
            process = WorkerProcess(
                reached.carrier, executors, options, alone=suspicious, held=nursery.hold, desk=desk, redaction=hidden
            )
            asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, process.drain)
            await process.run(stop, ready)
            if process.is_draining and not stop.is_set():
                raise Drained


async def _alone(app: Worker, nursery: Nursery, desk: WorkerDesk) -> Alone | None:
    """What runs functions in processes of their own; nothing if no other process could find them."""
    reference = reference_of(app)
    isolated = [name for name, task in app.tasks.items() if task.is_isolated]
    if reference is None:
        if isolated:
            raise CannotStart(
                f"{isolated[0]!r} shall run in a process of its own, and no other process can find its worker",
                "make the worker a global of a module, and start it with `foliot worker module:worker`",
            )
        return None
    alone = Alone(nursery, reference, desk, spare=bool(isolated))
    await alone.stock()
    return alone


async def _declare(app: Worker, stop: asyncio.Event, url: str | None = None) -> None:
    """Tell Foliot of the schedules that an application's functions declare; patiently, the API may come later."""
    if app.name is None and not any(task.is_scheduled for task in app.tasks.values()):
        return
    while not stop.is_set():
        try:
            async with AsyncFoliot(url, max_retries=0) as client:
                for job in await declare(client, app):
                    log.info("declared", job=job.id, function=job.name, next_run=job.values["nextRunAt"])
                await _retire(client, app, stop)
        except NotConfigured as error:
            log.warning("the schedules of functions cannot be declared", error=str(error))
        except (Unreachable, Unavailable):
            await any_of(stop, within=timedelta(seconds=1))
            continue
        except ApiError as error:
            log.error("the schedule of a function was refused", error=str(error))  # noqa: TRY400 - it says all
        return


async def _retire(client: AsyncFoliot, app: Worker, stop: asyncio.Event) -> None:
    """See to what earlier versions have declared, when the last worker of them has left."""
    told: set[str] = set()
    while not stop.is_set():
        gone, waiting = await retire(client, app)
        for job in (job for job in gone if job.id not in told):
            told.add(job.id)
            log.warning("no function declares this schedule any more", job=job.id, key=job.key, done=_DONE[app.retired])
        if not waiting:
            return
        await any_of(stop, within=LOOK_AGAIN)
