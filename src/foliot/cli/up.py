"""`foliot up`: everything on this machine, supervised."""

import asyncio
import os
import secrets
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple

import click
import structlog

from foliot.cli.child import FOLIOT, Child
from foliot.cli.compose import API_SOCKET, CannotStart, bind, carried_by, egress_of, say_trouble, url_of
from foliot.cli.greeting import greet
from foliot.cli.home import held, introduce
from foliot.cli.processes import check_processes, commands_options, load_app, with_commands
from foliot.cli.shell import SUPERVISED, Stopped, run_process
from foliot.domain.egress import DEVELOPING
from foliot.kit.chance import fair
from foliot.kit.loop import any_of
from foliot.kit.master import new_master_text
from foliot.kit.postgres import PostgresError, PostgresServer, find_binaries
from foliot.kit.settings import Settings, master_file
from foliot.services.health import Health
from foliot.services.tenants import Tenants
from foliot.store.database import Database
from foliot.store.migrate import migrate
from foliot.store.recovery import persist

log = structlog.get_logger("up")

ORPHANS_MAY_HOLD_THE_PORT: Final = 10.0
"""Seconds that the API of a killed `foliot up` gets to notice and go away."""


@click.command()
@click.argument("app", required=False, metavar="[MODULE:WORKER]")
@click.option(
    "--processes",
    metavar="N",
    callback=check_processes,
    help="Worker processes: a number, `auto` for one per core, or a range such as 1..8.",
)
@commands_options
@click.pass_obj
def up(
    settings: Settings, app: str | None, processes: str | None, commands: Path | None, commands_same_user: bool
) -> None:
    """Run database, API, scheduler and a worker here; Ctrl-C stops them.

    The worker serves HTTP targets and, if given, the functions of MODULE:WORKER.
    """
    if app is not None:
        load_app(app)  # a typo is told now, not by a child that restarts for ever
    settings = settings._replace(http_allow=settings.http_allow or DEVELOPING)
    egress_of(settings)  # as above
    carried_by(settings)
    worker = ["worker", *([app] if app else []), *(["--processes", processes] if processes else [])]
    told = with_commands(settings, commands, same_user=commands_same_user)
    run_process("up", told, lambda stop: _up(told, worker, stop))


async def _up(settings: Settings, worker: list[str], stop: asyncio.Event) -> None:
    # The home first, then the port: a second `foliot up` here hears that it is the second, not that a port is taken.
    with (
        held(settings.home) as was_abandoned,
        closing(await _listen(settings, stop, patient=was_abandoned)) as listener,
    ):
        async with _database(settings) as database:
            await _prepare(settings, database.dsn, listener, stop)
            await _supervise(settings, worker, database, listener, stop)


async def _listen(settings: Settings, stop: asyncio.Event, *, patient: bool) -> socket.socket:
    began = time.monotonic()
    has_said = False
    while not stop.is_set():
        try:
            return bind(settings.host, settings.port)
        except CannotStart:
            if not patient or time.monotonic() - began > ORPHANS_MAY_HOLD_THE_PORT:
                raise
        if not has_said:
            log.info("waiting for the processes of a killed `foliot up` to leave the port", port=settings.port)
            has_said = True
        await any_of(stop, within=timedelta(milliseconds=50))
    raise Stopped


class _Running(NamedTuple):
    """The database; without a server of ours somebody else looks after it."""

    dsn: str
    server: PostgresServer | None


@asynccontextmanager
async def _database(settings: Settings) -> AsyncIterator[_Running]:
    if settings.database_url is not None:
        yield _Running(settings.database_url, None)
        return
    try:
        server = PostgresServer(
            settings.home,
            binaries=find_binaries(settings.postgres_bin),
            account=settings.postgres_account,
            log=log.info,
        )
        await asyncio.to_thread(server.start)
    except PostgresError as error:
        raise CannotStart(str(error)) from None
    try:
        yield _Running(server.dsn, server)
    finally:
        log.info("stopping the database")
        await asyncio.to_thread(server.stop)


