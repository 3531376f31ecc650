"""When which fault strikes whom: bursts with quiet in between, from the seed."""

import asyncio
import math
import random
import time
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from chaos.deeds import Deeds
from chaos.places import ALONE, REMOTE
from chaos.poison import Poisoner
from chaos.records import Fault
from chaos.topology import Topology

WARM_UP: Final = 10.0
BURST: Final = 30.0
"""Seconds that a burst takes at most, nearly: within them all its faults have begun and most have ended."""
QUIET: Final = 40.0
"""Seconds without any fault after a burst: what was lost must be back by then."""
ABREAST: Final = 5
"""Faults in one burst: a deck lasts for six, so that ten minutes see all of it."""
TURN: Final = 8
ALONE_IN: Final = {2: ("misfire", "schedulers"), 5: ("rollingRestart", "all")}
"""Bursts of a turn in which only this happens. Both silence all schedulers one way or another: a worker that is killed
meanwhile is rightly found later, and how quickly workers are found is one of the numbers that we publish."""
KINDS: Final = (
    "kill", "stop", "stopSupervisor", "postgresKill", "postgresStop", "delay", "stall", "reset", "halfOpen",
    "cutBeforeCommit", "cutAfterCommit", "diskFull", "clockJump", "partition", "rollingRestart", "poison",
)  # fmt: skip


POISONED: Final = TURN - 1
"""The burst of a turn in which a run kills one worker after the other. It takes longer than a burst, so it is the last;
and it begins when the others have been struck, so that what they lost is not taken over by somebody who falls next."""
POISON_AFTER: Final = 12.0
REMOTE_KINDS: Final = ("kill", "stop", "partition", "reset", "stall", "delay", "halfOpen")
"""What happens to the worker behind the gateway: one of them in every burst, besides what the deck deals."""


class Strike(NamedTuple):
    kind: str
    target: str


class Burst(NamedTuple):
    quiet: float
    """Seconds of peace before it."""
    strikes: list[tuple[float, Strike]]
    """Seconds after its beginning, and what happens."""


def deck(chance: random.Random) -> list[Strike]:
    """One of everything, in random order; whom it hits is random too."""

    def one_of(kind: str, count: int) -> str:
        return f"{kind}-{chance.randrange(count)}"

    def each(*kinds: str) -> list[Strike]:
        return [
            Strike(kind, one_of(node, count))
            for kind in kinds
            for node, count in (("worker", 3), ("scheduler", 2), ("api", 2))
        ]

    cards = [
        *each("kill", "stop", "cutBeforeCommit", "cutAfterCommit", "reset"),
        *(chance.choice(each(kind)) for kind in ("delay", "stall")),
        Strike("partition", chance.choice(("scheduler-0", "api-0"))),
        Strike("halfOpen", one_of("worker", 3)),
        Strike("stop", one_of("worker", 3)),
        Strike("stall", one_of("worker", 3)),
        Strike("stall", one_of("worker", 3)),
        Strike("halfOpen", chance.choice(("api-0", "scheduler-0"))),
        # A wrong clock tempts schedulers most of all. The database's own jumps in `make schedulers`: here the checks
        # compare what the product says of its times with the ledger's clock.
        Strike("clockJump", one_of("scheduler", 2)),
        Strike("clockJump", chance.choice((one_of("worker", 3), one_of("api", 2)))),
        Strike("postgresKill", "postgres"),
        Strike("postgresStop", "postgres"),
        Strike("diskFull", "postgres"),
        Strike("partition", ALONE),
        Strike("stopSupervisor", "workers"),
    ]
    chance.shuffle(cards)
    return cards


def plan(seed: int, seconds: float, *, only: list[Strike] | None = None) -> list[Burst]:
    """The whole campaign. Runs of less than two full turns have shorter quiet windows, but always one burst and one."""
    chance = random.Random(f"nemesis/{seed}")  # noqa: S311 - guards nothing
    if only is not None:
        return [Burst(WARM_UP * min(1.0, seconds / 60), [(3.0 * number, each) for number, each in enumerate(only)])]
    quiet = min(QUIET, seconds * 0.4)
    count = max(1, math.floor((seconds - WARM_UP) / (BURST + quiet)))
    bursts: list[Burst] = []
    hand: list[Strike] = []
    for number in range(count):
        before = WARM_UP if number == 0 else quiet
        if count >= TURN // 2 and number % TURN in ALONE_IN:
            bursts.append(Burst(before, [(0.0, Strike(*ALONE_IN[number % TURN]))]))
            continue
        hand = hand or deck(chance)
        dealt, hand = hand[:ABREAST], hand[ABREAST:]
        spared = chance.randrange(2)  # one scheduler is left alone, for the same reason
        struck = [Strike(kind, f"scheduler-{1 - spared}" if "scheduler" in name else name) for kind, name in dealt]
        bursts.append(Burst(before, [(round(chance.uniform(0.0, 9.0), 2), strike) for strike in struck]))
    apart = random.Random(f"remote/{seed}")  # noqa: S311 - its own, so that the deck of a seed stays what it was
    turn = apart.randrange(len(REMOTE_KINDS))
    for number, burst in enumerate(bursts):
        if len(burst.strikes) > 1:
            kind = REMOTE_KINDS[(turn + number) % len(REMOTE_KINDS)]
            burst.strikes.append((round(apart.uniform(0.0, 9.0), 2), Strike(kind, REMOTE)))
        if number % TURN == POISONED:
            burst.strikes.append((POISON_AFTER, Strike("poison", "workers")))
    return bursts


class Nemesis:
    def __init__(
        self,
        topology: Topology,
        seed: int,
        seconds: float,
        *,
        only: list[Strike] | None = None,
        bursts: list[Burst] | None = None,
        poisoner: Poisoner | None = None,
    ) -> None:
        self.bursts = plan(seed, seconds, only=only) if bursts is None else bursts
        self.faults: list[Fault] = []
        self._file: Path = topology.folder / "faults.jsonl"
        self._file.touch()
        self._deeds = Deeds(topology, random.Random(f"deeds/{seed}"), self._log, poisoner)  # noqa: S311 - guards nothing
        self._lacking = topology.lacking

    async def run(self, until: float) -> None:
        """Strike as planned; what would begin after `until` is left out."""
        for burst in self.bursts:
            if time.time() + burst.quiet >= until:
                return
            await asyncio.sleep(burst.quiet)
            async with asyncio.TaskGroup() as group:
                for after, strike in burst.strikes:
                    if strike.kind not in self._lacking:
                        group.create_task(self._strike(after, strike))

    async def _strike(self, after: float, strike: Strike) -> None:
        await asyncio.sleep(after)
        await self._deeds.do(*strike)

    def _log(self, fault: Fault) -> None:
        self.faults.append(fault)
        with self._file.open("ab") as file:
            file.write(msgspec.json.encode(fault) + b"\n")

    def unused(self) -> list[str]:
        """Kinds that are possible here and never happened."""
        done = {fault.kind for fault in self.faults}
        return [kind for kind in KINDS if kind not in done and kind not in self._lacking]
