"""The three processes: api, scheduler, worker."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Protocol

import structlog

from foliot.cli.shell import run_process
from foliot.domain.errors import FoliotError
from foliot.kit.chance import fair
from foliot.kit.loop import any_of
from foliot.kit.postgres import PostgresError, PostgresServer
from foliot.kit.settings import Settings
from foliot.kit.signals import DUE, READY, Hints
from foliot.services.health import Health
from foliot.store.database import Database, Line
from foliot.store.hints import notify
from foliot.store.recovery import persist

if TYPE_CHECKING:
    from foliot.domain.spec import Spec
    from foliot.sdk.worker import Worker
    from foliot.worker.executor import Executor

log = structlog.get_logger("foliot")


class NoDatabase(FoliotError):  # noqa: N818 - reads aloud
    """This process does not know its database."""


def dsn_of(settings: Settings) -> str:
    """FOLIOT_DATABASE_URL, or the database of the `foliot up` that runs in FOLIOT_HOME."""
    if settings.database_url is not None:
        return settings.database_url
    try:
        return PostgresServer(settings.home).dsn
    except PostgresError as error:
        hint = "set FOLIOT_DATABASE_URL, or start `foliot up` in this folder"
        raise NoDatabase(f"no database is known here: {error}", hint) from None


async def open_database(dsn: str, stop: asyncio.Event, *, size: int = 8) -> Database | None:
    """Connect, however long the server takes to come; none if told to stop meanwhile."""
    found: list[Database] = []

    async def connect() -> int:
        found.append(await Database.open(dsn, size=size))
        return 1

    await persist(connect, chance=fair(), stop=stop, say=_say)
    if not found:
        return None
    await Health(found[0]).check_server()
    await Health(found[0]).check()
    return found[0]


def serve_api(settings: Settings) -> None:
    run_process("api", settings, partial(_api, settings))


def serve_scheduler(settings: Settings) -> None:
    run_process("scheduler", settings, partial(_scheduler, settings))


def serve_worker(worker: "Worker | None", settings: Settings | None = None) -> None:
    """Serve HTTP targets and, if given, an application's functions."""
    settings = settings or Settings.read(os.environ)
    run_process("worker", settings, partial(_worker, settings, worker))


async def _api(settings: Settings, stop: asyncio.Event) -> None:
    from foliot.api.app import build
    from foliot.api.operation import Services
    from foliot.api.server import serve
    from foliot.services.control import Control
    from foliot.services.insights import Insights
    from foliot.services.submit import Submitter
    from foliot.services.tenants import Tenants
    from foliot.store.specs import SpecBook

    database = await open_database(dsn_of(settings), stop, size=16)
    if database is None:
        return
    async with _hints(database) as hints, AsyncExitStack() as stack:
        stack.push_async_callback(database.close)
        specs = SpecBook(database)
        submitter = Submitter(database, hints.give)
        services = Services(Control(database, specs, hints.give), Insights(database), submitter, specs)
        app = build(services, Tenants(database), Health(database))
        async with _background(submitter.run()):
            await serve(app, _listen(settings), stop)


class Duty(Protocol):
    """A service that the scheduler repeats."""

    async def run_once(self) -> int: ...
    async def close(self) -> None: ...


async def _scheduler(settings: Settings, stop: asyncio.Event) -> None:
    from foliot.services.fire import Firer
    from foliot.services.promote import Promoter
    from foliot.services.reap import Reaper
    from foliot.services.upkeep import Housekeeper

    database = await open_database(dsn_of(settings), stop, size=2)
    if database is None:
        return
    firer, promoter = Firer(database), Promoter(database)
    async with _hints(database) as hints:
        wakes = [asyncio.Event(), asyncio.Event()]
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_listen_for_due(database, wakes, stop))
                group.create_task(_repeat(firer, firer.pause, stop, wakes[0], partial(hints.give, READY)))
                group.create_task(_repeat(promoter, promoter.pause, stop, wakes[1], partial(hints.give, READY)))
                group.create_task(_repeat(Reaper(database), _seconds(1), stop, asyncio.Event(), partial(hints.give, READY)))
                group.create_task(_repeat(Housekeeper(database), _seconds(30), stop, asyncio.Event(), lambda: None))
                log.info("watching the clock")
        finally:
            await database.close()


async def _worker(settings: Settings, app: "Worker | None", stop: asyncio.Event) -> None:
    from foliot.worker.carrier import SqlCarrier
    from foliot.worker.functions import function_executors
    from foliot.worker.process import WorkerOptions, WorkerProcess, new_worker_id
    from foliot.worker.web import http_executor, open_session

    dsn = dsn_of(settings)
    database = await open_database(dsn, stop, size=1)
    if database is None:
        return
    await database.close()
    functions = {} if app is None else {name: task.function for name, task in app.tasks.items()}
    concurrency = 100 if app is None else app.concurrency
    options = WorkerOptions(
        queues=("default",) if app is None else app.queues,
        groups=("http", *(f"fn:{name}" for name in functions)),
        concurrency=concurrency,
    )
    async with open_session(concurrency) as session, AsyncExitStack() as stack:
        threads = ThreadPoolExecutor(max_workers=min(concurrency, 64), thread_name_prefix="handler")
        stack.callback(threads.shutdown, wait=False, cancel_futures=True)
        by_group: dict[str, Executor] = {"http": http_executor(session)}
        by_group |= {f"fn:{name}": each for name, each in function_executors(functions, threads).items()}

        def executors(spec: "Spec") -> "Executor | None":
            return by_group.get(spec.handler.group)

        name = f"{socket.gethostname()}:{os.getpid()}"
        process = WorkerProcess(SqlCarrier(dsn, new_worker_id(), name), executors, options)
        ready = partial(log.info, "ready", handlers=", ".join(sorted(by_group)), concurrency=concurrency)
        async with _background(_declare(app, stop)):
            await process.run(stop, ready)


