"""The API process."""

import asyncio
from functools import partial

from foliot.api.app import build
from foliot.api.operation import Services
from foliot.api.server import serve
from foliot.cli.compose import open_database, open_hints, open_socket
from foliot.cli.shell import run_process
from foliot.kit.settings import Settings
from foliot.kit.tasks import background
from foliot.services.calendars import CalendarKeeper
from foliot.services.control import Control
from foliot.services.dead_letters import DeadLetters
from foliot.services.fleet import Fleet
from foliot.services.gauges import Gauges
from foliot.services.health import Health
from foliot.services.insights import Insights
from foliot.services.ledger import Ledger
from foliot.services.operations import Operations
from foliot.services.submit import Submitter
from foliot.services.tenants import Tenants
from foliot.store.specs import SpecBook


def serve_api(settings: Settings) -> None:
    run_process("api", settings, partial(_api, settings))


async def _api(settings: Settings, stop: asyncio.Event) -> None:
    async with open_database(settings, stop, size=16) as database, open_hints(database) as hints:
        specs = SpecBook(database)
        submitter = Submitter(database, hints.give)
        operations = Operations(database, hints.give)
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
        )
        app = build(services, Tenants(database), Health(database), Gauges(database))
        async with background(submitter.run()):
            await serve(app, open_socket(settings), stop)
