"""The measurements, each beside its raw floor, taken in turns so that a noisy machine hits both."""

import asyncio
import statistics
from collections.abc import Awaitable, Callable
from itertools import product
from typing import Any, Final

from foliot.bench.bed import Bed
from foliot.bench.produce import TENANTS, tenant_name
from foliot.domain.job import Draft
from foliot.domain.schedule import Cron
from foliot.domain.spec import FunctionHandler, Spec
from foliot.services.control import Control
from foliot.store.specs import SpecBook
from foliot.store.tenants import find_tenant

SECTIONS: Final = ("enqueue", "drain", "sustained", "latency", "lateness")
REPEATS: Final = 3
BATCHES: Final = (200, 1_000, 2_000, 5_000)
CONNECTIONS: Final = (1, 2, 4)
FILL: Final = 20_000
"""Runs per second of measuring time that are set out for a drain."""
RATE: Final = 200.0
SCHEDULED: Final = 10_000
APP: Final = "foliot.bench.app:worker"

Say = Callable[[str], None]
Settings = tuple[int, int]


class Bench:
    def __init__(self, bed: Bed, seconds: float, say: Say) -> None:
        self._bed = bed
        self._seconds = seconds
        self._say = say
        self._wal: list[float] = []
        self.submitted = 0
        self.recorded = 0

    async def run(self, sections: tuple[str, ...]) -> dict[str, Any]:
        results: dict[str, Any] = {"floor": {"settings": {}}}
        rates: dict[str, tuple[Callable[[], Awaitable[float]], Callable[[Settings, float], Awaitable[float]]]] = {
            "enqueue": (self._enqueue, self._floor_enqueue),
            "drain": (self._drain, self._floor_drain),
            "sustained": (self._sustain, self._floor_sustain),
        }
        for name, (ours, floor) in rates.items():
            if name in sections:
                best = await self._tune(name, floor)
                results["floor"]["settings"][name] = {"batch": best[0], "connections": best[1]}
                pairs = [(await floor(best, self._seconds), await ours()) for _ in range(REPEATS)]
                results["floor"][name] = round(statistics.median(pair[0] for pair in pairs))
                results[name] = round(statistics.median(pair[1] for pair in pairs))
                results.setdefault("repeats", {})[name] = [[round(f), round(o)] for f, o in pairs]
                self._say(f"{name}: {results[name]:,}/s, floor {results['floor'][name]:,}/s")
        if "drain" in sections:
            results["walBytesPerRun"] = round(statistics.median(self._wal))
        if "latency" in sections:
            results["latencyMs"] = await self._latency()
        if "lateness" in sections:
            results["latenessMs"] = await self._lateness()
        results["runsSubmitted"], results["historyRows"] = self.submitted, self.recorded
        return results

    async def _tune(self, name: str, floor: Callable[[Settings, float], Awaitable[float]]) -> Settings:
        self._say(f"{name}: tuning the floor")
        tried = {pair: await floor(pair, max(self._seconds / 8, 0.5)) for pair in product(BATCHES, CONNECTIONS)}
        return max(tried, key=lambda pair: tried[pair])

    async def _floor_enqueue(self, settings: Settings, seconds: float) -> float:
        await self._bed.wipe()
        made = await self._bed.tool("foliot.bench.floor", "enqueue", *settings, seconds, int(FILL * seconds))
        return made["made"] / made["seconds"]  # type: ignore[no-any-return]

    async def _enqueue(self) -> float:
        await self._bed.wipe()
        made = await self._bed.tool("foliot.bench.produce", "fill", int(FILL * self._seconds))
        return made["made"] / made["seconds"]  # type: ignore[no-any-return]

    async def _floor_drain(self, settings: Settings, seconds: float) -> float:
        await self._bed.wipe()
        count = int(FILL * seconds)
        await self._bed.tool("foliot.bench.floor", "enqueue", 1_000, 1, 600, count)
        done = await self._bed.tool("foliot.bench.floor", "drain", *settings, 600, count)
        return done["settled"] / done["seconds"]  # type: ignore[no-any-return]

    async def _drain(self) -> float:
        await self._bed.wipe()
        before, count = await self._bed.wal(), int(FILL * self._seconds)
        await self._bed.tool("foliot.bench.produce", "fill", count)
        async with self._bed.process("worker", APP):
            await self._bed.until_empty()
        self._wal.append((await self._bed.wal() - before) / count)
        await self._check(count)
        span = "SELECT extract(epoch FROM max(finished_at) - min(started_at))::float8 FROM history"
        return count / await self._bed.value(span)  # type: ignore[no-any-return]

    async def _floor_sustain(self, settings: Settings, seconds: float) -> float:
        await self._bed.wipe()
        batch, connections = settings
        both: list[dict[str, float]] = await asyncio.gather(
            self._bed.tool("foliot.bench.floor", "sustain", batch, connections, seconds, 0),
            self._bed.tool("foliot.bench.floor", "drain", batch, connections, seconds, 0),
        )
        return both[1]["settled"] / both[1]["seconds"]

    async def _sustain(self) -> float:
        await self._bed.wipe()
        async with self._bed.process("worker", APP):
            made = await self._bed.tool("foliot.bench.produce", "sustain", self._seconds)
            ended = await self._bed.value("SELECT clock_timestamp()")
            await self._bed.until_empty()
        await self._check(made["made"])
        rate = (
            "SELECT count(*) / extract(epoch FROM $1::timestamptz - min(started_at))::float8"
            "  FROM history WHERE finished_at <= $1"
        )
        return await self._bed.value(rate, ended)  # type: ignore[no-any-return]

    async def _latency(self) -> dict[str, float]:
        """From the call of submit to the first line of the handler, at a steady 200 a second."""
        self._say("latency: 200 runs a second")
        await self._bed.wipe()
        async with self._bed.process("worker", APP):
            made = await self._bed.tool("foliot.bench.produce", "trickle", 2, RATE)  # the first ones meet cold caches
            await self._noted(made["made"])
            self._bed.notes.unlink()
            made = await self._bed.tool("foliot.bench.produce", "trickle", max(self._seconds, 2), RATE)
            await self._noted(made["made"])
        return _percentiles([began - sent for sent, _, began in self._notes()], 50, 95, 99)

    async def _noted(self, count: int) -> None:
        """Wait until so many handlers have written down that they began."""
        async with asyncio.timeout(60):
            while len(self._notes()) < count:  # noqa: ASYNC110 - the event would be in another process
                await asyncio.sleep(0.1)

    async def _lateness(self) -> dict[str, float]:
        """From the instant to the first line of the handler, for many cron jobs of one second."""
        self._say(f"lateness: creating {SCHEDULED:,} cron jobs")
        await self._bed.wipe()
        async with self._bed.process("worker", APP), self._bed.process("scheduler"):
            await self._create_jobs()
            self._bed.notes.unlink(missing_ok=True)
            counts: dict[float, list[float]] = {}
            async with asyncio.timeout(120):
                while not (whole := [late for late in counts.values() if len(late) == SCHEDULED]):
                    await asyncio.sleep(0.5)
                    counts = {}
                    for _, scheduled, began in self._notes():
                        counts.setdefault(scheduled, []).append(began - scheduled)
            await self._stop_jobs()
            await self._bed.until_empty()
        late = whole[0]
        return {**_percentiles(late, 50, 95), "max": round(max(late) * 1000, 1)}

    async def _create_jobs(self) -> None:
        book = SpecBook(self._bed.database)
        control = Control(self._bed.database, book, lambda _: None)
        tenants = [await find_tenant(self._bed.database, tenant_name(number)) for number in range(TENANTS)]
        draft = Draft(
            name="tick",
            key=None,
            spec=Spec(handler=FunctionHandler("note")),
            payload=b"{}",
            labels={},
            exclusive=True,
            timing={"cronExpression": "*/10 * * * * *", "timezone": "UTC"},
            recurrence=Cron("*/10 * * * * *", "UTC"),
        )

        async def create(tenant: int | None) -> None:
            for _ in range(SCHEDULED // TENANTS):
                await control.create(tenant or 0, draft, render=lambda _: b"")

        async with asyncio.TaskGroup() as group:
            for tenant in tenants:
                group.create_task(create(tenant))

    async def _stop_jobs(self) -> None:
        await self._bed.value("UPDATE schedule SET next_at = NULL")

    def _notes(self) -> list[tuple[float, float, float]]:
        if not self._bed.notes.exists():
            return []
        lines = self._bed.notes.read_text().splitlines()
        return [(float(sent), float(at), float(began)) for sent, at, began in map(str.split, lines)]

    async def _check(self, submitted: int) -> None:
        """What was handed in must stand in history, each exactly once."""
        recorded = await self._bed.settled()
        self.submitted += submitted
        self.recorded += recorded
        if recorded != submitted:
            raise AssertionError(f"{submitted:,} runs were handed in and {recorded:,} stand in history")


def _percentiles(seconds: list[float], *wanted: int) -> dict[str, float]:
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return {f"p{percent}": round(cuts[percent - 1] * 1000, 2) for percent in wanted}
