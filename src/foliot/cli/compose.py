"""What every process is put together from: its database, its hints, its socket."""

import asyncio
import ipaddress
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from math import ceil
from typing import Final

import structlog

from foliot.cli.failing import NoDatabase
from foliot.cli.shell import Stopped
from foliot.domain.bucket import RateLimit, rate_limit
from foliot.domain.egress import USUAL, Egress
from foliot.domain.errors import FoliotError
from foliot.domain.labels import labels_of
from foliot.kit.chance import fair
from foliot.kit.master import Master, parse_master
from foliot.kit.objects import ObjectsError, open_objects
from foliot.kit.postgres import PostgresError, PostgresServer
from foliot.kit.settings import Settings, master_file
from foliot.kit.signals import Hints
from foliot.kit.tasks import background
from foliot.services.health import Health
from foliot.services.seal import Notary
from foliot.store.database import Database
from foliot.store.hints import notify
from foliot.store.recovery import persist, trouble
from foliot.store.vault import Vault, WrongMasterKey

log = structlog.get_logger("foliot")

API_SOCKET: Final = "FOLIOT_API_FD"
"""The listening socket that `foliot up` keeps open across restarts of the API."""


class CannotStart(FoliotError):  # noqa: N818 - reads aloud
    """A process lacks what it needs."""


def dsn_of(settings: Settings) -> str:
    """FOLIOT_DATABASE_URL, or the database of the `foliot up` that runs in FOLIOT_HOME."""
    if settings.database_url is not None:
        return settings.database_url
    try:
        return PostgresServer(settings.home).dsn
    except PostgresError as error:
        hint = "set FOLIOT_DATABASE_URL, or start `foliot up` in this folder"
        raise NoDatabase(str(error), hint) from None


def egress_of(settings: Settings) -> Egress:
    """What HTTP handlers may call: FOLIOT_HTTP_ALLOW less FOLIOT_HTTP_DENY."""
    return Egress.parse(settings.http_allow or USUAL, settings.http_deny)


def carried_by(settings: Settings) -> tuple[str, ...]:
    """The labels that a worker carries: FOLIOT_LABELS."""
    return labels_of(settings.labels, "FOLIOT_LABELS")


def rate_of(settings: Settings) -> RateLimit | None:
    """How fast tenants may call that have no limit of their own: FOLIOT_TENANT_RATE, with what two seconds bring."""
    per_second = settings.tenant_rate
    return rate_limit(per_second, ceil(2 * per_second), "FOLIOT_TENANT_RATE") if per_second else None


SHORTEST_KEY: Final = 32
"""Characters of a key that signs."""


def notary_of(settings: Settings) -> Notary | None:
    """What signs the audit trail, and where it is kept; none unless both are set."""
    if settings.objects is None or settings.audit_key_file is None:
        return None
    try:
        keys = settings.audit_key_file.read_bytes().split()
        objects = open_objects(settings.objects)
    except (OSError, ObjectsError) as error:
        raise CannotStart(
            f"the audit trail cannot be signed: {error}", "look at FOLIOT_AUDIT_KEY_FILE and FOLIOT_OBJECTS"
        ) from None
    if not keys or min(map(len, keys)) < SHORTEST_KEY:
        hint = f"write one with: openssl rand -hex 32 > {settings.audit_key_file}"
        raise CannotStart(f"FOLIOT_AUDIT_KEY_FILE holds a key of fewer than {SHORTEST_KEY} characters, or none", hint)
    return Notary(objects, keys)


def master_of(settings: Settings) -> Master | None:
    """What wraps the keys that encrypt: as it is set, or as `foliot up` left it in its home; none if there is none."""
    file = settings.master_key_file
    if file is None and settings.database_url is None and master_file(settings.home).exists():
        file = master_file(settings.home)
    try:
        if settings.master_key is not None:
            return parse_master(settings.master_key)
        if file is None:
            return None
        return parse_master(file.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise CannotStart(f"the master key cannot be used: {said}", "see docs/guides/encryption.md") from None


async def vault_of(database: Database, settings: Settings) -> Vault:
    """What seals and opens; CannotStart, before anything is served, unless our master key is the database's."""
    vault = Vault(database, master_of(settings))
    try:
        await vault.check()
    except WrongMasterKey as error:
        raise CannotStart(error.message, error.hint) from None
    return vault


async def open_vault(database: Database, settings: Settings) -> Vault:
    """As `vault_of`, for a process that tells of itself."""
    vault = await vault_of(database, settings)
    if (name := await vault.check()) is not None:
        log.info("what is encrypted can be opened", master_key=name, tenants=len(await vault.sealing()))
    return vault


@asynccontextmanager
async def open_database(settings: Settings, stop: asyncio.Event, *, size: int) -> AsyncIterator[Database]:
    """Connect, however long the server takes to come, and make sure that it is fit for use."""
    found: list[Database] = []

    async def connect() -> int:
        if not found:
            found.append(await Database.open(dsn_of(settings), size=size))
        await Health(found[0]).check_server()
        await Health(found[0]).check()
        return 1

    try:
        if not await persist(connect, chance=fair(), stop=stop, say=say_trouble):
            raise Stopped
        yield found[0]
    finally:
        for database in found:
            await database.close()


@asynccontextmanager
async def open_guarded(database: Database, *, size: int) -> AsyncIterator[Database]:
    """Connections on which the server itself keeps tenants apart, where its owner lets us have them."""
    guarded = await database.guarded(size=size)
    if guarded is None:
        log.warning("tenants are kept apart by queries alone: `foliot doctor` says what row level security needs")
        guarded = await Database.open(database.dsn, size=size)
    try:
        yield guarded
    finally:
        await guarded.close()


def check_walls(own: Database, listener: socket.socket, settings: Settings) -> None:
    """CannotStart if others reach the API and only its queries keep tenants apart, unless the operator wants it so."""
    if own.is_guarded or settings.one_wall or _is_loopback(listener):
        return
    listener.close()
    raise CannotStart(
        "other machines can reach this address, and the database does not keep tenants apart itself",
        "`foliot doctor` says what row level security needs; FOLIOT_ONE_WALL=1 goes on with queries alone",
    )


@asynccontextmanager
async def open_hints(database: Database) -> AsyncIterator[Hints]:
    """A notifier of this process's own, on a connection of its own."""
    line = database.line(hot=False)
    hints = Hints(partial(notify, line))
    try:
        async with background(hints.run()):
            yield hints
    finally:
        await line.close()


def open_socket(settings: Settings) -> socket.socket:
    """The socket that `foliot up` handed down, or one of our own."""
    if handed := os.environ.pop(API_SOCKET, None):
        return socket.socket(fileno=int(handed))
    return bind(settings.host, settings.port)


def bind(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        hint = "stop what listens there, or choose another port with FOLIOT_PORT"
        raise CannotStart(f"cannot listen on {host}:{port}: {error.strerror}", hint) from None
    listener.listen(1024)
    listener.setblocking(False)
    if not _is_loopback(listener):
        log.warning(
            "other machines can reach this address, and nothing on it is encrypted: keys and payloads can be read on "
            "their way; put a proxy with TLS before it",
            host=host,
            port=listener.getsockname()[1],
        )
    return listener


def _is_loopback(listener: socket.socket) -> bool:
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def say_trouble(error: BaseException, pause: timedelta) -> None:
    log.warning(trouble(error), again_in=f"{pause.total_seconds():.1f}s")
