"""A pretended product: keeps the four records of a run that never was, with faults at known times."""

import itertools
import random
from datetime import UTC, datetime
from typing import Any, Final

from chaos.check.bounds import Bounds
from chaos.records import (
    CROWD,
    CROWDED,
    MOST_JOBS,
    PACE,
    RATIONED,
    Dump,
    Effect,
    Evidence,
    Fault,
    Operation,
    Outcome,
    Phase,
)
from chaos.synthetic.trails import trails_of

BEGIN: Final = 1_790_000_000.0
LENGTH: Final = 600.0
QUIET: Final = BEGIN + 400.0
"""From here on there are no faults, and none that is still felt."""
TENANTS: Final = ("north", "south")
EVERYBODY: Final = (*TENANTS, CROWDED, RATIONED)
SLOTS: Final = 3
TARGET: Final = "http://ledger.test/do"
FORBIDDEN: Final = "http://denied.test/do"
BOUNDS: Final = Bounds()


def rfc3339(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


class World:
    """Everything that is written down, and the dice."""

    def __init__(self, seed: int, share: float = 1.0) -> None:
        self.seed = seed
        self._share = share
        self.dice = random.Random(seed)  # noqa: S311 - a repeatable game
        self.operations: list[Operation] = []
        self.effects: list[Effect] = []
        self.jobs: dict[str, list[dict[str, Any]]] = {tenant: [] for tenant in EVERYBODY}
        self.runs: dict[str, list[dict[str, Any]]] = {tenant: [] for tenant in EVERYBODY}
        self.attempts: dict[str, list[dict[str, Any]]] = {tenant: [] for tenant in EVERYBODY}
        self.missed: dict[str, list[dict[str, Any]]] = {tenant: [] for tenant in EVERYBODY}
        self.occurrences: dict[str, list[dict[str, Any]]] = {}
        self.backfilled: dict[str, dict[str, list[str]]] = {}
        self.decided: dict[str, list[dict[str, Any]]] = {}
        self.booked: dict[str, list[int]] = {}
        self.webhooks: list[dict[str, Any]] = []
        self.numbers = itertools.count(1)
        self.fences = itertools.count(1)
        self.faults = self._faults()

    def takes(self) -> bool:
        """Whether something that may be left out is part of this history."""
        return self._share >= 1.0 or self.dice.random() < self._share

    def number(self, prefix: str) -> str:
        return f"{prefix}_{next(self.numbers):06d}"

    def between(self, low: float, high: float) -> float:
        return round(self.dice.uniform(low, high), 6)

    def boot(self, slot: int, at: float) -> str:
        """The worker process in this slot: a new one after each restart."""
        restarts = [f for f in self.faults if f.target == f"worker-{slot}" and f.kind in {"kill", "rollingRestart"}]
        return f"w{slot}.{sum(fault.began < at for fault in restarts)}"

    def available(self, at: float) -> float:
        """The first moment from `at` on when the database answers."""
        for fault in self.faults:
            if fault.target == "postgres" and fault.began <= at <= fault.ended + 0.5:
                at = fault.ended + 0.5 + self.between(0, 0.5)
        return at

    def struck(self, slot: int, start: float, end: float) -> Fault | None:
        """What happens to the worker in this slot in [start, end]."""
        return next(
            (f for f in self.faults if f.target == f"worker-{slot}" and f.began <= end and f.ended >= start), None
        )

    def effect(self, phase: Phase, at: float, run: dict[str, Any], **more: Any) -> None:
        self.effects.append(
            Effect(
                seq=0,
                at=at,
                phase=phase,
                tenant=run["tenant"],
                run=run["id"],
                job=run["job"],
                scheduled_at=run["scheduled"],
                payload=run["digest"],
                **more,
            )
        )

    def operation(self, kind: str, tenant: str, at: float, outcome: Outcome, **more: Any) -> Operation:
        done = Operation(
            number=next(self.numbers),
            client=self.dice.randrange(4),
            tenant=tenant,
            kind=kind,
            invoked=at,
            completed=at + (10.0 if outcome is Outcome.UNKNOWN else 0.06),
            outcome=outcome,
            **more,
        )
        self.operations.append(done)
        return done

    def evidence(self) -> Evidence:
        self.effects.sort(key=lambda effect: effect.at)
        for seq, effect in enumerate(self.effects, 1):
            effect.seq = seq
        self.operations.sort(key=lambda operation: operation.completed)
        dump = Dump(
            taken=BEGIN + LENGTH + BOUNDS.unjudged(quiet=True) + 5,
            jobs=self.jobs,
            runs=self.runs,
            attempts=self.attempts,
            occurrences=self.occurrences,
            backfilled=self.backfilled,
            filled=[name for of_job in self.backfilled.values() for name in of_job],
            decided=self.decided,
            booked=self.booked,
            missed=self.missed,
            audit=trails_of(self.operations),
            sealed=len(self.jobs[RATIONED]),
        )
        return Evidence(
            seed=self.seed,
            operations=self.operations,
            effects=self.effects,
            faults=self.faults,
            dump=dump,
            settings={
                "lease": BOUNDS.lease,
                "webhooks": self.webhooks,
                "schedulers": ["scheduler-0"],
                "remote": f"w{SLOTS - 1}",
                "crowds": {CROWDED: CROWD},
                "commands": True,
                "quotas": {RATIONED: MOST_JOBS},
                "pace": PACE,
                "forbidden": FORBIDDEN,
            },
        )

    def _faults(self) -> list[Fault]:
        shift = self.between(0, 5)

        def fault(kind: str, target: str, began: float, lasts: float, workers: list[str], late: int = 0) -> Fault:
            at = BEGIN + began + shift
            return Fault(kind=kind, target=target, began=at, ended=at + lasts, workers=workers, late=late)

        return [
            fault("kill", "worker-0", 130, 2, ["w0.0"]),
            fault("stop", "worker-1", 150, 25, ["w1.0"], late=2),
            fault("stop", "worker-2", 180, 4, ["w2.0"]),
            fault("rollingRestart", "worker-0", 200, 3, ["w0.1"]),
            fault("postgresKill", "postgres", 215, 3, []),
            fault("kill", "scheduler-0", 230, 60, []),
            fault("partition", "worker-1", 262, 22, ["w1.0"]),
            fault("cutAfterCommit", "proxy-1", 300, 1, []),
        ]
