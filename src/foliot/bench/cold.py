"""The first seconds: right after a fresh migrate, and after a time in which there was nothing to do."""

import asyncio
import statistics
from datetime import datetime
from typing import Any, Final

from foliot.bench.bed import APP, Bed
from foliot.bench.measure import floor_beside
from foliot.bench.sections import Section, Trial
from foliot.bench.targets import Found

FIRST: Final = 10
"""Seconds that are compared with those after them."""
_PER_SECOND: Final = """
SELECT floor(extract(epoch FROM finished_at - $1::timestamptz))::int AS second, count(*) AS runs
  FROM history WHERE finished_at > $1::timestamptz GROUP BY 1 ORDER BY 1
"""


async def _once(trial: Trial) -> Found:
    first = FIRST if trial.seconds >= 2 * FIRST else max(1, int(trial.seconds / 2))
    floor = await floor_beside(trial.bed, trial.seconds / 2)
    async with trial.bed.fresh("foliot_cold") as bed, bed.process("worker", APP) as worker:
        await bed.until_workers()
        watch = await bed.watch(worker=worker)
        fresh = await _seconds(bed, trial)
        busy = watch.busy()
        await bed.until_empty()
        # Statistics now say that there is nothing, which is what misleads planners.
        await bed.plainly("VACUUM (ANALYZE)")
        await asyncio.sleep(min(first, 5))
        empty = await _seconds(bed, trial)
        await bed.until_empty()
    found = {**_compared("fresh", fresh, first), **_compared("empty", empty, first)}
    steady = statistics.median([*fresh[first:], *empty[first:]])
    trial.say(f"cold: {fresh[:first]}, then {steady:,.0f}/s")
    return {**found, "steady": round(steady), "floor": round(floor), "busy": busy, "seconds": [fresh, empty]}


async def _seconds(bed: Bed, trial: Trial) -> list[int]:
    """Runs settled in each whole second from the first one handed in."""
    began: datetime = await bed.value("SELECT clock_timestamp()")
    await bed.tool("foliot.bench.produce", "sustain", trial.seconds + 1)
    first = await bed.value("SELECT min(due_at) FROM history WHERE finished_at > $1", began)
    rows: list[Any] = await bed.rows(_PER_SECOND, first)
    counts = {row["second"]: row["runs"] for row in rows}
    return [counts.get(second, 0) for second in range(max(2, int(trial.seconds)))]


def _compared(name: str, seconds: list[int], first: int) -> Found:
    steady = statistics.median(seconds[first:])
    return {
        name: round(100 * statistics.fmean(seconds[:first]) / steady),
        f"{name}Worst": round(100 * min(seconds[:first]) / steady),
    }


SECTION: Final = Section(
    "cold",
    "Cold and empty start",
    "A producer and a worker start on a database that was migrated just now, for {seconds} s, and once more after the"
    " tables had run empty, were vacuumed and analyzed, and nothing happened for some seconds. The first 10 seconds are"
    " compared with the median of those after them. The raw floor beside it has one setting that does well on most"
    " machines; it is not tuned, as that of `sustained` is. It says what the machine was like: Foliot may be above it.",
    _once,
    full=20,
)
