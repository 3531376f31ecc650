"""A steady load while somebody holds a transaction open, so that vacuum may remove nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Final

from foliot.bench.bed import Bed, free_port
from foliot.bench.measure import APP
from foliot.bench.sample import Sample, claim_time, rate, sample
from foliot.bench.sections import Section, Trial
from foliot.bench.targets import Found
from foliot.store.database import connect

OFFERED: Final = 10_000
"""Runs a second."""
TENTHS: Final = 10


async def _once(trial: Trial) -> Found:
    bed, port = trial.bed, free_port()
    await bed.wipe()
    lead = max(0.5, min(20.0, trial.seconds / 4))
    async with bed.process("worker", APP, FOLIOT_METRICS_PORT=str(port)) as worker, asyncio.TaskGroup() as group:
        await bed.until_workers()
        whole = 2 * lead + trial.seconds + 2
        producing = group.create_task(bed.tool("foliot.bench.produce", "pace", whole, OFFERED))
        await _until_settling(port)
        await asyncio.sleep(lead)  # the first ones meet cold caches
        before = await sample(port)
        await asyncio.sleep(lead)
        quiet = rate(before, await sample(port))
        watch = await bed.watch(worker=worker)
        async with _transaction(bed):
            samples = await _tenths(trial, port)
        busy = watch.busy()
        made = (await producing)["made"]
        await bed.plainly("VACUUM run", "VACUUM ready")  # or every look whether they are empty would walk over it all
        await bed.until_empty()
    if (settled := await bed.settled()) != made:
        raise AssertionError(f"{made:,} runs were handed in and {settled:,} stand in history")
    return {**_found(quiet, samples), "busy": busy}


async def _until_settling(port: int) -> None:
    async with asyncio.timeout(60):
        while not (await sample(port)).settled:  # noqa: ASYNC110 - the event would be in another process
            await asyncio.sleep(0.05)


@asynccontextmanager
async def _transaction(bed: Bed) -> AsyncIterator[None]:
    """Open, with a snapshot of its own, and idle: as a forgotten session or a long report would be."""
    connection = await connect(bed.dsn, idle_in_transaction_session_timeout="0")
    try:
        async with connection.transaction(isolation="repeatable_read"):
            await connection.fetch("SELECT count(*) FROM lane")
            yield
    finally:
        await connection.close()


async def _tenths(trial: Trial, port: int) -> list[Sample]:
    samples = [await sample(port)]
    for _ in range(TENTHS):
        await asyncio.sleep(trial.seconds / TENTHS)
        samples.append(await sample(port))
        pace, claim = rate(*samples[-2:]), claim_time(*samples[-2:])
        trial.say(f"held: {samples[-1].at - samples[0].at:.0f} s, {pace:,.0f}/s, claim {claim:.2f} ms")
    return samples


def _found(quiet: float, samples: list[Sample]) -> Found:
    held, at_end, quiet = rate(samples[0], samples[-1]), rate(samples[-2], samples[-1]), max(quiet, 1.0)
    first, last = claim_time(*samples[:2]), claim_time(*samples[-2:])
    return {
        "quiet": round(quiet),
        "rate": round(held),
        "loss": round(max(0.0, 100 * (1 - held / quiet)), 1),
        "lossAtEnd": round(max(0.0, 100 * (1 - at_end / quiet)), 1),
        "claimFirst": round(first, 2),
        "claimLast": round(last, 2),
        "claimGrowth": round(last / first, 2) if first else 0.0,
        "tenths": [{"rate": round(rate(*pair)), "claim": round(claim_time(*pair), 2)} for pair in pairwise(samples)],
    }


SECTION: Final = Section(
    "held",
    "Beside a transaction that is held open",
    f"{OFFERED:,} runs a second are handed in, first undisturbed and then for {{seconds}} s while an idle transaction"
    " holds its snapshot. Measured once: claim times are averages over a tenth of that time.",
    _once,
    full=600,
    repeats=1,
)
