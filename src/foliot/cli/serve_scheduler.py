"""The scheduler process: fires, promotes, fills back, reaps, keeps house."""

import asyncio
import os
import secrets
import socket
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Protocol

import structlog

from foliot.cli.compose import notary_of, open_database, open_hints, open_vault, say_trouble
from foliot.cli.shell import run_process
from foliot.kit.chance import Chance, fair
from foliot.kit.loop import any_of
from foliot.kit.settings import Settings
from foliot.kit.signals import DUE, READY, Hints
from foliot.kit.zonedata import zone_data
from foliot.services.control import Control
from foliot.services.fire import Firer
from foliot.services.glean import Gleaner
from foliot.services.insights.jobs import draft_again
from foliot.services.membership import Membership
from foliot.services.operate import Operator
from foliot.services.overdue import Overdue
from foliot.services.patrol import Patrol
from foliot.services.promote import Promoter
from foliot.services.read_ahead import ReadAhead
from foliot.services.reap import Reaper
from foliot.services.recalendar import Recalendar
from foliot.services.rerank import Reranker
from foliot.services.reseal import Resealer
from foliot.services.rezone import Rezone
from foliot.services.seal import Sealer
from foliot.services.sweep import Sweeper
from foliot.services.upkeep import Housekeeper
from foliot.store.database import Database
from foliot.store.hints import Listener
from foliot.store.recovery import persist
from foliot.store.specs import SpecBook
from foliot.store.vault import Vault

log = structlog.get_logger("scheduler")


class Duty(Protocol):
    """A service that is repeated for ever: at once while it finds work, else after its own pause."""

    async def run_once(self) -> int: ...
    async def pause(self) -> float: ...
    async def close(self) -> None: ...


def serve_scheduler(settings: Settings) -> None:
    run_process("scheduler", settings, partial(_scheduler, settings), metrics=True)


async def _scheduler(settings: Settings, stop: asyncio.Event) -> None:
    notary = notary_of(settings)
    if notary is None:
        log.info("the audit trail is not signed: set FOLIOT_OBJECTS and FOLIOT_AUDIT_KEY_FILE")
    async with open_database(settings, stop, size=2) as database, open_hints(database) as hints:
        vault = await open_vault(database, settings)
        wake_firer, wake_promoter, wake_operator = asyncio.Event(), asyncio.Event(), asyncio.Event()

        def wake() -> None:
            wake_firer.set()
            wake_promoter.set()
            wake_operator.set()

        ready = partial(hints.give, READY)
        listener = Listener(database, {DUE: wake})
        # Random at each start: what a process left behind that was killed is never mistaken for its successor's.
        membership = Membership(database, secrets.randbits(63), f"{socket.gethostname()}:{os.getpid()}")

        def shards() -> frozenset[int]:
            return membership.shards

        async with asyncio.TaskGroup() as group:
            group.create_task(repeat(listener, stop, asyncio.Event(), lambda: None))
            group.create_task(repeat(membership, stop, asyncio.Event(), wake))
            firer = Firer(database, settings.catch_up_rate, shards=shards)
            group.create_task(repeat(firer, stop, wake_firer, ready, apart=firer.apart))
            group.create_task(repeat(ReadAhead(database, shards), stop, asyncio.Event(), lambda: None))
            promoter = Promoter(database, shards)
            group.create_task(repeat(promoter, stop, wake_promoter, ready, apart=promoter.apart))
            group.create_task(repeat(Operator(database), stop, wake_operator, ready))
            group.create_task(repeat(Reaper(database), stop, asyncio.Event(), ready))
            group.create_task(repeat(Patrol(database), stop, asyncio.Event(), lambda: None))
            group.create_task(repeat(Overdue(database), stop, asyncio.Event(), ready))
            group.create_task(repeat(Sweeper(database), stop, asyncio.Event(), wake_promoter.set))
            group.create_task(repeat(Gleaner(database), stop, asyncio.Event(), ready))
            group.create_task(repeat(Reranker(database), stop, asyncio.Event(), lambda: None))
            group.create_task(repeat(_recalendar(database, hints, vault), stop, asyncio.Event(), lambda: None))
            group.create_task(repeat(Rezone(database, zone_data().version), stop, asyncio.Event(), wake_firer.set))
            housekeeper = Housekeeper(database, timedelta(days=settings.dead_letter_days))
            group.create_task(repeat(housekeeper, stop, asyncio.Event(), lambda: None))
            group.create_task(repeat(Sealer(database, notary), stop, asyncio.Event(), lambda: None))
            group.create_task(repeat(Resealer(database, vault), stop, asyncio.Event(), lambda: None))
            log.info("watching the clock")


def _recalendar(database: Database, hints: Hints, vault: Vault) -> Recalendar:
    control = Control(database, SpecBook(database), hints.give, vault)
    return Recalendar(database, control.move, draft_again)


async def repeat(
    duty: Duty,
    stop: asyncio.Event,
    wake: asyncio.Event,
    found: Callable[[], None],
    chance: Chance | None = None,
    apart: Callable[[], float] = lambda: 0.0,
) -> None:
    """Repeat a duty through any outage until `stop`; `found` is told whenever it found work.

    `apart`: the seconds from the beginning of a round that found work to that of the next.
    """
    keep_on: Callable[[Callable[[], Awaitable[int]]], Awaitable[int]] = partial(
        persist, chance=chance or fair(), stop=stop, say=say_trouble
    )

    async def rest() -> int:
        await any_of(stop, wake, within=timedelta(seconds=await duty.pause()))
        return 1

    try:
        while not stop.is_set():
            wake.clear()
            began = asyncio.get_running_loop().time()
            if await keep_on(duty.run_once):
                found()
                if (left := began + apart() - asyncio.get_running_loop().time()) > 0:
                    await any_of(stop, within=timedelta(seconds=left))
            else:
                await keep_on(rest)
    finally:
        await duty.close()
