"""The measurements, each beside its raw floor, taken in turns so that a noisy machine hits both."""

import asyncio
import statistics
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Final

from foliot.bench.bed import APP, Bed
from foliot.bench.latency import measure_latency, percentiles
from foliot.bench.produce import TENANTS, tenant_name
from foliot.bench.sections import FULL, REPEATS, Say
from foliot.bench.together import run_together
from foliot.bench.tune import Setting, finalists
from foliot.domain.job import Draft
from foliot.domain.schedule import Cron
from foliot.domain.spec import FunctionHandler, Spec
from foliot.services.control import Control
from foliot.store.specs import SpecBook
from foliot.store.tenants import find_tenant

SECTIONS: Final = ("enqueue", "drain", "sustained", "latency", "lateness")
SUSTAINED: Final = 60.0
"""Seconds of the sustained load in a run of full length; a shorter run takes its own."""
FILL: Final = 30_000
"""Runs per second of measuring time that are set out for a drain."""
USUAL: Final[Setting] = (2_000, 1)
SCHEDULED: Final = 10_000

Rates = dict[str, Any]


class Bench:
    def __init__(self, bed: Bed, seconds: float, say: Say) -> None:
        self._bed = bed
        self._seconds = seconds
        self._say = say
        self._sustained = max(SUSTAINED, seconds) if seconds >= FULL else seconds
        self._wal: dict[str, list[float]] = {"drain": [], "sustained": []}
        self._busy: list[dict[str, float]] = []
        self._longest_pause = 0.0
        self.submitted = 0
        self.recorded = 0

    async def run(self, sections: tuple[str, ...]) -> dict[str, Any]:
        results: dict[str, Any] = {"floor": {"settings": {}, "longestPause": {}}, "ratio": {}, "repeats": {}}
        rates: dict[str, tuple[Callable[[], Awaitable[float]], Callable[[Setting, float], Awaitable[float]]]] = {
            "enqueue": (self._enqueue, self._floor_enqueue),
            "drain": (self._drain, self._floor_drain),
            "sustained": (self._sustain, self._floor_sustain),
        }
        for name, (ours, floor) in rates.items():
            if name in sections:
                seconds = self._sustained if name == "sustained" else self._seconds
                found = await self._beside(name, ours, floor, seconds)
                results[name], results["floor"][name] = found["foliot"], found["floor"]
                results["floor"]["settings"][name] = found["settings"]
                results["floor"]["longestPause"][name] = found["longestPause"]
                results["ratio"][name], results["repeats"][name] = found["ratio"], found["repeats"]
                self._say(f"{name}: {found['foliot']:,}/s, floor {found['floor']:,}/s")
        if "drain" in sections:
            results["walBytesPerRun"] = round(statistics.median(self._wal["drain"]))
        if "sustained" in sections:
            results["walSustained"] = round(statistics.median(self._wal["sustained"]))
            results["repeats"]["wal"] = list(map(round, self._wal["sustained"]))
            results["sustainedSeconds"] = self._sustained
            results["busy"] = {name: statistics.median(each[name] for each in self._busy) for name in self._busy[0]}
        if "latency" in sections:
            starts = [await measure_latency(self._bed, self._seconds, self._say) for _ in range(REPEATS)]
            for name, title in (("latency", "latencyMs"), ("twoCommits", "twoCommitsMs")):
                results["repeats"][name] = [each[name] for each in starts]
                results[title] = medians(results["repeats"][name])
            results["latencySeconds"] = starts[0]["seconds"]
            results["slowest"] = [each["slowest"] for each in starts]
        if "lateness" in sections:
            results["latenessMs"] = await self._lateness()
        results["runsSubmitted"], results["historyRows"] = self.submitted, self.recorded
        return results

    async def _beside(
        self,
        name: str,
        ours: Callable[[], Awaitable[float]],
        floor: Callable[[Setting, float], Awaitable[float]],
        seconds: float,
    ) -> Rates:
        """Foliot and the floor in turns, the floor with what tuning left; a quick look tunes none."""
        tried = [USUAL]
        if self._seconds >= FULL:
            self._say(f"{name}: tuning the floor")
            tried = await finalists(floor, self._seconds)
        self._longest_pause = 0.0
        self._say(f"{name}: measuring")
        mine: list[float] = []
        theirs: dict[Setting, list[float]] = {setting: [] for setting in tried}
        for _ in range(REPEATS):
            for setting in tried:
                theirs[setting].append(await floor(setting, seconds))
                if setting == tried[0]:
                    mine.append(await ours())
        return {**compare(mine, theirs), "longestPause": round(self._longest_pause, 2)}

    async def _floor(self, *parts: tuple[object, ...]) -> dict[str, float]:
        """What the last of these parts of the floor says."""
        answer = (await run_together(self._bed.dsn, *parts))[-1]
        self._longest_pause = max(self._longest_pause, answer["longestPause"])
        return answer

    async def _floor_enqueue(self, setting: Setting, seconds: float) -> float:
        await self._bed.wipe()
        made = await self._floor(("enqueue", *setting, min(seconds, self._seconds / 2), 0))
        return made["made"] / made["seconds"]

    async def _enqueue(self) -> float:
        await self._bed.wipe()
        made = await self._bed.tool("foliot.bench.produce", "fill", int(FILL * self._seconds))
        return made["made"] / made["seconds"]  # type: ignore[no-any-return]

    async def _floor_drain(self, setting: Setting, seconds: float) -> float:
        await self._bed.wipe()
        count = int(FILL * seconds)
        await self._floor(("enqueue", 1_000, 1, 600, count))
        done = await self._floor(("drain", *setting, 600, count))
        return done["settled"] / done["seconds"]

    async def _drain(self) -> float:
        await self._bed.wipe()
        before, count = await self._bed.wal(), int(FILL * self._seconds)
        await self._bed.tool("foliot.bench.produce", "fill", count)
        async with self._bed.process("worker", APP):
            await self._bed.until_empty()
        self._wal["drain"].append((await self._bed.wal() - before) / count)
        await self._check(count)
        return count / await span_of(self._bed)

    async def _floor_sustain(self, setting: Setting, seconds: float) -> float:
        await self._bed.wipe()
        done = await self._floor(("sustain", *setting, seconds, 0), ("drain", *setting, seconds, 0))
        return done["settled"] / done["seconds"]

    async def _sustain(self) -> float:
        await self._bed.wipe()
        before = await self._bed.wal()
        async with self._bed.process("worker", APP) as worker:
            await self._bed.until_workers()
            watch = await self._bed.watch(worker=worker)
            made = await self._bed.tool("foliot.bench.produce", "sustain", self._sustained)
            ended = await self._bed.value("SELECT clock_timestamp()")
            self._busy.append(watch.busy())
            await self._bed.until_empty()
        self._wal["sustained"].append((await self._bed.wal() - before) / made["made"])
        await self._check(made["made"])
        return await settled_by(self._bed, ended)

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
                    for _, scheduled, began in self._bed.noted():
                        counts.setdefault(scheduled, []).append(began - scheduled)
            await self._stop_jobs()
            await self._bed.until_empty()
        late = whole[0]
        return {**percentiles(late, 50, 95), "max": round(max(late) * 1000, 1)}

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

    async def _check(self, submitted: int) -> None:
        """What was handed in must stand in history, each exactly once."""
        recorded = await self._bed.settled()
        self.submitted += submitted
        self.recorded += recorded
        if recorded != submitted:
            raise AssertionError(f"{submitted:,} runs were handed in and {recorded:,} stand in history")


