"""The worker process: HTTP targets, and an application's functions if it has any."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from functools import partial

import structlog

from foliot.cli.reaching import Reach, open_carrier
from foliot.cli.shell import run_process
from foliot.domain.spec import Spec
from foliot.kit.loop import any_of
from foliot.kit.settings import Settings
from foliot.kit.tasks import background
from foliot.sdk import ApiError, AsyncFoliot, NotConfigured, Worker
from foliot.worker.executor import Executor
from foliot.worker.functions import function_executors
from foliot.worker.port import Carrier
from foliot.worker.process import WorkerOptions, WorkerProcess
from foliot.worker.web import http_executor, open_session

log = structlog.get_logger("worker")


def serve_worker(app: Worker, settings: Settings | None = None, reach: Reach = Reach()) -> None:  # noqa: B008 - frozen
    settings = settings or Settings.read(os.environ)
    run_process("worker", settings, partial(_worker, settings, app, reach), metrics=True)


async def _worker(settings: Settings, app: Worker, reach: Reach, stop: asyncio.Event) -> None:
    async with open_carrier(settings, reach, stop) as carrier:
        await _work(carrier, app, reach.url, stop)


async def _work(carrier: Carrier, app: Worker, url: str | None, stop: asyncio.Event) -> None:
    functions = {name: task.function for name, task in app.tasks.items()}
    async with open_session(app.concurrency) as session, background(_declare(app, stop, url)):
        with ExitStack() as stack:
            threads = ThreadPoolExecutor(min(app.concurrency, 64), thread_name_prefix="handler")
            # A thread cannot be stopped: whoever overstays its grace period is left behind when the process ends.
            stack.callback(threads.shutdown, wait=False, cancel_futures=True)
            by_group: dict[str, Executor] = {"http": http_executor(session)}
            by_group |= {f"fn:{name}": each for name, each in function_executors(functions, threads).items()}

            def executors(spec: Spec) -> Executor | None:
                return by_group.get(spec.handler.group)

            options = WorkerOptions(queues=app.queues, groups=tuple(by_group), concurrency=app.concurrency)
            ready = partial(log.info, "ready", handlers=", ".join(by_group), concurrency=app.concurrency)
            await WorkerProcess(carrier, executors, options).run(stop, ready)


async def _declare(app: Worker, stop: asyncio.Event, url: str | None = None) -> None:
    """Tell Foliot of the schedules that an application's functions declare; patiently, the API may come later."""
    scheduled = [task for task in app.tasks.values() if task.is_scheduled]
    while scheduled and not stop.is_set():
        try:
            async with AsyncFoliot(url) as client:
                for task in scheduled:
                    job = await client.put_job(task.key, task.name, task.name, **task.fields)
                    log.info("declared", job=job.id, function=task.name, next_run=job.next_run_at)
        except NotConfigured as error:
            log.warning("the schedules of functions cannot be declared", error=str(error))
        except ApiError as error:
            if error.status in {0, 503}:
                await any_of(stop, within=timedelta(seconds=1))
                continue
            log.error("the schedule of a function was refused", error=str(error))  # noqa: TRY400 - it says all
        return
