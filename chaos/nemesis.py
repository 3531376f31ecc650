"""When which fault strikes whom: bursts with quiet in between, from the seed."""

import asyncio
import math
import random
import signal
import time
from itertools import cycle
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from chaos.deeds import Deeds
from chaos.places import ALONE, REMOTE
from chaos.poison import Poisoner
from chaos.records import Fault
from chaos.rush import Rusher
from chaos.topology import Topology

WARM_UP: Final = 10.0
BURST: Final = 30.0
"""Seconds that a burst takes at most, nearly: within them all its faults have begun and most have ended."""
QUIET: Final = 40.0
"""Seconds without any fault after a burst: what was lost must be back by then."""
ABREAST: Final = 6
"""Faults in one burst: a deck lasts for five, so that ten minutes see all of it."""
TURN: Final = 8
ALONE_IN: Final = {2: ("misfire", "schedulers"), 5: ("rollingRestart", "all"), 6: ("outage", "postgres")}
"""Bursts of a turn in which nothing else is broken. All silence all schedulers one way or another: a worker that is
killed meanwhile is rightly found later, and how quickly workers are found is one of the numbers that we publish."""
KINDS: Final = (
    "kill", "stop", "stopSupervisor", "postgresKill", "postgresStop", "outage", "delay", "stall", "reset", "halfOpen",
    "cutBeforeCommit", "cutAfterCommit", "diskFull", "clockJump", "partition", "rollingRestart", "poison",
    "rush",
)  # fmt: skip


POISONED: Final = TURN - 1
"""The burst of a turn in which a run kills one worker after the other. It takes longer than a burst, so it is the last;
and it begins when the others have been struck, so that what they lost is not taken over by somebody who falls next."""
POISON_AFTER: Final = 12.0
RUSH_AFTER: Final = 4.0
"""Seconds after the schedulers have been stopped. All workers are well then: what they get done is shared out among
tenants, and how fairly is a number that we publish."""
CUT_OFF: Final = "api-0"
"""The API that lives in a network of its own, where there can be any: partitions are its."""
RUSHES: Final = 6
"""Turns with a rush: it hands in up to 80,000 runs, and a campaign of hours is to be checked in memory too."""
WORKERS: Final = ("worker-0", "worker-1", "worker-2")
"""Those that speak to the database themselves."""
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
        *each("kill", "stop", "cutBeforeCommit", "cutAfterCommit"),
        *(chance.choice(each(kind)) for kind in ("delay", "stall")),
        Strike("reset", one_of("worker", 3)),
        # Of one of the others: each has its wire reset twice besides, in the midst of a commit.
        Strike("reset", chance.choice((one_of("scheduler", 2), one_of("api", 2)))),
        Strike("partition", one_of("scheduler", 2)),
        Strike("partition", CUT_OFF),
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
        # One scheduler is left alone, for the same reason. And one API: for longer than a client waits nobody could
        # answer else, and how many calls are answered is a number that we publish too.
        scheduler = f"scheduler-{chance.randrange(2)}"
        api = CUT_OFF if Strike("partition", CUT_OFF) in dealt else f"api-{chance.randrange(2)}"
        aim = {"scheduler": scheduler, "api": api}
        struck = [Strike(kind, aim.get(name.partition("-")[0], name)) for kind, name in dealt]
        bursts.append(Burst(before, [(round(chance.uniform(0.0, 9.0), 2), strike) for strike in struck]))
    apart = random.Random(f"remote/{seed}")  # noqa: S311 - its own, so that the deck of a seed stays what it was
    first = apart.randrange(len(REMOTE_KINDS))
    kinds = cycle(REMOTE_KINDS[first:] + REMOTE_KINDS[:first])
    for number, burst in enumerate(bursts):
        if len(burst.strikes) > 1:
            burst.strikes.append((round(apart.uniform(0.0, 9.0), 2), Strike(next(kinds), REMOTE)))
        elif burst.strikes[0][1].kind == "misfire" and number < RUSHES * TURN:
            burst.strikes.append((RUSH_AFTER, Strike("rush", "workers")))
        if number % TURN == POISONED:
            burst.strikes.append((POISON_AFTER, Strike("poison", "workers")))
    spares = random.Random(f"spared/{seed}")  # noqa: S311 - as above
    return [burst._replace(strikes=_spare_one(burst.strikes, spares)) for burst in bursts]


def _spare_one(strikes: list[tuple[float, Strike]], chance: random.Random) -> list[tuple[float, Strike]]:
    """Where a worker is killed, another one is left alone: when all stand still, nobody can take over what it held.

    How soon somebody does is one of the numbers that we publish. Elsewhere they may all be struck at once.
    """
    killed = {strike.target for _, strike in strikes if strike.kind == "kill"} & {*WORKERS, REMOTE}
    if not killed:
        return strikes
    cut_off = {strike.target for _, strike in strikes if strike.kind == "partition"}  # not everybody can be
    spared = chance.choice([name for name in WORKERS if name not in killed | cut_off])
    others = [name for name in WORKERS if name != spared]
    instead = next((name for name in others if name in killed), others[0])
    aim = {spared: instead, "workers": ",".join((*others, REMOTE))}
    return [
        (after, strike if strike.kind == "poison" else strike._replace(target=aim.get(strike.target, strike.target)))
        for after, strike in strikes
    ]


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
        rusher: Rusher | None = None,
    ) -> None:
        self.bursts = plan(seed, seconds, only=only) if bursts is None else bursts
        self.faults: list[Fault] = []
        self._file: Path = topology.folder / "faults.jsonl"
        self._file.touch()
        self._seed = seed
        self._deeds = Deeds(topology, self._log, poisoner, rusher)
        self._lacking = topology.lacking

    async def run(self, until: float) -> None:
        """Strike as planned; what would begin after `until` is left out."""
        for number, burst in enumerate(self.bursts):
            if time.time() + burst.quiet >= until:
                return
            await asyncio.sleep(burst.quiet)
            async with asyncio.TaskGroup() as group:
                for place, (after, strike) in enumerate(burst.strikes):
                    if strike.kind not in self._lacking:
                        group.create_task(self._strike(after, strike, f"deeds/{self._seed}/{number}/{place}"))

    async def _strike(self, after: float, strike: Strike, name: str) -> None:
        # Dice of its own: of those that all share, each would get what the others, in their own time, have left.
        chance = random.Random(name)  # noqa: S311 - guards nothing
        await asyncio.sleep(after)
        await self._deeds.do(*strike, chance)

    def _log(self, fault: Fault) -> None:
        self.faults.append(fault)
        with self._file.open("ab") as file:
            file.write(msgspec.json.encode(fault) + b"\n")

    def unused(self) -> list[str]:
        """Kinds that are possible here and never happened, or never hurt anybody."""
        done = {fault.kind for fault in self.faults if _bit(fault)}
        return [kind for kind in KINDS if kind not in done and kind not in self._lacking]


def _bit(fault: Fault) -> bool:
    """Whether it has shown what its kind is there to show.

    A rolling restart stops the database in good order: an outage of that kind for whoever asks when the database was
    away, and not the stop at once that is dealt.
    """
    in_good_order = fault.kind == "postgresStop" and fault.detail != signal.SIGQUIT.name
    return not fault.idle and not in_good_order
