"""A hundred thousand runs under way at once on two worker processes, all waiting, and then all ending together."""

import asyncio
import time
from typing import Final

from foliot.bench.app import let_go_file
from foliot.bench.bed import APP, Bed
from foliot.bench.sections import Section, Trial
from foliot.bench.targets import Found
from foliot.bench.watch import peak_memory

RUNS: Final = 100_000
FEW: Final = 4_000
"""Runs in a short trial."""
WORKERS: Final = 2
_CLAIMED: Final = "SELECT coalesce(sum(cardinality(runs)), 0)::int FROM claim"
_BEGUN: Final = "SELECT count(*) FROM run WHERE id > 0 AND started_at IS NOT NULL"
_LEASE_AGE: Final = """
SELECT extract(epoch FROM max(clock_timestamp() - seen_at))::float8 FROM worker WHERE state = 0
"""
_LOST: Final = """
SELECT count(*) FILTER (WHERE ending <> 1) + count(*) - count(DISTINCT run)
       + (SELECT count(*) FROM worker WHERE state = 2 AND id = ANY ($1)) FROM history
"""
PATIENCE: Final = 180.0


async def _once(trial: Trial) -> Found:
    bed, runs = trial.bed, FEW if trial.small else RUNS
    let_go = let_go_file(bed.notes)
    let_go.unlink(missing_ok=True)
    await bed.wipe()
    await bed.tool("foliot.bench.produce", "fill", runs, "linger")
    share = ("worker", APP, "--concurrency", str(runs // WORKERS))
    async with bed.process(*share) as first, bed.process(*share) as second:
        await bed.until_workers(WORKERS)
        living = [row["id"] for row in await bed.rows("SELECT id FROM worker WHERE state = 0")]
        began = time.monotonic()
        await _until_begun(bed, runs)
        reached = time.monotonic() - began
        watch = await bed.watch(first=first, second=second)
        age = await _rest(bed, max(trial.seconds, 1.0))
        busy, claimed = watch.busy(), await bed.value(_CLAIMED)
        let_go.touch()
        ended = time.monotonic()
        await bed.until_empty(PATIENCE)
        settled = time.monotonic() - ended
        memory = max(peak_memory(pid) or 0 for pid in (first, second))
        lost = await bed.value(_LOST, living) + runs - await bed.settled()
    trial.say(f"inflight: {claimed:,} in {reached:.1f} s, {memory / 1e6:.0f} MB a worker")
    return {
        "missing": runs - claimed,
        "reached": round(reached, 1),
        "leaseAge": round(age, 1),
        "memory": round(memory / 1e6),
        "resting": max(busy["first"], busy["second"]),
        "settled": round(settled, 1),
        "lost": lost,
        "busy": busy,
    }


async def _until_begun(bed: Bed, runs: int) -> None:
    """Until every handler is under way and has been for a blink: that is when the database knows."""
    async with asyncio.timeout(PATIENCE):
        while await bed.value(_BEGUN) < runs:  # noqa: ASYNC110 - no event to await
            await asyncio.sleep(0.2)


async def _rest(bed: Bed, seconds: float) -> float:
    """Let them wait; the age that any worker's lease reached meanwhile."""
    end, oldest = time.monotonic() + seconds, 0.0
    while time.monotonic() < end:
        oldest = max(oldest, await bed.value(_LEASE_AGE))
        await asyncio.sleep(0.25)
    return oldest


SECTION: Final = Section(
    "inflight",
    "100,000 runs in flight",
    f"Runs whose handlers only wait are claimed by {WORKERS} worker processes until all are under way; they rest for"
    " {seconds} s, while leases must be renewed, and then all end at once.",
    _once,
    full=20,
)
