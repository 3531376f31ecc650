"""Everything that one seed puts up, and what it leaves behind for the checker."""

import hashlib
import random
from collections import Counter
from collections.abc import Callable
from typing import Final

from chaos.records import CROWDED, Effect, Fault, Operation
from chaos.simulation.ground import TENANTS, Ground
from chaos.simulation.node import Node
from chaos.simulation.product import ApiNode, SchedulerNode
from chaos.simulation.server import Server
from chaos.simulation.wire import SimConnection
from chaos.simulation.workers import WorkerNode

TIMES_EVERY, FIRST_OF_TIMES = 15, 5
"""Of so many seeds one has a client that minds the time, and a while without any scheduler. Every other of them begins
shortly before clocks are set forward."""
CHORES_EVERY: Final = 3
"""Of so many seeds one has clients with dead letters, snoozes and a paused queue, too, and one has what must wait for
others: the rest stay small."""


class World:
    def __init__(self, ground: Ground, seed: int) -> None:
        self.ground = ground
        self.loop = ground.loop
        self.seed = seed
        self.has_chores = seed % CHORES_EVERY == 0
        self.has_lines = seed % CHORES_EVERY == 1
        self.has_times = seed % TIMES_EVERY == FIRST_OF_TIMES
        self.tenants = TENANTS if self.has_lines else tuple(each for each in TENANTS if each != CROWDED)
        self.left_behind: set[int] = set()
        """Lines in which somebody was seen whose turn it was, and whom nobody had called."""
        self.crashes: list[str] = []
        """What ended nodes that should never end one."""
        self.server = Server(ground)
        self.effects: list[Effect] = []
        self.operations: list[Operation] = []
        self.faults: list[Fault] = []
        self.lost: Counter[str] = Counter()
        """Connections that broke before, after, or some time before their statement was executed (`late`)."""
        self._chance = random.Random(f"{seed}/hints")  # noqa: S311 - guards nothing
        self._listeners: list[tuple[SimConnection, str, Callable[..., None]]] = []
        self._digest = hashlib.blake2b(digest_size=16)
        self.story: list[str] = []
        size = random.Random(f"{seed}/size")  # noqa: S311 - guards nothing
        self.apis = [ApiNode(self, f"api-{number}") for number in range(size.randint(1, 2))]
        self.front = self.apis
        """Those that clients call."""
        self.schedulers = [SchedulerNode(self, f"scheduler-{number}") for number in range(size.randint(1, 2))]
        self.workers = [WorkerNode(self, f"worker-{number}") for number in range(size.randint(1, 3))]

    @property
    def nodes(self) -> list[Node]:
        return [*self.apis, *self.schedulers, *self.workers]

    def note(self, what: str) -> None:
        line = f"{self.loop.time():.6f} {what}"
        self._digest.update(line.encode())
        self.story.append(line)

    def crash(self, boot: str, error: Exception) -> None:
        self.note(f"{boot} crashes")
        self.crashes.append(f"{boot}: {error!r}")

    def fingerprint(self) -> str:
        """The same for two runs in which the same things happened in the same order at the same time."""
        return self._digest.hexdigest()

    def effect(self, effect: Effect) -> None:
        effect.seq, effect.at = len(self.effects) + 1, self.ground.seconds()
        self.note(f"{effect.worker} {effect.phase} {effect.run} attempt {effect.attempt} fence {effect.fence}")
        self.effects.append(effect)

    def listen(self, connection: SimConnection, channel: str, callback: Callable[..., None]) -> None:
        self._listeners.append((connection, channel, callback))

    def hear(self, channel: str) -> None:
        """A hint reaches who listens, a little later, or never."""
        self._listeners = [each for each in self._listeners if not each[0].is_closed()]
        for connection, heard, callback in self._listeners:
            if heard == channel and self._chance.random() < 0.8:
                self.loop.call_later(self._chance.expovariate(1_000), self._deliver, connection, callback)

    def _deliver(self, connection: SimConnection, callback: Callable[..., None]) -> None:
        if not connection.is_closed():
            callback()

    def late(self, target: str) -> None:
        """A statement was executed after its sender had been told that the connection broke."""
        now = self.ground.seconds()
        self.note(f"a statement of {target} arrives late")
        self.faults.append(Fault(kind="delay", target=target, began=now, ended=now, late=1))

    def fault(self, kind: str, target: str, seconds: float, detail: str = "", workers: list[str] | None = None) -> None:
        now = self.ground.seconds()
        self.note(f"fault: {kind} {target} for {seconds:.3f} s {detail}")
        self.faults.append(
            Fault(kind=kind, target=target, began=now, ended=now + seconds, workers=workers or [], detail=detail)
        )
