"""Nodes that run handlers, which tell the world what they do."""

import asyncio
from collections import Counter
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from chaos.act import Act
from chaos.records import LIMITS, SIDE, SNOOZE, Effect, Fault, Phase, digest
from chaos.simulation.node import Node
from chaos.simulation.product import HEARTBEAT, LEASE
from chaos.simulation.wire import SimDatabase
from foliot.domain.ids import encode
from foliot.domain.outcome import Failure, Snoozed
from foliot.store.dispatch import Claimed
from foliot.store.specs import StoredSpec
from foliot.worker.carrier import SqlCarrier
from foliot.worker.executor import Assignment, Executor
from foliot.worker.process import WorkerOptions, WorkerProcess

if TYPE_CHECKING:
    from chaos.simulation.world import World

GROUPS: Final = ("http", "fn:quick", "fn:slow", "fn:flaky", "fn:stuck")
LINED_UP: Final = tuple(f"fn:{name}" for name in LIMITS)


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
