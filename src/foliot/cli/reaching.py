"""How a worker reaches its work: the database if it knows one, else the gateway of an API."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

import msgspec
import structlog

from foliot.cli.compose import dsn_of, master_of, open_database, open_vault
from foliot.cli.failing import NoDatabase
from foliot.kit.settings import Access, Settings
from foliot.kit.tasks import background
from foliot.sdk import protocol
from foliot.store.database import Line
from foliot.store.effects import Effects
from foliot.store.fleet import About
from foliot.store.vault import Vault
from foliot.worker.carrier import SqlCarrier
from foliot.worker.gateway import HttpCarrier, open_gateway_session
from foliot.worker.port import Carrier
from foliot.worker.process import new_worker_id

log = structlog.get_logger("worker")


class Reach(msgspec.Struct, frozen=True):
    """What the command line says of it: an address, or that it shall be HTTP in any case."""

    url: str | None = None
    gateway: bool = False


def gateway_of(settings: Settings, reach: Reach, environment: Mapping[str, str] = os.environ) -> Access | None:
    """The gateway to go through; none for a worker that speaks to the database.

    The command line comes first, then FOLIOT_DATABASE_URL, then FOLIOT_URL with FOLIOT_KEY, then a local `foliot up`.
    """
    if reach.gateway or reach.url is not None:
        return protocol.access_or_fail(reach.url, None)
    if settings.database_url is None and environment.get("FOLIOT_URL") and environment.get("FOLIOT_KEY"):
        return protocol.access_or_fail(None, None)
    return None


class Reached(NamedTuple):
    """A worker's way to its work; `effects` are for `ctx.transaction()`, where there is a database to write to."""

    carrier: Carrier
    effects: Effects | None = None


@asynccontextmanager
async def open_carrier(settings: Settings, reach: Reach, about: About, stop: asyncio.Event) -> AsyncIterator[Reached]:
    """A carrier for one new worker, and whatever it needs around it."""
    worker, name = new_worker_id(), f"{about.host}:{about.pid}"
    if (access := gateway_of(settings, reach)) is not None:
        log.info("work comes through the gateway", url=access.url)
        async with open_gateway_session() as session:
            yield Reached(HttpCarrier(session, access, worker, name, about))
        return
    dsn = _dsn(settings)
    async with open_database(settings, stop, size=1) as database:
        await open_vault(database, settings)  # it is there and fit for use; the worker has its own three connections
    vault = partial(Vault, master=master_of(settings))
    effects = Effects(dsn, worker, settings.handler_connections)
    carrier = SqlCarrier(partial(Line, dsn), worker, name, about, vault)
    try:
        async with background(carrier.run()):
            yield Reached(carrier, effects)
    finally:
        await effects.close()


def _dsn(settings: Settings) -> str:
    try:
        return dsn_of(settings)
    except NoDatabase as error:
        hint = (
            "set FOLIOT_DATABASE_URL, or FOLIOT_URL and FOLIOT_KEY to work through the gateway, "
            "or start `foliot up` in this folder"
        )
        raise NoDatabase(error.message, hint) from None
