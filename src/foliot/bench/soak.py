"""A steady load for long: what grows, though it should not."""

import asyncio
import time
from typing import Any, Final

from foliot.bench.bed import Bed
from foliot.bench.held import OFFERED
from foliot.bench.measure import APP
from foliot.bench.sections import Section, Trial
from foliot.bench.targets import Found
from foliot.bench.watch import Watch, own_memory

SAMPLES: Final = 60
"""At most so many looks; never more often than every second."""
_SIZES: Final = """
SELECT c.relname AS name, pg_table_size(c.oid) AS table, pg_indexes_size(c.oid) AS indexes
  FROM pg_class c
 WHERE c.relnamespace = 'foliot'::regnamespace AND c.relkind = 'r' AND c.relname NOT LIKE 'history%'
"""


async def _once(trial: Trial) -> Found:
    bed, pids = trial.bed, dict[str, int]()
    await bed.wipe()
    async with bed.process("worker", APP) as worker, bed.process("scheduler") as scheduler:
        pids |= {"worker": worker, "scheduler": scheduler}
        await bed.until_workers()
        async with asyncio.TaskGroup() as group:
            producing = group.create_task(
                bed.tool(
                    *("foliot.bench.produce", "pace", trial.seconds, OFFERED),
                    started=lambda pid: pids.update(producer=pid),
                )
            )
            watch = await bed.watch(**pids)
            looks = await _look_on(trial, producing, pids, watch)
            busy = watch.busy()
            made = await producing
        await bed.until_empty()
    if (settled := await bed.settled()) != made["made"]:
        raise AssertionError(f"{made['made']:,} runs were handed in and {settled:,} stand in history")
    return {**growth(looks), "rate": round(settled / made["seconds"]), "busy": busy, "looks": looks}


async def _look_on(
    trial: Trial, producing: "asyncio.Task[Any]", pids: dict[str, int], watch: Watch
) -> list[dict[str, Any]]:
    began, looks = time.monotonic(), list[dict[str, Any]]()
    while not producing.done():
        look = {"at": round(time.monotonic() - began, 1), **await _sizes(trial.bed)}
        look |= {name: own_memory(pid) for name, pid in pids.items()}
        look["backends"] = own_memory(*watch.servers)
        looks.append(look)
        told = {name: f"{look[name] / 1e6:.1f}" for name in ("tables", "indexes", *pids, "backends")}
        trial.say(f"soak: {look['at']:.0f} s, MB: " + ", ".join(f"{name} {size}" for name, size in told.items()))
        await asyncio.wait([producing], timeout=max(1.0, trial.seconds / SAMPLES))
    return looks


async def _sizes(bed: Bed) -> dict[str, Any]:
    found = {row["name"]: (row["table"], row["indexes"]) for row in await bed.rows(_SIZES)}
    tables, indexes = (sum(size[which] for size in found.values()) for which in (0, 1))
    large = {name: sum(sizes) for name, sizes in found.items() if sum(sizes) > 1 << 20}
    return {"tables": tables, "indexes": indexes, "relations": large}


def growth(looks: list[dict[str, Any]]) -> Found:
    """In percent, by how much the largest size in the last third is above the largest in the one before.

    The first third fills caches, and tables up to where vacuum keeps them. What then still grows, grows for ever.
    """
    names = [name for name, size in looks[-1].items() if isinstance(size, int) and name != "at"]
    third = max(1, len(looks) // 3)
    found = {}
    for name in names:
        parts = looks[-2 * third : -third], looks[-third:]
        before, after = (max((look.get(name, 0) for look in part), default=0) for part in parts)
        found[name] = round(max(0.0, 100 * (after / before - 1)), 1) if before else 0.0
    return found


SECTION: Final = Section(
    "soak",
    "Soak",
    f"{OFFERED:,} runs a second for {{seconds}} s: a producer, a worker and a scheduler. Growth is that of the largest"
    " size in the last third over the largest in the second; memory is what a process has for itself.",
    _once,
    full=600,
    repeats=1,
)
