"""What one tenant's or one priority's backlog does to the others."""

import asyncio
import secrets
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from foliot.bench.bed import Bed
from foliot.bench.measure import APP, percentiles
from foliot.bench.produce import BATCH, PAYLOAD, submitter, tenant_name
from foliot.bench.sections import Section, Trial
from foliot.bench.targets import Found
from foliot.domain.fairness import UNIT, Priority
from foliot.domain.spec import FunctionHandler, Spec
from foliot.services.submit import Submitter
from foliot.store.dispatch import LARGEST_CLAIM, claim, publish
from foliot.store.specs import SpecBook, SpecRef
from foliot.store.submission import NewRun
from foliot.store.tenants import find_tenant

QUIET: Final = 10
"""Tenants with one run a second each: ten times the waits in the same time, for a p99 that means something."""
WARM_UP: Final = 0.5
CROWD: Final = 1_000_000
BEHIND: Final = 100_000
TRIES: Final = 10
SHARED: Final = 40_000
"""Queued runs of each priority; what is compared ends before the first of them has none left."""
SMALL: Final = 20
"""A short trial has so many times less of everything."""
SLACK: Final = 2_000 * UNIT
"""How far below the lowest rank seen a worker's next claim begins."""

_FIRST: Final = (
    "SELECT spec, count(*) AS runs FROM (SELECT spec FROM history ORDER BY started_at LIMIT $1) AS first GROUP BY spec"
)


async def _once(trial: Trial) -> Found:
    beside = await _neighbours(trial)
    return {**beside, "nextClaim": await _next_claim(trial), "offShare": await _shares(trial)}


async def _neighbours(trial: Trial) -> Found:
    """Waits of tenants with a run a second each: alone, and beside one with a huge backlog."""
    bed = trial.bed
    await bed.wipe()
    quiet = [await _spec(bed, number, "brief") for number in range(1, QUIET + 1)]
    crowd = await _spec(bed, 0, "brief")
    async with submitter(bed.database) as accepting:
        async with bed.process("worker", APP):
            await bed.until_workers()
            await _waits(bed, accepting, quiet, WARM_UP)  # the first ones meet cold caches
            alone = await _waits(bed, accepting, quiet, trial.seconds)
        await _fill(accepting, [crowd], CROWD // (SMALL if trial.small else 1))
        await bed.plainly("CHECKPOINT")  # a gigabyte that is still on its way to the disk would be what is measured
        async with bed.process("worker", APP) as worker:
            await bed.until_workers()
            await _waits(bed, accepting, quiet, WARM_UP)
            watch = await bed.watch(worker=worker)
            crowded = await _waits(bed, accepting, quiet, trial.seconds)
            busy = watch.busy()
            left = await bed.value("SELECT EXISTS (SELECT FROM ready WHERE lane = $1)", crowd.lane)
    if not left:
        raise AssertionError("the backlog was used up before the end: nothing was measured")
    trial.say(f"fairness: p99 wait {alone['p99']:g} ms alone, {crowded['p99']:g} ms beside a backlog")
    times = round(crowded["p99"] / alone["p99"], 2)
    found = {"quiet": alone["p99"], "beside": crowded["p99"], "times": times, "busy": busy}
    return found | {"waits": {"alone": alone, "beside": crowded}}


async def _waits(bed: Bed, accepting: Submitter, tenants: Sequence[SpecRef], seconds: float) -> dict[str, float]:
    """From the call of submit to the first line of the handler, in milliseconds."""
    bed.notes.unlink(missing_ok=True)
    made, began = 0, time.monotonic()
    async with asyncio.TaskGroup() as group:
        while (late := time.monotonic() - began) < seconds:
            await asyncio.sleep(max(0.0, made / len(tenants) - late))
            payload = msgspec.json.encode({"sent": time.time(), "note": "y" * 70})
            group.create_task(accepting.submit([NewRun(tenants[made % len(tenants)], payload)]))
            made += 1
    await bed.until_noted(made)
    return percentiles([begun - sent for sent, _, begun in bed.noted()], 50, 95, 99)


async def _next_claim(trial: Trial) -> int:
    """Of so many tries, in how many percent the one high run was in the claim that came next."""
    bed = trial.bed
    await bed.wipe()
    normal, high = await _spec(bed, 0, "noop"), await _spec(bed, 0, "noop", Priority.HIGH)
    line, worker, mark, found = bed.database.line(), secrets.randbits(62), 0, 0

    async def take(number: int) -> list[Any]:
        return await claim(line, worker, number, [normal.lane], [mark], LARGEST_CLAIM)

    try:
        async with submitter(bed.database) as accepting:
            await _fill(accepting, [normal], BEHIND // (SMALL if trial.small else 1))
            for number in range(TRIES // (5 if trial.small else 1)):
                taken = await take(2 * number)
                mark = max(0, min(run.rank for run in taken) - SLACK)
                await publish(line, {normal.lane: max(run.rank for run in taken)})
                (wanted,) = (await accepting.submit([NewRun(high, PAYLOAD)])).ids
                found += wanted in {run.id for run in await take(2 * number + 1)}
            return round(100 * found / (number + 1))
    finally:
        await line.close()


async def _shares(trial: Trial) -> float:
    """How far, in percent, the share of any priority is from that of its weight while all of them have a backlog."""
    bed = trial.bed
    await bed.wipe()
    specs = {priority: await _spec(bed, 0, "noop", priority) for priority in Priority}
    each = SHARED // (SMALL if trial.small else 1)
    async with submitter(bed.database) as accepting:
        await _fill(accepting, list(specs.values()), each * len(specs))
    async with bed.process("worker", APP):
        await bed.until_empty()
    weights = sum(priority.weight for priority in Priority)
    counted = int(0.8 * each * weights / Priority.CRITICAL.weight)
    runs = {row["spec"]: row["runs"] for row in await bed.rows(_FIRST, counted)}
    shares = {which: runs.get(ref.id, 0) / counted for which, ref in specs.items()}
    off = max(abs(share * weights / which.weight - 1) for which, share in shares.items())
    return round(100 * float(off), 1)


async def _spec(bed: Bed, tenant: int, function: str, priority: Priority = Priority.NORMAL) -> SpecRef:
    number = await find_tenant(bed.database, tenant_name(tenant))
    spec = Spec(handler=FunctionHandler(function), priority=priority)
    return await SpecBook(bed.database).intern(number or 0, spec)


async def _fill(accepting: Submitter, specs: Sequence[SpecRef], count: int) -> None:
    """So many runs in all, of these in turn."""
    for _ in range(0, count, BATCH):
        await accepting.submit([NewRun(specs[number % len(specs)], PAYLOAD) for number in range(BATCH)])


SECTION: Final = Section(
    "fairness",
    "Fair to neighbours",
    f"{QUIET} tenants hand in one run a second each for {{seconds}} s, alone and then beside another with"
    f" {CROWD:,} queued runs in the same lane, all of them on disk (handlers take 10 ms, 100 at once). Then one high"
    f" run behind {BEHIND:,} normal ones, {TRIES} times; and {SHARED:,} queued runs of each of the five priorities of"
    " one tenant.",
    _once,
    full=60,
)
