"""Processes that are none: APIs, schedulers, workers on the loop's time, to be killed, frozen or cut off."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from chaos.act import Act
from chaos.records import LIMITS, SIDE, SNOOZE, Effect, Fault, Phase, digest
from chaos.simulation.wire import SimConnection, SimDatabase, Weather
from foliot.api.app import build
from foliot.api.operation import Services
from foliot.cli.serve_scheduler import repeat
from foliot.domain.ids import encode
from foliot.domain.outcome import Failure, Snoozed
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
from foliot.store.dispatch import Claimed
from foliot.store.hints import Listener, notify
from foliot.store.specs import SpecBook, StoredSpec
from foliot.store.vault import NO_VAULT
from foliot.worker.carrier import SqlCarrier
from foliot.worker.executor import Assignment, Executor
from foliot.worker.process import LeaseLost, WorkerOptions, WorkerProcess

if TYPE_CHECKING:
    from chaos.simulation.world import World

LEASE: Final = timedelta(seconds=3)
HEARTBEAT: Final = timedelta(seconds=1)
ZONE_DATA: Final = "2026a"
"""The same on every machine, so that a seed means the same on every machine."""
RESTART: Final = (0.2, 2.0)
"""Seconds that a process which ended by itself takes to be back."""
GROUPS: Final = ("http", "fn:quick", "fn:slow", "fn:flaky", "fn:stuck")
LINED_UP: Final = tuple(f"fn:{name}" for name in LIMITS)


class Node:
    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name
        self.boots = 0
        self.weather = Weather(random.Random(f"{world.seed}/weather/{name}"))  # noqa: S311 - guards nothing
        self.chance = random.Random(f"{world.seed}/{name}")  # noqa: S311 - guards nothing
        self.connections: set[SimConnection] = set()
        self.opened = 0
        self.frozen_until = 0.0
        self.cut_until = 0.0
        self.is_dead = False
        self._main: asyncio.Task[None] | None = None
        self._next: asyncio.TimerHandle | None = None

    @property
    def boot(self) -> str:
        return f"{self.name}/{self.boots}"

    @property
    def is_cut(self) -> bool:
        return self.world.server.is_down or self.world.loop.time() < self.cut_until

    async def connect(self, *, hot: bool, settings: dict[str, str]) -> SimConnection:
        if self.is_dead:
            raise ConnectionRefusedError("simulated: the process is dead")
        await self.awake()
        await asyncio.sleep(self.weather.latency())
        if self.is_cut:
            raise ConnectionRefusedError("simulated: nobody is there")
        self.opened += 1
        connection = SimConnection(self, await self.world.ground.lend(hot=hot), settings)
        self.connections.add(connection)
        return connection

    async def awake(self) -> None:
        """Stand still while frozen: as a stopped process does, wherever it next touches the world."""
        while (left := self.frozen_until - self.world.loop.time()) > 0:  # noqa: ASYNC110 - it may be prolonged
            await asyncio.sleep(left)

    def heard(self, statement: str) -> None:
        """The database has executed it."""

    def tell(self, statement: str, outcome: str) -> None:
        self.world.note(f"{self.boot} {statement}: {outcome}")

    def start(self) -> None:
        self.is_dead = False
        self.boots += 1
        self.world.note(f"{self.boot} starts")
        self._main = self.world.loop.create_task(self._live())

    async def _live(self) -> None:
        try:
            await self.serve()
        except LeaseLost:
            self.world.note(f"{self.boot} lost its lease")
        finally:
            self.hang_up()
        self.start_in(self.chance.uniform(*RESTART))

    def start_in(self, seconds: float) -> None:
        if self._next is not None:
            self._next.cancel()
        self._next = self.world.loop.call_later(seconds, self.start)

    async def serve(self) -> None:
        raise NotImplementedError

    async def kill(self) -> None:
        """Nothing of it goes on; what it had sent may still arrive."""
        self.world.note(f"{self.boot} is killed")
        if self._next is not None:
            self._next.cancel()
        self.is_dead = True
        main, self._main = self._main, None
        if main is not None:
            self.hang_up()
            main.cancel()
            await asyncio.wait([main])
            if not main.cancelled() and (error := main.exception()) is not None:
                raise error

    def hang_up(self) -> None:
        """The process is gone."""
        self.disconnect()

    def disconnect(self) -> None:
        for connection in sorted(self.connections, key=lambda each: each.number):
            connection.terminate()

    def crashed(self) -> BaseException | None:
        """What ended it that should never end it."""
        if self._main is None or not self._main.done() or self._main.cancelled():
            return None
        return self._main.exception()


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


class ImpatientCarrier(SqlCarrier):
    """No claim waits inside the server: during a statement its clock stands still, and so it would wait for ever."""

    async def claim(self, *asked: Any, **_: Any) -> list[Claimed]:
        number, lanes, marks, most, portions, *_patience = asked
        return await super().claim(number, lanes, marks, most, portions)


class WorkerNode(Node):
    def __init__(self, world: "World", name: str) -> None:
        super().__init__(world, name)
        self._alive_at = 0.0
        self._snoozed: Counter[tuple[str, int]] = Counter()

    def heard(self, statement: str) -> None:
        if statement in {"beat", "register_worker"}:
            self._silence(self.world.ground.seconds())

    def _silence(self, now: float) -> None:
        """What may cost a lease is that the database heard nothing for so long, whatever the reason."""
        if self._alive_at and now - self._alive_at > LEASE.total_seconds() * 0.9:
            self.world.faults.append(
                Fault(kind="stall", target=self.name, began=self._alive_at, ended=now, workers=[self.boot])
            )
        self._alive_at = now

    def hang_up(self) -> None:
        super().hang_up()
        if self._alive_at:
            self._silence(self.world.ground.seconds())
            self._alive_at = 0.0

    async def serve(self) -> None:
        number = self.chance.getrandbits(62)
        carrier = ImpatientCarrier(SimDatabase(self).line, number, self.boot)
        world = self.world
        queues = {"default": 1, SIDE: 1} if world.has_chores or world.has_lines else {"default": 1}
        groups = (*GROUPS, "fn:snoozing") if world.has_chores else (*GROUPS, *LINED_UP) if world.has_lines else GROUPS
        options = WorkerOptions(queues=queues, groups=groups, concurrency=20, lease=LEASE, heartbeat=HEARTBEAT)
        process = WorkerProcess(
            carrier, self._executors, options, self.chance.random, self.world.loop.time, self.world.ground.now
        )
        await process.run(asyncio.Event())

    def _executors(self, _: StoredSpec) -> Executor:
        return partial(self._execute, self.boot)

    async def _execute(self, boot: str, assignment: Assignment) -> Failure | Snoozed | None:
        run = assignment.run
        payload = msgspec.json.decode(run.payload)
        act = msgspec.convert(payload, Act)
        nonce = f"{boot}-{run.id}-{run.fence}-{self.world.loop.time()}"

        async def say(phase: Phase, *, failed: bool = False) -> None:
            await self.awake()
            if boot != self.boot or self.is_dead:
                raise asyncio.CancelledError  # dead men tell no tales
            self.world.effect(
                Effect(
                    seq=0,
                    at=0.0,
                    phase=phase,
                    tenant=act.tenant,
                    run=encode("run", run.id),
                    attempt=run.attempt + 1,
                    fence=run.fence,
                    worker=boot,
                    job=None if run.job is None else encode("job", run.job),
                    scheduled_at=run.scheduled_at.timestamp(),
                    concurrency_key=act.account,
                    payload=digest(payload),
                    nonce=nonce,
                    failed=failed,
                )
            )

        await say(Phase.START)
        if self._snoozed[boot, run.id] < act.snooze:
            self._snoozed[boot, run.id] += 1
            return Snoozed(timedelta(seconds=SNOOZE), "on purpose")
        await act.take_time(partial(say, Phase.BEAT))
        failing = act.fails(run.attempt + 1)
        await say(Phase.EFFECT)
        await say(Phase.END, failed=failing)
        return Failure("on purpose") if failing else None


Make = Callable[["World", str], Node]
