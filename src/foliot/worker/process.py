"""One worker process: claims, runs, settles, keeps its lease, and leaves in good order."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

import msgspec
import structlog

from foliot.domain.errors import FoliotError
from foliot.kit import telemetry
from foliot.kit.chance import Chance, fair
from foliot.kit.loop import any_of
from foliot.store.dispatch import Claimed, Settlement
from foliot.store.fleet import HEARTBEAT
from foliot.store.recovery import persist
from foliot.worker.claimer import Claimer
from foliot.worker.executor import Executors
from foliot.worker.port import Carrier
from foliot.worker.runner import BLINK, Runner
from foliot.worker.settler import Settler

log = structlog.get_logger("worker")

_SHORTEST_REST: Final = timedelta(milliseconds=1)
_LONGEST_REST: Final = timedelta(milliseconds=500)


class LeaseLost(FoliotError):  # noqa: N818 - reads aloud
    """Others have taken over what this worker held; it must stop and come back as a new one."""


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    queues: Sequence[str] = ("default",)
    groups: Sequence[str] = ("http",)
    concurrency: int = 100
    grace: timedelta = timedelta(seconds=25)


def new_worker_id() -> int:
    """Random for each start: a name that comes back must not inherit what its predecessor held."""
    return secrets.randbits(62)


class WorkerProcess:
    def __init__(
        self, carrier: Carrier, executors: Executors, options: WorkerOptions, chance: Chance | None = None
    ) -> None:
        self._carrier = carrier
        self._executors = executors
        self._options = options
        self._chance = chance or fair()
        self._settler = Settler(carrier, self._say_lost)
        self._runner = Runner(options.concurrency, self._settler.add, self._chance)
        self._wake = asyncio.Event()
        self._done = asyncio.Event()

    async def run(self, stop: asyncio.Event, ready: Callable[[], None] = lambda: None) -> None:
        """Work until `stop`, then finish what runs within the grace period and hand back the rest."""
        try:
            lanes = await self._register(stop)
            if stop.is_set():
                return
            claimer = Claimer(
                self._carrier, lanes, self._executors, self._runner, self._settler, self._options.concurrency
            )
            ready()
            async with asyncio.TaskGroup() as group:
                for each in (self._settle, self._look, self._beat):
                    group.create_task(each())
                await self._claim(claimer, stop)
                await self._leave()
                self._done.set()
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        finally:
            self._runner.abandon()
            await self._carrier.close()

    async def _register(self, stop: asyncio.Event) -> list[int]:
        lanes: list[int] = []

        async def register() -> int:
            lanes[:] = await self._carrier.register(self._options.queues, self._options.groups)
            return 1

        await self._persist(register, stop)
        return lanes

    async def _claim(self, claimer: Claimer, stop: asyncio.Event) -> None:
        pause = _SHORTEST_REST
        while not stop.is_set():
            self._wake.clear()
            if await self._persist(claimer.run_once, stop):
                pause = _SHORTEST_REST
                await asyncio.sleep(0)  # the handlers' turn
            else:
                # Short naps right after work, longer ones the longer nothing came: a steady trickle is met at once,
                # and an idle worker costs two statements a second.
                await any_of(stop, self._wake, within=pause)
                pause = min(pause * 2, _LONGEST_REST)

    async def _settle(self) -> None:
        never = asyncio.Event()  # outcomes are kept through any outage, also while stopping
        while not (self._done.is_set() and self._settler.empty):
            if await self._persist(self._settler.run_once, never):
                self._wake.set()  # there is room again
            else:
                await any_of(self._settler.something, self._done)

    async def _look(self) -> None:
        while not self._done.is_set():
            if begun := self._runner.look(datetime.now(UTC)):
                await self._persist(partial(self._note, begun), self._done)
            await any_of(self._done, within=BLINK)

    async def _note(self, begun: list[tuple[Claimed, datetime]]) -> int:
        await self._carrier.note_started(begun)
        return len(begun)

    async def _beat(self) -> None:
        while not self._done.is_set():
            await self._persist(self._beat_once, self._done)
            await any_of(self._done, within=HEARTBEAT)

    async def _beat_once(self) -> int:
        if not await self._carrier.beat():
            raise LeaseLost("this worker was declared dead while it was out of reach", "it is started again by itself")
        await self._carrier.listen(self._wake.set)
        return 1

    async def _leave(self) -> None:
        log.info("finishing", running=self._runner.going, waiting=self._runner.waiting)
        await self._runner.finish(self._options.grace)
        await self._settler.drained()
        await self._carrier.leave()

    async def _persist(self, step: Callable[[], Awaitable[int]], stop: asyncio.Event) -> int:
        def say(error: BaseException, pause: timedelta) -> None:
            log.warning("database out of reach", error=str(error) or type(error).__name__, again_in=str(pause))

        return await persist(step, chance=self._chance, stop=stop, say=say)

    def _say_lost(self, lost: list[Settlement]) -> None:
        telemetry.LATE_RESULTS.inc(len(lost))
        log.warning("results came after the lease was lost and were not taken", runs=len(lost))
