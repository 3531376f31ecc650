"""Several worker processes on one machine: started again when they die, more of them under a backlog."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Final

import structlog

from foliot.cli.child import Child
from foliot.cli.compose import open_database
from foliot.cli.looking import Looking, open_looking
from foliot.cli.reaching import Reach, gateway_of
from foliot.cli.shell import DRAINED, SUPERVISED, Drained
from foliot.domain.errors import FoliotError
from foliot.domain.scaling import MOST, Bounds, Sight, Watch, decide
from foliot.kit.clock import Steady, steady
from foliot.kit.loop import any_of
from foliot.kit.settings import Settings
from foliot.store.recovery import Refused, is_contended, is_gone

log = structlog.get_logger("workers")

ONE_OF_MANY: Final = "FOLIOT_ONE_OF_MANY"
"""Set for each of several worker processes: its place among them. It serves, and starts no others."""
LOOK: Final = timedelta(seconds=5)
"""Between two looks at backlog and idle processes; workers tell what they have in hand as often."""

_GOOD_ORDER: Final = frozenset({0, DRAINED, -signal.SIGTERM})
"""Ends of a child that was told to stop; by the signal itself if it came before the child could have begun anything."""


class Unfinished(FoliotError):  # noqa: N818 - reads aloud
    """Told to stop, some processes did not end in good order."""


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


async def supervise(settings: Settings, bounds: Bounds, reach: Reach, stop: asyncio.Event) -> None:
    """Keep so many workers until `stop`, and let them finish; the same command line as ours starts each of them."""
    gateway = gateway_of(settings, reach)
    command = [sys.executable, *sys.orig_argv[1:]]

    def make(place: int) -> Child:
        return Child(f"worker {place}", command, _environment(settings, place))

    if gateway is None:
        async with open_database(settings, stop, size=1):
            pass  # what is wrong with it is told once, by us
    team = Team(make, stop)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, team.retire)
    if bounds.is_fixed:
        await team.run(bounds)
    else:
        async with open_looking(settings, gateway) as looking:
            await team.run(bounds, looking)
    if team.unfinished:
        hint = "what they held goes to other workers when their leases have ended"
        raise Unfinished(f"{team.unfinished} processes did not finish in good order", hint)
    if not stop.is_set():
        raise Drained


def _environment(settings: Settings, place: int) -> dict[str, str]:
    """Each shows its metrics on a port of its own: the one that was set, and those after it."""
    port = {} if settings.metrics_port is None else {"FOLIOT_METRICS_PORT": str(settings.metrics_port + place - 1)}
    return {**os.environ, SUPERVISED: "1", ONE_OF_MANY: str(place), **port}


class Team:
    """Places, each with a child that is kept in it. Who is drained leaves its place empty for good."""

    def __init__(self, make: Callable[[int], Child], stop: asyncio.Event, clock: Steady = steady) -> None:
        self._make = make
        self._stop = stop
        self._clock = clock
        self._children: dict[int, Child] = {}
        self._over = asyncio.Event()
        self._watch = Watch()
        self._group: asyncio.TaskGroup
        self._given_up = 0
        self._refused: str | None = None
        self.unfinished = 0

    @property
    def size(self) -> int:
        """Children that are to stay."""
        return sum(not child.is_retiring for child in self._children.values())

    @property
    def _is_ending(self) -> bool:
        return self._stop.is_set() or self._over.is_set()

    async def run(self, bounds: Bounds, looking: Looking | None = None) -> None:
        """Keep the least number, or with `looking` as many as it takes, until `stop` or until all were drained."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            self.resize(bounds.least)
            log.info("started", processes=bounds.least, at_most=bounds.most)
            while looking is not None and not self._is_ending:
                await any_of(self._stop, self._over, within=LOOK)
                await self.look(bounds, looking)

    async def look(self, bounds: Bounds, looking: Looking) -> None:
        """Look once, and start or retire processes if it is time."""
        pids = [child.pid for child in self._children.values() if child.pid is not None]
        try:
            found = await looking(pids)
        except Refused as error:
            self._tell_refusal(error)
            return
        except Exception as error:
            if not (is_gone(error) or is_contended(error)):
                raise
            return  # not seen is not known: the next look starts counting anew if it takes long
        bounds, size = bounds.without(self._given_up), self.size
        self._watch, wanted = decide(bounds, self._watch, Sight(self._clock(), size, found.busy, found.backlog))
        if wanted != size and not self._is_ending:
            log.info("more processes" if wanted > size else "fewer processes", processes=wanted, busy=found.busy)
            self.resize(wanted)

    def _tell_refusal(self, error: Refused) -> None:
        """Once: the processes there are go on as they are. A key that has ended they learn of by themselves."""
        if self._refused != error.message:
            self._refused = error.message
            log.warning("what waits is not told: as many processes as there are", error=str(error))

    def resize(self, wanted: int) -> None:
        staying = sorted(place for place, child in self._children.items() if not child.is_retiring)
        for place in staying[wanted:]:
            self._children[place].retire()
        for _ in range(wanted - len(staying)):
            place = next(number for number in range(1, len(self._children) + 2) if number not in self._children)
            self._children[place] = self._make(place)
            self._group.create_task(self._keep(place, self._children[place]))

    def retire(self) -> None:
        """Have all of them finish what they run, however long that takes, and not come back."""
        for child in self._children.values():
            child.retire()
        self._given_up = MOST

    async def _keep(self, place: int, child: Child) -> None:
        status = await child.keep(self._stop)
        del self._children[place]
        if status == DRAINED and not child.is_retiring:
            self._given_up += 1
        elif status not in _GOOD_ORDER and self._stop.is_set():
            self.unfinished += 1
        if not self._children:
            self._over.set()
