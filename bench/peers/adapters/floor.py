"""The raw floor: Foliot's own statements in a bare loop, tuned first. What nothing built on them could beat."""

import asyncio
import contextlib
import json
import sys
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

PEER = Peer(
    name="floor",
    title="Raw floor",
    store="postgres",
    runtime="own",
    packages=(f"foliot=={__version__}",),
    script="with_foliot.py",
    settings="Foliot's SQL for enqueue, claim and settle in a bare loop; batch and connections tuned in each repeat",
    durability="loses nothing: on disk when the call returns",
)
SETTINGS: Final = tuple(product((1_000, 5_000), (1, 2, 4)))
Setting = tuple[int, int]
Numbers = dict[str, Any]


class FloorRepeat:
    """Measures the floor once. It has no handlers, so no latency."""

    def __init__(self, home: Home, store: Store, plan: Plan, _: int) -> None:
        self._home = home
        self._store = store
        self._plan = plan

    async def run(self) -> Numbers:
        numbers: Numbers = {"errors": {}, "tuned": {}}
        try:
            await self._measure(numbers)
        except (CellError, OSError, TimeoutError, asyncpg.PostgresError) as error:
            numbers["errors"]["floor"] = str(error) or type(error).__name__
        return numbers

    async def _measure(self, numbers: Numbers) -> None:
        plan, count = self._plan, min(PEER.runs, self._plan.runs)
        async with self._place() as url:
            numbers["single"] = _made(await _floor(url, "enqueue", (1, 1), plan.single_seconds))
        best = numbers["tuned"]["bulk"] = await self._tune(self._enqueue)
        async with self._place() as url:
            numbers["bulk"] = _made(await _floor(url, "enqueue", best, plan.drain_seconds, count))
        best = numbers["tuned"]["drain"] = await self._tune(lambda setting, _: self._drain(setting, count // 5))
        numbers |= await self._drain(best, count)
        best = numbers["tuned"]["sustained"] = await self._tune(self._sustain)
        numbers |= await self._sustain(best, plan.seconds)
        held = await self._sustain(best, plan.seconds, held=True)
        numbers |= {name.replace("sustained", "held"): value for name, value in held.items() if name != "rate"}
        numbers.pop("rate", None)

    async def _tune(self, cell: Callable[[Setting, float], Awaitable[Numbers]]) -> Setting:
        tried = {setting: (await cell(setting, self._plan.seconds / 10))["rate"] for setting in SETTINGS}
        return max(tried, key=lambda setting: tried[setting])

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[str]:
        async with self._store.fresh() as url, Workplace.made(self._home, url) as place:
            await place.script("setup")
            yield url

    async def _enqueue(self, setting: Setting, seconds: float) -> Numbers:
        async with self._place() as url:
            return {"rate": _made(await _floor(url, "enqueue", setting, seconds))}

    async def _drain(self, setting: Setting, count: int) -> Numbers:
        async with self._place() as url:
            before = await log_position(url)
            await _floor(url, "enqueue", (1_000, 1), 60, count)
            done = await _floor(url, "drain", setting, self._plan.drain_seconds, count)
            rate, log = done["settled"] / done["seconds"], await log_position(url) - before
            dead = await dead_rows(url) if count >= min(PEER.runs, self._plan.runs) else 0
            return {"rate": rate, "drain": rate, "wal": log / max(1, done["settled"]), "dead": dead, "runs": count}

    async def _sustain(self, setting: Setting, seconds: float, *, held: bool = False) -> Numbers:
        async with AsyncExitStack() as stack:
            url = await stack.enter_async_context(self._place())
            if held:
                await stack.enter_async_context(held_transaction(url))
            before = await log_position(url)
            calls = (_floor(url, "sustain", setting, seconds), _floor(url, "drain", setting, seconds))
            _, done = await asyncio.gather(*calls)
            rate, log = done["settled"] / done["seconds"], await log_position(url) - before
            numbers = {"rate": rate, "sustained": rate, "sustainedWal": log / max(1, done["settled"])}
            return numbers | {"sustainedDead": await dead_rows(url)} if seconds >= self._plan.seconds else numbers


def _made(answer: Numbers) -> float:
    return answer["made"] / answer["seconds"]  # type: ignore[no-any-return]


async def _floor(url: str, what: str, setting: Setting, seconds: float, most: int = 0) -> Numbers:
    numbers = (*setting, seconds, most)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "foliot.bench.floor", url, what, *map(str, numbers)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        said, trouble = await asyncio.wait_for(process.communicate(), seconds + 60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    if process.returncode:
        raise CellError(f"the floor's {what} failed: {trouble.decode()[-300:]}")
    return json.loads(said)  # type: ignore[no-any-return]