async def settled_by(bed: Bed, instant: datetime) -> float:
    """Runs settled a second, from the first start on record to this instant; 0 if there were none."""
    rate = (
        "SELECT coalesce(count(*) / extract(epoch FROM $1::timestamptz - min(started_at))::float8, 0)"
        "  FROM history WHERE finished_at <= $1"
    )
    return await bed.counted(rate, instant)  # type: ignore[no-any-return]


async def span_of(bed: Bed) -> float:
    """Seconds from the first start on record to the last end."""
    span = "SELECT extract(epoch FROM max(finished_at) - min(started_at))::float8 FROM history"
    return await bed.value(span)  # type: ignore[no-any-return]


async def floor_beside(bed: Bed, seconds: float) -> float:
    """What the raw floor sustains with settings that do well on most machines: to stand beside, for no ratio."""
    await bed.wipe()
    done = (await run_together(bed.dsn, ("sustain", *USUAL, seconds, 0), ("drain", *USUAL, seconds, 0)))[-1]
    await bed.wipe()
    return done["settled"] / done["seconds"]  # type: ignore[no-any-return]


def compare(mine: list[float], theirs: dict[Setting, list[float]]) -> Rates:
    """The ratio of the medians, with the least and the most that any two repeats would have given.

    The floor is the setting with the best median: one that was tuned badly would flatter Foliot.
    """
    best = max(theirs, key=lambda setting: statistics.median(theirs[setting]))
    floor = theirs[best]
    ratio = statistics.median(mine) / statistics.median(floor)
    return {
        "foliot": round(statistics.median(mine)),
        "floor": round(statistics.median(floor)),
        "settings": {"batch": best[0], "connections": best[1]},
        "ratio": {
            "median": round(ratio, 2),
            "least": round(min(mine) / max(floor), 2),
            "most": round(max(mine) / min(floor), 2),
        },
        "repeats": {"foliot": list(map(round, mine)), "floor": list(map(round, floor))},
    }


def medians(repeats: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(each[name] for each in repeats) for name in repeats[0]}
