"""What one tenant's or one priority's backlog does to the others."""

import asyncio
import secrets
import statistics
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from foliot.bench.bed import APP, Bed
from foliot.bench.latency import percentiles
from foliot.bench.produce import BATCH, PAYLOAD, TENANTS, submitter, tenant_name
from foliot.bench.sections import Section, Trial
from foliot.bench.targets import Found
from foliot.domain.fairness import UNIT, Priority
from foliot.domain.spec import FunctionHandler, Spec
from foliot.services.submit import Submitter
from foliot.store.dispatch import LARGEST_CLAIM, claim, publish
from foliot.store.specs import SpecBook, SpecRef
from foliot.store.submission import NewRun
from foliot.store.tenants import find_tenant

QUIET: Final = TENANTS - 1
"""Tenants with one run a second each: as many times the waits in the same time, for a p99 that means something."""
WARM_UP: Final = 1.0
TURNS: Final = 4
"""Of each side in a repeat: what the machine does for a while besides is held against neither."""
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
    """Waits of tenants with a run a second each, alone and beside one with a huge backlog, in turns.

    The backlog is in a database of its own on the same server, so that it need not go for those who are to be alone.
    """
    alone, beside = list[float](), list[float]()
    turns = 1 if trial.small else TURNS
    async with trial.bed.fresh("foliot_crowded") as crowded:
        await trial.bed.wipe()
        crowd = await _spec(crowded, 0, "brief")
        async with submitter(crowded.database) as accepting:
            await _fill(accepting, [crowd], CROWD // (SMALL if trial.small else 1))
        busy = list[dict[str, float]]()
        for turn in range(1, turns + 1):
            trial.say(
                f"fairness: turn {turn} of {turns}, {trial.seconds / turns:g} s alone and as long beside a backlog"
            )
            alone += (await _turn(trial.bed, trial.seconds / turns))[0]
            waits, share = await _turn(crowded, trial.seconds / turns)
            beside += waits
            busy.append(share)
        left = await crowded.value("SELECT EXISTS (SELECT FROM ready WHERE lane = $1)", crowd.lane)
    if not left:
        raise AssertionError("the backlog was used up before the end: nothing was measured")
    told = {name: percentiles(waits, 50, 95, 99) for name, waits in (("alone", alone), ("beside", beside))}
    quiet, crowd_p99 = told["alone"]["p99"], told["beside"]["p99"]
    trial.say(f"fairness: p99 wait {quiet:g} ms alone, {crowd_p99:g} ms beside a backlog, of {len(beside):,} each")
    means = {name: round(statistics.fmean(each[name] for each in busy), 2) for name in busy[0]}
    return {"quiet": quiet, "beside": crowd_p99, "times": round(crowd_p99 / quiet, 2), "busy": means, "waits": told}


async def _turn(bed: Bed, seconds: float) -> tuple[list[float], dict[str, float]]:
    """Waits in one window with a worker of its own, and who was busy meanwhile."""
    quiet = [await _spec(bed, number, "brief") for number in range(1, QUIET + 1)]
    await bed.plainly("CHECKPOINT")  # what is still on its way to the disk would be what is measured
    async with submitter(bed.database) as accepting, bed.process("worker", APP) as worker:
        await bed.until_workers()
        await _waits(bed, accepting, quiet, WARM_UP)  # the first ones meet cold caches
        watch = await bed.watch(worker=worker)
        return await _waits(bed, accepting, quiet, seconds), watch.busy()


async def _waits(bed: Bed, accepting: Submitter, tenants: Sequence[SpecRef], seconds: float) -> list[float]:
    """From the call of submit to the first line of the handler, in seconds."""
    bed.notes.unlink(missing_ok=True)
    made, began = 0, time.monotonic()
    async with asyncio.TaskGroup() as group:
        while (late := time.monotonic() - began) < seconds:
            await asyncio.sleep(max(0.0, made / len(tenants) - late))
            payload = msgspec.json.encode({"sent": time.time(), "note": "y" * 70})
            group.create_task(accepting.submit([NewRun(tenants[made % len(tenants)], payload)]))
            made += 1
    await bed.until_noted(made)
    return [begun - sent for sent, _, begun in bed.noted()]


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
    f"{QUIET} tenants hand in one run a second each, for {{seconds}} s alone and for {{seconds}} s beside another with"
    f" {CROWD:,} queued runs in the same lane, all of them on disk (handlers take 10 ms, 100 at once). The two take"
    f" {TURNS} turns in each repeat, on two databases of one server, with one worker at a time that is started for the"
    f" turn; the p99 of a side is that of all its turns together, of about {60 * QUIET:,} waits in 60 s. Then one high"
    f" run behind {BEHIND:,} normal ones, {TRIES} times; and {SHARED:,} queued runs of each of the five priorities of"
    " one tenant.",
    _once,
    full=60,
)
