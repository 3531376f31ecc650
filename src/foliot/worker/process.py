"""One worker process: claims, runs, settles, keeps its lease, and leaves in good order."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Final

import msgspec
import structlog

from foliot.domain.errors import FoliotError
from foliot.domain.redaction import KNOWS_NOTHING, Redaction
from foliot.kit import telemetry
from foliot.kit.chance import Chance, fair
from foliot.kit.clock import Steady, Wall, steady, wall
from foliot.kit.loop import any_of
from foliot.store.dispatch import Settlement
from foliot.store.fleet import HEARTBEAT, LEASE
from foliot.store.recovery import persist, trouble
from foliot.worker.claimer import Claimer
from foliot.worker.desk import WorkerDesk
from foliot.worker.executor import Executors
from foliot.worker.failures import Failures
from foliot.worker.port import Carrier
from foliot.worker.rest import LONGEST, Rest
from foliot.worker.runner import Runner
from foliot.worker.settler import Settler
from foliot.worker.shares import Shares
from foliot.worker.starts import Starts
from foliot.worker.underway import BLINK

log = structlog.get_logger("worker")

_FAREWELL: Final = timedelta(seconds=5)
"""How long a worker that leaves tries to get its last results on record."""
_MARGIN: Final = 0.2
"""Share of the lease that is left when handlers that must not outlive it are stopped: time to clean up, and to be
handed back. A worker that is heard every third of its lease never comes so near its end."""


class LeaseLost(FoliotError):  # noqa: N818 - reads aloud
    """Others have taken over what this worker held; it must stop and come back as a new one."""


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    queues: Mapping[str, int] = MappingProxyType({"default": 1})
    """Whose runs it takes, with weights: while all have work, each gets its share."""
    groups: Sequence[str] = ("http",)
    labels: Sequence[str] = ()
    """What it carries: it takes runs that require some of these, or nothing."""
    concurrency: int = 100
    grace: timedelta = timedelta(seconds=25)
    lease: timedelta = LEASE
    heartbeat: timedelta = HEARTBEAT


def new_worker_id() -> int:
    """Random for each start: a name that comes back must not inherit what its predecessor held."""
    return secrets.randbits(62)


class WorkerProcess:
    def __init__(
        self,
        carrier: Carrier,
        executors: Executors,
        options: WorkerOptions,
        chance: Chance | None = None,
        clock: Steady = steady,
        wall: Wall = wall,
        *,
        alone: Executors = lambda _: None,
        held: Callable[[float], None] = lambda _: None,
        desk: WorkerDesk | None = None,
        redaction: Redaction = KNOWS_NOTHING,
    ) -> None:
        """`alone` runs what is under suspicion in a process of its own; `held` hears until when the lease is ours.

        `desk` is the one that the executors were made with. Secrets that `redaction` knows are in no error.
        """
        self._carrier = carrier
        self._executors = executors
        self._alone = alone
        self._held = held
        self._options = options
        self._chance = chance or fair()
        self._clock = clock
        self._settler = Settler(carrier, self._say_lost, Failures(clock).tell)
        self._wall = wall
        self._desk = desk or WorkerDesk(clock, wall)
        underway = self._desk.underway
        self._runner = Runner(options.concurrency, self._settler.add, self._chance, clock, wall, underway, redaction)
        self._starts = Starts(carrier, self._runner)
        self._wake = asyncio.Event()
        self._done = asyncio.Event()
        self._gave_up = asyncio.Event()
        self._lease_ends = float("-inf")
        self._in_doubt = asyncio.Event()
        self._renewed = asyncio.Event()
        self._draining = asyncio.Event()
        self._is_parting = False

    @property
    def is_draining(self) -> bool:
        return self._draining.is_set()

    def drain(self) -> None:
        """Claim nothing more and leave when what runs has come to its end, however long that takes."""
        self._draining.set()
        self._desk.drain()
        self._wake.set()

    async def run(self, stop: asyncio.Event, ready: Callable[[], None] = lambda: None) -> None:
        """Work until `stop`, then finish what runs within the grace period and hand back the rest.

        A worker that is drained, by `drain` or through its heartbeat, returns as well; `is_draining` tells.
        """
        self._desk.open()
        try:
            lanes = await self._register(stop)
            if stop.is_set():
                return
            shares = Shares(lanes, self._options.queues)
            claimer = Claimer(
                self._carrier,
                shares,
                self._executors,
                self._runner,
                self._settler,
                self._options.concurrency,
                self._alone,
            )
            ready()
            async with asyncio.TaskGroup() as group:
                for each in (self._settle(), self._look(), self._note(), self._beat(claimer), self._hurry(stop)):
                    group.create_task(each)
                await self._claim(claimer, stop)
                await self._leave(stop)
                self._done.set()
        except ExceptionGroup as failures:
            if failures.subgroup(LeaseLost):
                await self._tell_what_is_late()
            raise failures.exceptions[0] from None
        finally:
            self._runner.abandon()
            self._desk.close()
            await self._carrier.close()

    async def _register(self, stop: asyncio.Event) -> dict[int, str]:
        lanes: dict[int, str] = {}

        async def register() -> int:
            asked = self._clock()
            told = self._options
            lanes.update(await self._carrier.register(list(told.queues), told.groups, told.labels))
            self._hold(asked + self._options.lease.total_seconds())
            return 1

        await self._persist(register, stop)
        return lanes

    async def _claim(self, claimer: Claimer, stop: asyncio.Event) -> None:
        rest = Rest(self._clock)
        while not (stop.is_set() or self._draining.is_set()):
            if self._clock() >= self._lease_ends:
                await self._doubt(stop)
                continue
            self._wake.clear()
            asked = self._clock()
            if await self._persist(partial(claimer.run_once, rest.patience()), stop):
                rest.found()
            else:
                if self._clock() - asked > LONGEST.total_seconds():
                    rest.waited()
                await any_of(stop, self._wake, within=rest.nap())

    async def _hurry(self, stop: asyncio.Event) -> None:
        await any_of(stop, self._draining, self._done)
        self._carrier.hurry()

    async def _doubt(self, stop: asyncio.Event) -> None:
        """We were cut off or stood still for a whole lease: claim nothing more before we know that we still live."""
        self._renewed.clear()
        self._in_doubt.set()
        await any_of(stop, self._renewed)

    async def _settle(self) -> None:
        # Outcomes are kept through any outage, also while stopping.
        while not (self._done.is_set() and (self._settler.empty or self._gave_up.is_set())):
            if await self._persist(self._settle_once, self._gave_up):
                self._wake.set()  # there is room again
            else:
                await any_of(self._settler.something, self._desk.something, self._done, within=self._settler.rest)

    async def _settle_once(self) -> int:
        # What a handler has said comes before its end, which closes the book.
        if self._desk.owes(self._settler.ends_any):
            await self._desk.tell(self._carrier)
        return await self._settler.run_once()

    async def _look(self) -> None:
        while not self._done.is_set():
            await any_of(self._done, self._runner.busy)
            await any_of(self._done, within=BLINK)
            self._starts.add(self._runner.look())

    async def _note(self) -> None:
        # Apart from looking: deadlines pass also while the database is away.
        while not self._done.is_set():
            await any_of(self._done, self._runner.something_to_mark, self._starts.something)
            await self._persist(self._starts.run_once, self._done)

    async def _beat(self, claimer: Claimer) -> None:
        while not self._done.is_set():
            self._in_doubt.clear()
            await self._persist(partial(self._beat_once, claimer), self._done)
            await any_of(self._done, self._in_doubt, within=self._options.heartbeat)

    async def _beat_once(self, claimer: Claimer) -> int:
        asked = self._clock()
        standing = await self._carrier.beat(claimer.load())
        if standing is None:
            if self._is_parting:
                return 1  # dead by our own word
            raise LeaseLost("this worker was declared dead while it was out of reach", "it is started again by itself")
        # Before the lease: one that is renewed in ignorance of a pause would let things start that may not.
        claimer.hold(standing.paused)
        claimer.recall(standing.stop | standing.recalled)
        if standing.lanes and claimer.widen(standing.lanes):
            self._wake.set()
        if standing.stop:
            self._runner.cancel(standing.stop)
        self._hold(asked + self._options.lease.total_seconds())
        if standing.draining:
            self.drain()
        self._renewed.set()
        await self._carrier.listen(self._wake.set, self._in_doubt.set)
        return 1

    def _hold(self, lease_ends: float) -> None:
        self._lease_ends = lease_ends
        self._runner.hold_until(lease_ends - _MARGIN * self._options.lease.total_seconds())
        self._held(lease_ends)

    async def _tell_what_is_late(self) -> None:
        """What our handlers did while we were out of reach is kept for people, if it cannot count any more."""
        self._runner.abandon()
        known = self._settler.settled + self._settler.backlog
        with suppress(TimeoutError):
            async with asyncio.timeout(_FAREWELL.total_seconds()):
                while self._settler.settled < known:
                    await self._persist(self._settler.run_once, self._gave_up)

    async def _leave(self, stop: asyncio.Event) -> None:
        if not stop.is_set():
            log.info("draining", running=self._runner.going, waiting=self._runner.waiting)
            await self._runner.drain(stop)
        log.info("finishing", running=self._runner.going, waiting=self._runner.waiting)
        self._desk.drain(self._wall() + self._options.grace)
        await self._runner.finish(self._options.grace)
        try:
            async with asyncio.timeout(_FAREWELL.total_seconds()):
                await self._settler.drained()
                await self._persist(self._say_good_bye, self._done)
        except TimeoutError:
            self._gave_up.set()
            log.warning(
                "left without the database: what it does not know of will run again", runs=self._settler.backlog
            )

    async def _say_good_bye(self) -> int:
        self._is_parting = True
        await self._carrier.leave()
        return 1

    async def _persist(self, step: Callable[[], Awaitable[int]], stop: asyncio.Event) -> int:
        def say(error: BaseException, pause: timedelta) -> None:
            log.warning(trouble(error), again_in=f"{pause.total_seconds():.1f}s")

        return await persist(step, chance=self._chance, stop=stop, say=say)

    def _say_lost(self, lost: list[Settlement]) -> None:
        # What was to be handed back and is gone already needs no word: nothing was done for nothing.
        if results := sum(each.outcome.ending.is_result for each in lost):
            telemetry.LATE_RESULTS.inc(results)
            log.warning("results came after the lease was lost and were not taken", runs=results)
