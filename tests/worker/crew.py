"""Workers as `foliot worker` starts them, inside the test."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from foliot.domain.egress import EVERYWHERE
from foliot.sdk import Context
from foliot.store.database import Line
from foliot.store.effects import Effects
from foliot.store.specs import StoredSpec
from foliot.store.vault import NO_VAULT, Vault
from foliot.worker.carrier import SqlCarrier
from foliot.worker.desk import WorkerDesk
from foliot.worker.executor import Executor
from foliot.worker.functions import function_executors
from foliot.worker.process import WorkerOptions, WorkerProcess, new_worker_id
from foliot.worker.web import http_executor, open_session
from worker.making import PATIENCE

Function = Callable[[Context, Any], Any]


async def noop(ctx: Context, payload: Any) -> None:
    """Does nothing, unless it is asked to fail."""
    if payload == "fail":
        raise ValueError("as asked")


class Crew:
    """Starts workers as `foliot worker` does, and stops them."""

    def __init__(
        self,
        dsn: str,
        line: Callable[..., Line] | None = None,
        vault: Callable[[Line], Vault] = lambda _: NO_VAULT,
    ) -> None:
        self._dsn = dsn
        self._vault = vault
        self._line = line or partial(Line, dsn)

    @asynccontextmanager
    async def work(self, functions: dict[str, Function], **options: Any) -> AsyncIterator["Hired"]:
        with ThreadPoolExecutor(4) as threads:
            async with open_session(10, egress=EVERYWHERE) as session:
                hired = Hired(new_worker_id())
                carrier = SqlCarrier(self._line, hired.id, "test", vault=self._vault)
                effects, desk = Effects(self._dsn, hired.id, 2), WorkerDesk()
                served = function_executors(functions, threads, effects, desk)
                by_group = {f"fn:{name}": each for name, each in served.items()}

                def executors(stored: StoredSpec) -> Executor | None:
                    if stored.spec.handler.group == "http":
                        return http_executor(session, stored.signing, lambda: carrier.voucher)
                    return by_group.get(stored.spec.handler.group)

                hired.process = process = WorkerProcess(
                    carrier,
                    executors,
                    WorkerOptions(groups=("http", *by_group), **options),
                    lambda: 0.0,
                    desk=desk,
                )
                hired.task = asyncio.ensure_future(process.run(hired.stop, hired.ready.set))
                try:
                    await asyncio.wait_for(
                        asyncio.wait(
                            [hired.task, asyncio.ensure_future(hired.ready.wait())], return_when="FIRST_COMPLETED"
                        ),
                        PATIENCE,
                    )
                    yield hired
                finally:
                    hired.stop.set()
                    await asyncio.wait([hired.task], timeout=PATIENCE)
                    hired.task.cancel()
                    await effects.close()


class Hired:
    def __init__(self, number: int) -> None:
        self.id = number
        self.stop = asyncio.Event()
        self.ready = asyncio.Event()
        self.task: asyncio.Future[None]
        self.process: WorkerProcess

    async def leave(self) -> None:
        self.stop.set()
        await asyncio.wait_for(self.task, PATIENCE)
