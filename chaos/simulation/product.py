"""The product's own nodes: APIs and schedulers, put together as their commands do."""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from chaos.simulation.node import Node
from chaos.simulation.wire import SimDatabase
from foliot.api.app import build
from foliot.api.operation import Services
from foliot.cli.serve_scheduler import repeat
from foliot.kit.signals import DUE, READY, Hints
from foliot.services.audit import AuditTrail
from foliot.services.backlog import Backlog
from foliot.services.calendars import CalendarKeeper
from foliot.services.cancel import Canceller
from foliot.services.complete import Completer
from foliot.services.control import Control
from foliot.services.dead_letters import DeadLetters
from foliot.services.encryption import Encryption
from foliot.services.explain import Explainer
from foliot.services.fire import Firer
from foliot.services.fleet import Fleet
from foliot.services.gateway import Gateway
from foliot.services.gauges import Gauges
from foliot.services.glean import Gleaner
from foliot.services.graphs import Graphs
from foliot.services.health import Health
from foliot.services.insights import Insights
from foliot.services.insights.jobs import draft_again
from foliot.services.keys import Keys
from foliot.services.ledger import Ledger
from foliot.services.membership import Membership
from foliot.services.once import Once
from foliot.services.operate import Operator
from foliot.services.operations import Operations
from foliot.services.pacing import Pacing
from foliot.services.paging import Paging
from foliot.services.promote import Promoter
from foliot.services.reap import Reaper
from foliot.services.recalendar import Recalendar
from foliot.services.rezone import Rezone
from foliot.services.secrets import Secrets
from foliot.services.submit import Submitter
from foliot.services.sweep import Sweeper
from foliot.services.tenants import Tenants
from foliot.services.terms import TermsKeeper
from foliot.services.upkeep import Housekeeper
from foliot.store.hints import Listener, notify
from foliot.store.specs import SpecBook
from foliot.store.vault import NO_VAULT

if TYPE_CHECKING:
    from chaos.simulation.world import World

LEASE: Final = timedelta(seconds=3)
HEARTBEAT: Final = timedelta(seconds=1)
ZONE_DATA: Final = "2026a"
"""The same on every machine, so that a seed means the same on every machine."""


class ApiNode(Node):
    app: Any = None

    def __init__(self, world: "World", name: str) -> None:
        super().__init__(world, name)
        self._requests: list[asyncio.Task[Any]] = []

    def take(self, request: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Work on a request for as long as the process lives, whether or not its caller still waits."""
        task = self.world.loop.create_task(request)
        self._requests = [*(each for each in self._requests if not each.done()), task]
        return task

    def hang_up(self) -> None:
        super().hang_up()
        for each in self._requests:
            each.cancel()

    async def serve(self) -> None:
        database = SimDatabase(self)
        monotonic = self.world.loop.time
        hints = Hints(partial(notify, database.line(hot=False)))
        specs = SpecBook(database, monotonic)
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
            Gateway(database, hints.give),  # its workers speak to the database themselves
            Tenants(database, monotonic),
            Canceller(database, specs, hints.give),
            Completer(database, hints.give),
            Graphs(database, hints.give),
            Keys(database),
            AuditTrail(database),
            Paging(database),
            Explainer(database),
            TermsKeeper(database),
            Pacing(database, monotonic=monotonic),
            Backlog(database),
            Secrets(database, NO_VAULT),
            Encryption(database, NO_VAULT),
            Once(database),
        )
        app = build(services, Health(database), Gauges(database, monotonic))
        async with asyncio.TaskGroup() as group:
            group.create_task(submitter.run())
            group.create_task(hints.run())
            self.app = app
            try:
                await asyncio.Event().wait()
            finally:
                self.app = None


class SchedulerNode(Node):
    async def serve(self) -> None:
        database = SimDatabase(self)
        hints = Hints(partial(notify, database.line(hot=False)))
        stop, wake_firer, wake_promoter = asyncio.Event(), asyncio.Event(), asyncio.Event()
        wake_operator = asyncio.Event()

        def wake() -> None:
            wake_firer.set()
            wake_promoter.set()
            wake_operator.set()

        def nothing() -> None:
            pass

        ready = partial(hints.give, READY)
        chance, clock = self.chance.random, self.world.loop.time
        membership = Membership(database, self.chance.getrandbits(62), self.boot, clock)

        def shards() -> frozenset[int]:
            return membership.shards

        async with asyncio.TaskGroup() as group:
            group.create_task(hints.run())
            group.create_task(repeat(Listener(database, {DUE: wake}), stop, asyncio.Event(), nothing, chance))
            group.create_task(repeat(membership, stop, asyncio.Event(), wake, chance))
            group.create_task(repeat(Firer(database, shards=shards, clock=clock), stop, wake_firer, ready, chance))
            group.create_task(repeat(Promoter(database, shards, clock), stop, wake_promoter, ready, chance))
            group.create_task(repeat(Operator(database), stop, wake_operator, ready, chance))
            reaper = Reaper(database, LEASE, clock, LEASE / 5)
            group.create_task(repeat(reaper, stop, asyncio.Event(), ready, chance))
            group.create_task(repeat(Sweeper(database), stop, asyncio.Event(), wake_promoter.set, chance))
            group.create_task(repeat(Gleaner(database), stop, asyncio.Event(), ready, chance))
            control = Control(database, SpecBook(database, clock), hints.give)
            recalendar = Recalendar(database, control.move, draft_again)
            group.create_task(repeat(recalendar, stop, asyncio.Event(), nothing, chance))
            rezone = Rezone(database, ZONE_DATA)
            group.create_task(repeat(rezone, stop, asyncio.Event(), wake_firer.set, chance))
            group.create_task(repeat(Housekeeper(database), stop, asyncio.Event(), nothing, chance))