async def _declare(app: "Worker | None", stop: asyncio.Event) -> None:
    """Tell Foliot of the schedules that an application's functions declare; patiently, the API may come later."""
    from foliot.sdk import ApiError, AsyncFoliot, NotConfigured

    scheduled = [] if app is None else [task for task in app.tasks.values() if task.is_scheduled]
    while scheduled and not stop.is_set():
        try:
            async with AsyncFoliot() as client:
                for task in scheduled:
                    job = await client.put_job(task.key, task.name, task.name, **task.fields)
                    log.info("declared", job=job.id, function=task.name, next_run=job.next_run_at)
            return
        except NotConfigured as error:
            log.warning("schedules of functions cannot be declared", error=str(error))
            return
        except ApiError as error:
            if error.status not in {0, 503}:
                log.error("a function's schedule was refused", error=str(error))
                return
            await any_of(stop, timeout=timedelta(seconds=1))


async def _repeat(
    duty: Duty,
    pause: Callable[[], Awaitable[float]],
    stop: asyncio.Event,
    wake: asyncio.Event,
    found: Callable[[], None],
) -> None:
    """Repeat a duty: at once while it finds work, else after `pause` or when woken; through any outage."""
    chance = fair()

    async def rest() -> int:
        await any_of(stop, wake, timeout=timedelta(seconds=await pause()))
        return 1

    try:
        while not stop.is_set():
            wake.clear()
            if await persist(duty.run_once, chance=chance, stop=stop, say=_say):
                found()
            else:
                await persist(rest, chance=chance, stop=stop, say=_say)
    finally:
        await duty.close()


def _seconds(number: float) -> Callable[[], Awaitable[float]]:
    async def pause() -> float:  # noqa: RUF029 - the shape of a pause
        return number

    return pause


async def _listen_for_due(database: Database, wakes: list[asyncio.Event], stop: asyncio.Event) -> None:
    """Wake the duties when something may fall due sooner than they think. Asked again every few seconds: a silent
    connection is no sign of health.
    """
    line = database.line(hot=False)
    heard: list[object] = []

    def wake(*_: object) -> None:
        for event in wakes:
            event.set()

    async def listen() -> int:
        connection = await line.connection()
        if connection not in heard:
            heard[:] = [connection]
            await connection.add_listener(DUE, wake)
        await connection.fetchval("SELECT 1")
        return 1

    try:
        while not stop.is_set():
            await persist(listen, chance=fair(), stop=stop, say=_say)
            await any_of(stop, timeout=timedelta(seconds=5))
    finally:
        await line.close()


class _background:  # noqa: N801 - reads like the context managers of contextlib
    """Own a coroutine for the length of a block: started on entry, cancelled on exit, its failure ends the block."""

    def __init__(self, coroutine: Awaitable[None]) -> None:
        self._coroutine = coroutine
        self._group = asyncio.TaskGroup()

    async def __aenter__(self) -> None:
        await self._group.__aenter__()

        async def run() -> None:
            await self._coroutine

        self._task = self._group.create_task(run())

    async def __aexit__(self, *exception: object) -> None:
        self._task.cancel()
        await self._group.__aexit__(*exception)  # type: ignore[arg-type]


class _hints:  # noqa: N801 - as above
    """A notifier of this process's own, on a connection of its own."""

    def __init__(self, database: Database) -> None:
        self._line: Line = database.line(hot=False)
        self._hints = Hints(partial(notify, self._line))
        self._task = _background(self._hints.run())

    async def __aenter__(self) -> Hints:
        await self._task.__aenter__()
        return self._hints

    async def __aexit__(self, *exception: object) -> None:
        await self._task.__aexit__(*exception)
        await self._line.close()


def _listen(settings: Settings) -> socket.socket:
    """The socket that `foliot up` handed down, or one of our own."""
    if handed := os.environ.get("FOLIOT_API_FD"):
        return socket.socket(fileno=int(handed))
    return bind(settings.host, settings.port)


def bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        hint = "stop what listens there, or choose another port with FOLIOT_PORT"
        raise NoDatabase(f"cannot listen on {host}:{port}: {error.strerror}", hint) from None
    listener.listen(1024)
    listener.setblocking(False)
    return listener


def _say(error: BaseException, pause: timedelta) -> None:
    log.warning("database out of reach", error=str(error) or type(error).__name__, again_in=f"{pause.total_seconds():.1f}s")
