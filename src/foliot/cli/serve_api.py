"""The API process."""

import asyncio
from functools import partial

from foliot.api.app import build
from foliot.api.operation import Services
from foliot.api.server import serve
from foliot.cli.compose import (
    check_walls,
    egress_of,
    open_database,
    open_guarded,
    open_hints,
    open_socket,
    open_vault,
    rate_of,
)
from foliot.cli.serve_scheduler import repeat
from foliot.cli.shell import run_process
from foliot.kit.files import allow_many_files
from foliot.kit.settings import Settings
from foliot.kit.signals import FLEET, READY, RECALL
from foliot.kit.tasks import background
from foliot.services.audit import AuditTrail
from foliot.services.backlog import Backlog
from foliot.services.calendars import CalendarKeeper
from foliot.services.cancel import Canceller
from foliot.services.complete import Completer
from foliot.services.control import Control
from foliot.services.dead_letters import DeadLetters
from foliot.services.encryption import Encryption
from foliot.services.explain import Explainer
from foliot.services.fleet import Fleet
from foliot.services.gateway import Gateway
from foliot.services.gauges import Gauges
from foliot.services.graphs import Graphs
from foliot.services.health import Health
from foliot.services.insights import Insights
from foliot.services.keys import Keys
from foliot.services.ledger import Ledger
from foliot.services.once import Once
from foliot.services.operations import Operations
from foliot.services.pacing import Pacing
from foliot.services.paging import Paging
from foliot.services.secrets import Secrets
from foliot.services.submit import Submitter
from foliot.services.tenants import Tenants
from foliot.services.terms import TermsKeeper
from foliot.store.hints import Listener
from foliot.store.specs import SpecBook


def serve_api(settings: Settings) -> None:
    allow_many_files()  # each worker that waits for work holds a connection
    run_process("api", settings, partial(_api, settings))


async def _api(settings: Settings, stop: asyncio.Event) -> None:
    async with (
        open_database(settings, stop, size=6) as database,
        open_guarded(database, size=10) as own,
        open_hints(database) as hints,
    ):
        specs, vault = SpecBook(database), await open_vault(database, settings)
        submitter = Submitter(database, hints.give, vault)
        operations = Operations(own, hints.give)
        gateway = Gateway(database, hints.give, vault=vault)
        tenants, trail = Tenants(database), AuditTrail(database, own)
        pacing = Pacing(database, rate_of(settings))
        backlog = Backlog(database, system=settings.backlog, tenant=settings.tenant_backlog)
        services = Services(
            Control(own, specs, hints.give, vault),
            Insights(own, vault),
            Ledger(own),
            submitter,
            specs,
            operations,
            CalendarKeeper(own),
            DeadLetters(own, hints.give, vault),
            Fleet(database, hints.give),
            gateway,
            tenants,
            Canceller(own, specs, hints.give),
            Completer(database, hints.give, vault=vault),
            Graphs(own, hints.give, vault),
            Keys(database),
            trail,
            Paging(database),
            Explainer(own, vault),
            TermsKeeper(database),
            pacing,
            backlog,
            Secrets(own, vault),
            Encryption(database, vault),
            Once(database, vault),
            egress=egress_of(settings),
            proxies=settings.trusted_proxies,
        )
        app = build(services, Health(database), Gauges(database))
        listener = Listener(database, {READY: gateway.wake, FLEET: gateway.hear, RECALL: gateway.hear})
        listening = repeat(listener, stop, asyncio.Event(), lambda: None)
        going = (submitter.run(), gateway.run(), tenants.run(), trail.run(), pacing.run(), backlog.run())
        socket = open_socket(settings)
        check_walls(own, socket, settings)
        async with background(*going, listening, _dismiss(gateway, stop)):
            await serve(app, socket, stop)


async def _dismiss(gateway: Gateway, stop: asyncio.Event) -> None:
    """Open calls may come to their end, and those that wait for work have theirs now."""
    await stop.wait()
    gateway.dismiss()
