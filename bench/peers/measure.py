"""One repeat of a peer: each cell on a fresh store, a cell that fails named and the others measured all the same."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Final

import asyncpg

from bench.peers.peer import Home
from bench.peers.plan import Plan
from bench.peers.processes import CellError, Workplace
from bench.peers.servers import Store, dead_rows, held_transaction, log_position
from bench.peers.tallies import percentiles

RATE: Final = 200.0
WARM: Final = 200
"""Runs that every worker process gets before it is measured, so that start-up is no part of it."""
READY: Final = 60.0
SPARE: Final = 8.0
"""Seconds between the last schedule stored and the instant it is due, in which the scheduler starts."""
PROBE: Final = 1_000
"""Schedules stored first, to be due another day: they tell how long the others will take.

So many that connecting is the smaller part of it: else the others would be due minutes after they are stored.
"""
DAY: Final = 86_400
LONGEST_LOAD: Final = 180.0
Numbers = dict[str, Any]


class Repeat:
    """Measures one peer once."""

    def __init__(self, home: Home, store: Store, plan: Plan) -> None:
        self._home = home
        self._peer = home.peer
        self._store = store
        self._plan = plan
        self._has_log = home.peer.store == "postgres"

    async def run(self, *only: str) -> Numbers:
        """Measure every cell, or `only` those that are named."""
        numbers: Numbers = {"errors": {}}
        cells: dict[str, Callable[[], Coroutine[Any, Any, Numbers]]] = {}
        if self._peer.runs_queue:
            cells = {"drain": self._drain, "sustained": partial(self._sustain, held=False)}
            if self._has_log:
                cells["held"] = partial(self._sustain, held=True)
        if self._peer.schedules:
            cells |= {f"due{count}": partial(self._due, count) for count in self._plan.schedules}
        for name in only or tuple(cells):
            try:
                numbers |= await cells[name]()
            except (CellError, OSError, TimeoutError, asyncpg.PostgresError) as error:
                numbers["errors"][name] = str(error) or type(error).__name__
        return numbers

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[tuple[Workplace, str]]:
        async with self._store.fresh() as url, Workplace.made(self._home, url) as place:
            await place.script("setup")
            yield place, url

    async def _drain(self) -> Numbers:
        """Fill, drain, then latency and single calls on what is now a used store."""
        count = min(self._peer.runs, self._plan.runs)
        async with self._place() as (place, url):
            before = await log_position(url) if self._has_log else 0
            made = await place.script("bulk", count)
            numbers: Numbers = {"bulk": made["made"] / made["seconds"], "runs": count}
            async with place.working():
                await place.until(lambda tallies: tallies.count > 0, READY)
                whole = await place.until(lambda tallies: tallies.count >= count, self._plan.drain_seconds)
                await asyncio.sleep(1.2)  # for the last acknowledgements
            tallies = place.tallies()
            if not tallies.span:
                raise CellError("no handler was started")
            numbers |= {"drain": tallies.count / tallies.span, "drained": tallies.count}
            if self._has_log:
                numbers["wal"] = (await log_position(url) - before) / tallies.count
                numbers["dead"] = await dead_rows(url)
            if whole:
                numbers |= await self._latency(place)
                numbers["again"] = place.tallies().count - tallies.count - numbers.pop("added")
            single = await place.script("single", self._plan.single_seconds)
            return numbers | {"single": single["made"] / single["seconds"]}

    async def _latency(self, place: Workplace) -> Numbers:
        """From just before the call to the handler's first line, at a steady pace; the call's commit is part of it."""
        async with place.working():
            await self._warm(place)
            made = await place.script("trickle", self._plan.latency_seconds, RATE)
            await place.until(lambda tallies: len(tallies.waits) >= made["made"], 15)
            waits = place.tallies().waits
            if len(waits) < made["made"]:
                raise CellError(f"{made['made']} runs were made for latency and {len(waits)} began")
        found = percentiles([wait * 1_000 for wait in waits], 50, 95, 99)
        return {**found, "added": WARM + made["made"]}

    async def _warm(self, place: Workplace) -> None:
        before = place.tallies().count
        await place.script("bulk", WARM)
        if not await place.until(lambda tallies: tallies.count >= before + WARM, READY):
            raise CellError(f"the first {WARM} runs did not start within {READY:g} s")

    async def _sustain(self, *, held: bool) -> Numbers:
        """One producer beside the workers for a while; with `held`, beside a forgotten transaction too."""
        async with AsyncExitStack() as stack:
            place, url = await stack.enter_async_context(self._place())
            if held:
                await stack.enter_async_context(held_transaction(url))
            async with place.working():
                await self._warm(place)
                warm = place.tallies().count
                before = await log_position(url) if self._has_log else 0
                made = await place.script("sustain", self._plan.seconds, self._peer.most_waiting)
                await asyncio.sleep(0.3)  # for the tick after the end
                began, ended = made["began"], made["ended"]
                third = (ended - began) / 3
                tallies = place.tallies()
                thirds = [tallies.rate(began + third * part, began + third * (part + 1)) for part in range(3)]
                name = "held" if held else "sustained"
                numbers: Numbers = {name: tallies.rate(began, ended), f"{name}Thirds": thirds}
                await place.until(lambda tallies: tallies.count >= warm + made["made"], self._plan.seconds)
                if self._has_log:
                    started = max(1, place.tallies().count - warm)
                    numbers[f"{name}Wal"] = (await log_position(url) - before) / started
            if self._has_log:
                numbers[f"{name}Dead"] = await dead_rows(url)
            return numbers

    async def _due(self, count: int) -> Numbers:
        """So many schedules due at one instant: from that instant to the handler's first line."""
        async with self._place() as (place, _):
            probe = await place.script("schedule", PROBE, DAY)
            needed = 1.5 * count * probe["seconds"] / PROBE
            if needed > LONGEST_LOAD:
                raise CellError(f"storing {count:,} schedules would take about {needed / 1.5:.0f} s")
            made = await place.script("schedule", count, round(needed + SPARE), patience=2 * LONGEST_LOAD)
            if time.time() > made["due"] - SPARE / 3:
                raise CellError(f"storing {count:,} schedules took {made['seconds']:.0f} s, far longer than foreseen")
            async with place.working(scheduling=True):
                patience = made["due"] - time.time() + LONGEST_LOAD
                await place.until(lambda tallies: tallies.count >= count, patience)
            late = place.tallies()
        if late.count < count:
            raise CellError(f"{late.count:,} of {count:,} schedules fired within {LONGEST_LOAD:g} s")
        found = {**percentiles(late.waits, 50, 95, 99), "max": max(late.waits)}
        return {f"due{count}": {**found, "fires": count / late.span, "stores": count / made["seconds"]}}
