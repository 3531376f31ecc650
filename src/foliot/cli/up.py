"""`foliot up`: everything on this machine, supervised."""

import asyncio
import os
import signal
import socket
import sys
from contextlib import suppress
from datetime import timedelta
from typing import Final

import click
import msgspec
import structlog

from foliot.cli.compose import API_SOCKET, bind, url_of
from foliot.cli.shell import SUPERVISED, run_process
from foliot.domain.errors import FoliotError
from foliot.kit.loop import any_of
from foliot.kit.postgres import PostgresError, PostgresServer, find_binaries
from foliot.kit.settings import Access, Settings, client_file
from foliot.services.health import Health
from foliot.services.tenants import Tenants
from foliot.store.database import Database
from foliot.store.migrate import migrate

log = structlog.get_logger("up")

TENANT: Final = "dev"
GRACE: Final = 30.0
"""Seconds that children get to finish; then they are killed. Longer than a worker's own grace period."""


@click.command()
@click.argument("app", required=False, metavar="[MODULE:WORKER]")
@click.pass_obj
def up(settings: Settings, app: str | None) -> None:
    """Run database, API, scheduler and a worker here; Ctrl-C stops them.

    The worker serves HTTP targets and, if given, the functions of MODULE:WORKER.
    """
    if app is not None:
        from foliot.cli.processes import load_app

        load_app(app)  # a typo is told now, not by a child that restarts for ever
    run_process("up", settings, lambda stop: _up(settings, app, stop))


async def _up(settings: Settings, app: str | None, stop: asyncio.Event) -> None:
    listener = bind(settings.host, settings.port)
    server = None if settings.database_url else _server(settings)
    try:
        if server is not None:
            await asyncio.to_thread(_start, server)
        dsn = settings.database_url or server.dsn  # type: ignore[union-attr]
        await _prepare(settings, dsn, listener)
        await _supervise(settings, app, dsn, listener, server, stop)
    finally:
        listener.close()
        if server is not None:
            log.info("stopping the database")
            await asyncio.to_thread(server.stop)


def _server(settings: Settings) -> PostgresServer:
    return PostgresServer(
        settings.home,
        binaries=find_binaries(settings.postgres_bin),
        account=settings.postgres_account,
        log=log.info,
    )


def _start(server: PostgresServer) -> None:
    try:
        server.start()
    except PostgresError as error:
        raise FoliotError(str(error)) from None


async def _prepare(settings: Settings, dsn: str, listener: socket.socket) -> None:
    """Schema, a tenant to develop with, and the file by which clients on this machine find us."""
    for name in await migrate(dsn):
        log.info("applied", migration=name)
    database = await Database.open(dsn, size=2)
    try:
        await Health(database).check_server()
        await _write_client_file(settings, database, listener)
    finally:
        await database.close()


async def _write_client_file(settings: Settings, database: Database, listener: socket.socket) -> None:
    file, tenants = client_file(settings.home), Tenants(database)
    url, key = url_of(listener), None
    with suppress(OSError, msgspec.MsgspecError):
        known = msgspec.json.decode(file.read_bytes(), type=Access)
        key = known.key if await tenants.whose(known.key) else None
    if key is None:
        with suppress(FoliotError):  # it exists from an earlier start
            await tenants.create(TENANT)
        key = await tenants.issue_key(TENANT, "foliot up")
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".new")
    draft.touch(mode=0o600)
    draft.chmod(0o600)
    draft.write_bytes(msgspec.json.encode(Access(url, key)))
    draft.replace(file)


async def _supervise(
    settings: Settings,
    app: str | None,
    dsn: str,
    listener: socket.socket,
    server: PostgresServer | None,
    stop: asyncio.Event,
) -> None:
    environment = {
        **os.environ,
        SUPERVISED: "1",
        "FOLIOT_HOME": str(settings.home),
        "FOLIOT_DATABASE_URL": dsn,
        API_SOCKET: str(listener.fileno()),
    }
    listener.set_inheritable(True)
    children = [
        Child("api", ["api"], environment, listener.fileno()),
        Child("scheduler", ["scheduler"], environment),
        Child("worker", ["worker", *([app] if app else [])], environment),
    ]
    async with asyncio.TaskGroup() as group:
        for child in children:
            group.create_task(child.keep(stop))
        if server is not None:
            group.create_task(_keep_database(server, stop))
        group.create_task(_greet(settings, listener, stop))


async def _keep_database(server: PostgresServer, stop: asyncio.Event) -> None:
    while not stop.is_set():
        if server.poll() is not None:
            log.warning("the database went down; starting it again")
            try:
                await asyncio.to_thread(server.start)
            except PostgresError as error:
                log.error("the database does not start", error=str(error))  # noqa: TRY400 - it says all
                await any_of(stop, within=timedelta(seconds=2))
        await any_of(stop, within=timedelta(milliseconds=100))


async def _greet(settings: Settings, listener: socket.socket, stop: asyncio.Event) -> None:
    """Say where to look next, once the API answers."""
    host, port = listener.getsockname()[:2]
    while not stop.is_set():
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(2):
                reader, writer = await asyncio.open_connection(host, port)
                writer.write(b"GET /ready HTTP/1.0\r\n\r\n")
                answer = await reader.readline()
                writer.close()
            if b"200" in answer:
                break
        await any_of(stop, within=timedelta(milliseconds=50))
    else:
        return
    url = url_of(listener)
    click.echo(
        f"\nFoliot is up.\n  API        {url}/v1   (reference: {url}/docs)\n"
        f"  key        in {client_file(settings.home)}; `foliot` and the SDK find it by themselves\n"
        f"  try        foliot job create hello {url}/health --every PT10S\n"
        "             foliot run list\n  stop       Ctrl-C\n",
        err=True,
    )


class Child:
    """A process that is started again when it dies."""

    def __init__(
        self, name: str, arguments: list[str], environment: dict[str, str], descriptor: int | None = None
    ) -> None:
        self._name = name
        self._arguments = arguments
        self._environment = environment
        self._descriptors = () if descriptor is None else (descriptor,)

    async def keep(self, stop: asyncio.Event) -> None:
        """Run the child until `stop`; a child that dies is back in a tenth of a second, then after longer pauses."""
        pause = 0.1
        while not stop.is_set():
            began = asyncio.get_running_loop().time()
            process = await self._start()
            died = asyncio.ensure_future(process.wait())
            stopping = asyncio.ensure_future(stop.wait())
            await asyncio.wait([died, stopping], return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if not died.done():
                await self._end(process, died)
                return
            if asyncio.get_running_loop().time() - began > 10:
                pause = 0.1
            log.warning("a process ended; starting it again", which=self._name, status=died.result())
            await any_of(stop, within=timedelta(seconds=pause))
            pause = min(pause * 2, 5.0)

    async def _start(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "foliot",
            *self._arguments,
            env=self._environment,
            stdin=asyncio.subprocess.PIPE,  # its end tells the child that we are gone
            pass_fds=self._descriptors,
            start_new_session=True,  # Ctrl-C reaches us alone; we stop the children in order
        )

    async def _end(self, process: asyncio.subprocess.Process, died: "asyncio.Future[int]") -> None:
        process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(asyncio.shield(died), GRACE)
        except TimeoutError:
            log.warning("a process did not finish in time; killing it", which=self._name)
            process.kill()
            await died