async def _prepare(settings: Settings, dsn: str, listener: socket.socket, stop: asyncio.Event) -> None:
    """Schema, a tenant to develop with, and the file by which clients on this machine find us."""

    async def prepare() -> int:
        database = await Database.open(dsn, size=2)
        try:
            await Health(database).check_server()  # before anything is written to it
            if applied := await migrate(dsn, contract=settings.database_url is None):
                log.info("brought the schema to this release", migrations=len(applied), last=applied[-1])
            await introduce(settings.home, url_of(listener), Tenants(database))
        finally:
            await database.close()
        return 1

    if not await persist(prepare, chance=fair(), stop=stop, say=say_trouble):
        raise Stopped


async def _supervise(
    settings: Settings, worker: list[str], database: _Running, listener: socket.socket, stop: asyncio.Event
) -> None:
    environment = {
        **os.environ,
        SUPERVISED: "1",
        "FOLIOT_HOME": str(settings.home),
        "FOLIOT_DATABASE_URL": database.dsn,
        "FOLIOT_HTTP_ALLOW": ",".join(settings.http_allow),
        **_signing(settings),
        **_master(settings),
    }
    door = listener.fileno()
    children = (
        # The socket stays open here while the API is away: who calls meanwhile waits instead of being turned away.
        Child("api", [*FOLIOT, "api"], {**environment, API_SOCKET: str(door)}, descriptors=[door]),
        Child("scheduler", [*FOLIOT, "scheduler"], environment),
        Child("worker", [*FOLIOT, *worker], {**environment, **_next_port(settings)}),
    )
    async with asyncio.TaskGroup() as group:
        for child in children:
            group.create_task(child.keep(stop))
        if database.server is not None:
            group.create_task(_keep_database(database.server, stop))
        group.create_task(greet(settings, listener, stop))
        group.create_task(_say_when_stopping(stop))


async def _keep_database(server: PostgresServer, stop: asyncio.Event) -> None:
    while not stop.is_set():
        if server.pid is None:
            log.warning("the database went down; starting it again")
            began = time.monotonic()
            try:
                await asyncio.to_thread(server.start)
                log.info("the database is back", after=f"{time.monotonic() - began:.1f}s")
            except PostgresError as error:
                log.error("the database does not start", error=str(error))  # noqa: TRY400 - it says all
                await any_of(stop, within=timedelta(seconds=2))
        await any_of(stop, within=timedelta(milliseconds=100))


async def _say_when_stopping(stop: asyncio.Event) -> None:
    await stop.wait()
    log.info("stopping; runs under way may finish")


def _signing(settings: Settings) -> dict[str, str]:
    """The audit trail is signed from the first day, with a key of this home's own unless there is another."""
    own = settings.home / "audit.key"
    if settings.audit_key_file is None and not own.exists():
        own.touch(mode=0o600)
        own.write_text(secrets.token_hex(32) + "\n", encoding="ascii")
    return {
        "FOLIOT_OBJECTS": settings.objects or str(settings.home / "objects"),
        "FOLIOT_AUDIT_KEY_FILE": str(settings.audit_key_file or own),
    }


def _master(settings: Settings) -> dict[str, str]:
    """A master key from the first day on, of this home's own unless there is another: secrets need one."""
    if settings.master_key is not None or settings.master_key_file is not None:
        return {}
    own = master_file(settings.home)
    if not own.exists():
        own.touch(mode=0o600)
        own.write_text(new_master_text() + "\n", encoding="ascii")
        log.info("made a master key: without it, secrets and encrypted payloads are lost; keep a copy", file=str(own))
    return {"FOLIOT_MASTER_KEY_FILE": str(own)}


def _next_port(settings: Settings) -> dict[str, str]:
    """The scheduler shows its metrics on the port that was set, the worker on the one after."""
    return {} if settings.metrics_port is None else {"FOLIOT_METRICS_PORT": str(settings.metrics_port + 1)}
