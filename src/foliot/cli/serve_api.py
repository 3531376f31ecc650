"""The API process."""

import asyncio
from functools import partial

from foliot.api.app import build
from foliot.api.operation import Services
from foliot.api.server import serve
from foliot.cli.compose import egress_of, open_database, open_hints, open_socket
from foliot.cli.serve_scheduler import repeat
from foliot.cli.shell import run_process
from foliot.kit.files import allow_many_files
from foliot.kit.settings import Settings
from foliot.kit.signals import FLEET, READY, RECALL
from foliot.kit.tasks import background
from foliot.services.audit import AuditTrail
from foliot.services.calendars import CalendarKeeper
from foliot.services.cancel import Canceller
from foliot.services.control import Control
from foliot.services.dead_letters import DeadLetters
from foliot.services.fleet import Fleet
from foliot.services.gateway import Gateway
from foliot.services.gauges import Gauges
from foliot.services.health import Health
from foliot.services.insights import Insights
from foliot.services.ledger import Ledger
from foliot.services.operations import Operations
from foliot.services.submit import Submitter
from foliot.services.tenants import Tenants
from foliot.store.hints import Listener
from foliot.store.specs import SpecBook


def serve_api(settings: Settings) -> None:
    allow_many_files()  # each worker that waits for work holds a connection
    run_process("api", settings, partial(_api, settings))


async def _api(settings: Settings, stop: asyncio.Event) -> None:
    async with open_database(settings, stop, size=16) as database, open_hints(database) as hints:
        specs = SpecBook(database)
        submitter = Submitter(database, hints.give)
        operations = Operations(database, hints.give)
        gateway = Gateway(database, hints.give)
        trail = AuditTrail(database)
        services = Services(
            Control(database, specs, hints.give),
            Insights(database),
            Ledger(database),
            submitter,
            specs,
            operations,
            CalendarKeeper(database),
            DeadLetters(database, hints.give),
            Fleet(database, hints.give),
            gateway,
            Tenants(database),
            Canceller(database, specs, hints.give),
            trail,
            egress=egress_of(settings),
        )
        app = build(services, Health(database), Gauges(database))
        listener = Listener(database, {READY: gateway.wake, FLEET: gateway.hear, RECALL: gateway.hear})
        listening = repeat(listener, stop, asyncio.Event(), lambda: None)
        async with background(submitter.run(), gateway.run(), trail.run(), listening, _dismiss(gateway, stop)):
            await serve(app, open_socket(settings), stop)


async def _dismiss(gateway: Gateway, stop: asyncio.Event) -> None:
    """Open calls may come to their end, and those that wait for work have theirs now."""
    await stop.wait()
    gateway.dismiss()
