"""Many workers in one process, each with an identity of its own: what a fleet of machines is measured with.

`python -m foliot.cli.fleet --workers 500 shop:worker`; FOLIOT_URL and FOLIOT_KEY say where. For functions only.
"""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import click
import structlog

from foliot.cli.processes import load_app
from foliot.cli.shell import run_process
from foliot.kit.files import allow_many_files
from foliot.kit.settings import Settings
from foliot.sdk import Worker, protocol
from foliot.store.specs import StoredSpec
from foliot.worker.executor import Executor
from foliot.worker.functions import function_executors
from foliot.worker.gateway import HttpCarrier, open_gateway_session
from foliot.worker.process import WorkerOptions, WorkerProcess, new_worker_id

log = structlog.get_logger("fleet")


@click.command()
@click.argument("app", metavar="MODULE:WORKER")
@click.option("--workers", type=click.IntRange(1, 10_000), default=500, show_default=True, help="Identities.")
@click.option("--concurrency", type=click.IntRange(1, 10_000), help="Handlers at once of each.")
def fleet(app: str, workers: int, concurrency: int | None) -> None:
    """Serve functions as so many workers, all through the gateway."""
    allow_many_files()
    served = load_app(app)
    served.concurrency = concurrency or served.concurrency
    run_process("fleet", Settings.read(os.environ), partial(_fleet, served, workers))


async def _fleet(app: Worker, workers: int, stop: asyncio.Event) -> None:
    access = protocol.access_or_fail(None, None)
    registered: list[int] = []
    with ThreadPoolExecutor(8) as threads:
        functions = {name: task.function for name, task in app.tasks.items()}
        by_group = {f"fn:{name}": each for name, each in function_executors(functions, threads).items()}

        def executors(stored: StoredSpec) -> Executor | None:
            return by_group.get(stored.spec.handler.group)

        def ready(number: int) -> None:
            registered.append(number)
            if len(registered) == workers:
                log.warning("ready", workers=workers)

        options = WorkerOptions(
            queues=app.queues, groups=tuple(by_group), labels=app.labels, concurrency=app.concurrency
        )
        async with open_gateway_session() as session, asyncio.TaskGroup() as group:
            for number in range(workers):
                carrier = HttpCarrier(session, access, new_worker_id(), f"fleet {os.getpid()}:{number}")
                process = WorkerProcess(carrier, executors, options)
                group.create_task(process.run(stop, partial(ready, number)))


if __name__ == "__main__":
    fleet()
