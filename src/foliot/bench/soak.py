"""A steady load for long: what grows, though it should not."""

import asyncio
import secrets
import statistics
import time
from itertools import combinations
from typing import Any, Final

import aiohttp
import msgspec

from foliot.bench.bed import APP, Bed
from foliot.bench.carried import api_process
from foliot.bench.held import OFFERED
from foliot.bench.measure import settled_by
from foliot.bench.sections import Section, Trial
from foliot.bench.targets import Found
from foliot.bench.watch import Watch, own_memory

SAMPLES: Final = 60
"""At most so many looks; never more often than every second."""
CALLS: Final = 20
"""A second, over HTTP: an API that nobody calls has nothing to keep."""
REPEATED: Final = 10
"""One in so many calls is made again, with the same key."""
RUN: Final = msgspec.json.encode({"handler": "noop", "payload": {"order": 4711}})
KEPT: Final = ("history", "idempotency")
"""Tables that keep what they are told for as long as they promise, and so must grow."""
_SIZES: Final = """
SELECT c.relname AS name, pg_table_size(c.oid) AS table, pg_indexes_size(c.oid) AS indexes
  FROM pg_class c
 WHERE c.relnamespace = 'foliot'::regnamespace AND c.relkind = 'r'
"""


async def _once(trial: Trial) -> Found:
    bed, pids = trial.bed, dict[str, int]()
    await bed.wipe()
    async with (
        bed.process("worker", APP) as worker,
        bed.process("scheduler") as scheduler,
        api_process(bed) as (api, access),
    ):
        pids |= {"worker": worker, "scheduler": scheduler, "api": api}
        await bed.until_workers()
        async with asyncio.TaskGroup() as group:
            producing = group.create_task(
                bed.tool(
                    *("foliot.bench.produce", "pace", trial.seconds, OFFERED),
                    started=lambda pid: pids.update(producer=pid),
                )
            )
            calling = group.create_task(_call(access["FOLIOT_URL"], access["FOLIOT_KEY"], producing))
            watch = await bed.watch(**pids)
            looks = await _look_on(trial, producing, pids, watch)
            busy, ended = watch.busy(), await bed.value("SELECT clock_timestamp()")
            made = await producing
        await bed.until_empty()
    whole = made["made"] + calling.result()
    if (settled := await bed.settled()) != whole:
        raise AssertionError(f"{whole:,} runs were handed in and {settled:,} stand in history")
    told = {"rate": round(await settled_by(bed, ended)), "called": calling.result(), "busy": busy}
    return {**growth(looks), **slopes(looks), **told, "looks": looks}


async def _call(url: str, key: str, producing: "asyncio.Task[Any]") -> int:
    """Hand in runs over HTTP, each under an idempotency key of its own, while the others are produced; how many."""
    mark, made, began = secrets.token_hex(8), 0, time.monotonic()
    async with aiohttp.ClientSession(url, headers={"Authorization": f"Bearer {key}"}) as session:

        async def submit(number: int) -> bytes:
            named = {"Idempotency-Key": f"{mark}-{number}", "Content-Type": "application/json"}
            async with session.post("/v1/runs", data=RUN, headers=named) as answer:
                answer.raise_for_status()
                return await answer.read()

        while not producing.done():
            answer = await submit(made)
            if made % REPEATED == 0 and await submit(made) != answer:
                raise AssertionError("a call that was repeated with its key had another answer")
            made += 1
            await asyncio.wait([producing], timeout=max(0.0, made / CALLS - (time.monotonic() - began)))
    return made


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
        sizes = ", ".join(f"{name} {size}" for name, size in told.items())
        trial.say(f"soak: {look['at']:.0f} of {trial.seconds:g} s, MB: {sizes}")
        await asyncio.wait([producing], timeout=max(1.0, trial.seconds / SAMPLES))
    return looks


async def _sizes(bed: Bed) -> dict[str, Any]:
    rows = [row for row in await bed.rows(_SIZES) if not row["name"].startswith(KEPT)]
    found = {row["name"]: (row["table"], row["indexes"]) for row in rows}
    tables, indexes = (sum(size[which] for size in found.values()) for which in (0, 1))
    large = {name: sum(sizes) for name, sizes in found.items() if sum(sizes) > 1 << 20}
    return {"tables": tables, "indexes": indexes, "relations": large}


def growth(looks: list[dict[str, Any]]) -> Found:
    """In percent, by how much the largest size in the last third is above the largest in the one before.

    The first third fills caches, and tables up to where vacuum keeps them. What then still grows, grows for ever.
    """
    third = max(1, len(looks) // 3)
    found = {}
    for name in _measured(looks):
        parts = looks[-2 * third : -third], looks[-third:]
        before, after = (max((look.get(name, 0) for look in part), default=0) for part in parts)
        found[name] = round(max(0.0, 100 * (after / before - 1)), 1) if before else 0.0
    return found


def slopes(looks: list[dict[str, Any]]) -> Found:
    """In MB an hour, how fast each size rose after the first third: the median of the slopes between any two looks.

    What is there for a moment only, like the memory of a vacuum, does not bend it; what is kept of every run does.
    """
    later = looks[len(looks) // 3 :]
    found = {}
    for name in _measured(looks):
        rises = [
            (after.get(name, 0) - before.get(name, 0)) / (after["at"] - before["at"])
            for before, after in combinations(later, 2)
            if after["at"] > before["at"]
        ]
        found[f"{name}Slope"] = round(statistics.median(rises) * 3_600 / 1e6, 1) if rises else 0.0
    return found


def _measured(looks: list[dict[str, Any]]) -> list[str]:
    return [name for name, size in looks[-1].items() if isinstance(size, int) and name != "at"]


SECTION: Final = Section(
    "soak",
    "Soak",
    f"{OFFERED:,} runs a second for {{seconds}} s: a producer, a worker and a scheduler; and an API that is handed"
    f" {CALLS} runs a second more, each with an idempotency key of its own. Measured once, not three times. Growth is"
    " that of the largest size in the last third over the largest in the second. The slope is the median of those"
    " between any two looks after the first third; a byte kept of every run would be 36 MB an hour. Memory is what"
    " a process has for itself. History and idempotency keys, which are kept for as long as was promised, are not"
    " counted.",
    _once,
    full=600,
    repeats=1,
)
