"""The raw floor: Foliot's own statements in a bare loop, tuned first. What nothing built on them could beat."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import product
from typing import Any, Final

import asyncpg

from bench.peers.peer import Home, Peer
from bench.peers.plan import Plan
from bench.peers.processes import CellError, Workplace
from bench.peers.servers import Store, dead_rows, held_transaction, log_position
from foliot import __version__
from foliot.bench.bed import wipe
from foliot.bench.together import run_together
from foliot.bench.tune import Setting, finalists
from foliot.domain.errors import FoliotError
from foliot.store.database import connect

PEER = Peer(
    name="floor",
    title="Raw floor",
    store="postgres",
    runtime="own",
    packages=(f"foliot=={__version__}",),
    script="with_foliot.py",
    settings="Foliot's SQL for enqueue, claim and settle in a bare loop; batch and connections tuned at first",
    durability="loses nothing: on disk when the call returns",
    bulk="1,000 or 5,000 a call, as tuning said",
)
SETTINGS: Final = tuple(product((1_000, 5_000), (1, 2, 4)))
Numbers = dict[str, Any]
Cell = Callable[[str, Setting, float], Awaitable[Numbers]]


class FloorRepeat:
    """Measures the floor once. It has no handlers, so no latency.

    Tuning is left to the first repeat: what came out of it stands in `earlier`. Every repeat measures what tuning left,
    and the better one counts.
    """

    def __init__(self, home: Home, store: Store, plan: Plan, earlier: list[Numbers]) -> None:
        self._home = home
        self._store = store
        self._plan = plan
        self._known: dict[str, Any] = next((each["tuned"] for each in earlier if each.get("tuned")), {})

    async def run(self) -> Numbers:
        numbers: Numbers = {"errors": {}, "tuned": {}}
        try:
            await self._measure(numbers)
        except (CellError, FoliotError, OSError, TimeoutError, asyncpg.PostgresError) as error:
            numbers["errors"]["floor"] = str(error) or type(error).__name__
        return numbers

    async def _measure(self, numbers: Numbers) -> None:
        plan = self._plan
        async with self._place() as url:
            numbers["single"] = _made(await _floor(url, "enqueue", (1, 1), plan.single_seconds))
        for name, cell in (("bulk", self._enqueue), ("drain", self._drain), ("sustained", self._sustain)):
            numbers["tuned"][name] = tried = await self._tune(name, cell)
            full = [(setting, await self._in_full(cell, setting)) for setting in tried]
            best, found = max(full, key=lambda each: each[1]["rate"])
            numbers |= found
        async with self._place() as url, held_transaction(url):
            held = await self._sustain(url, best, plan.seconds)
        numbers |= {name.replace("sustained", "held"): value for name, value in held.items()}
        del numbers["rate"]

    async def _tune(self, name: str, cell: Cell) -> list[Setting]:
        if name in self._known:
            return [(batch, connections) for batch, connections in self._known[name]]

        async with self._place() as url, AsyncExitStack() as stack:
            connection = await connect(url)
            stack.push_async_callback(connection.close)

            async def rate(setting: Setting, seconds: float) -> float:
                await wipe(connection)
                return (await cell(url, setting, seconds))["rate"]  # type: ignore[no-any-return]

            return await finalists(rate, self._plan.seconds, SETTINGS)

    async def _in_full(self, cell: Cell, setting: Setting) -> Numbers:
        async with self._place() as url:
            return await cell(url, setting, self._plan.seconds)

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[str]:
        async with self._store.fresh() as url, Workplace.made(self._home, url) as place:
            await place.script("setup")
            yield url

    async def _enqueue(self, url: str, setting: Setting, seconds: float) -> Numbers:
        rate = _made(await _floor(url, "enqueue", setting, min(seconds, self._plan.seconds / 2)))
        return {"rate": rate, "bulk": rate}

    async def _drain(self, url: str, setting: Setting, seconds: float) -> Numbers:
        """A short try drains so much less."""
        count = int(min(PEER.runs, self._plan.runs) * min(1.0, seconds / self._plan.seconds))
        before = await log_position(url)
        await _floor(url, "enqueue", (1_000, 1), 60, count)
        done = await _floor(url, "drain", setting, self._plan.drain_seconds, count)
        rate, log = done["settled"] / done["seconds"], await log_position(url) - before
        numbers = {"rate": rate, "drain": rate, "wal": log / max(1, done["settled"]), "runs": count}
        return numbers | ({"dead": await dead_rows(url)} if seconds >= self._plan.seconds else {})

    async def _sustain(self, url: str, setting: Setting, seconds: float) -> Numbers:
        before = await log_position(url)
        parts = (("sustain", *setting, seconds, 0), ("drain", *setting, seconds, 0))
        _, done = await run_together(url, *parts, patience=seconds + 60)
        rate, log = done["settled"] / done["seconds"], await log_position(url) - before
        numbers = {"rate": rate, "sustained": rate, "sustainedWal": log / max(1, done["settled"])}
        return numbers | ({"sustainedDead": await dead_rows(url)} if seconds >= self._plan.seconds else {})


def _made(answer: Numbers) -> float:
    return answer["made"] / answer["seconds"]  # type: ignore[no-any-return]


async def _floor(url: str, what: str, setting: Setting, seconds: float, most: int = 0) -> Numbers:
    return (await run_together(url, (what, *setting, seconds, most), patience=seconds + 60))[0]
