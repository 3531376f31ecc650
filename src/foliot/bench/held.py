"""A steady load while somebody holds a transaction open, so that vacuum may remove nothing."""

import asyncio
import math
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Final, NamedTuple

from foliot.bench.bed import APP, Bed, free_port
from foliot.bench.measure import floor_beside
from foliot.bench.probe import RUNS, Probe
from foliot.bench.sample import rate, sample
from foliot.bench.sections import Section, Trial
from foliot.bench.targets import Found
from foliot.domain.marks import RECENT
from foliot.store.database import connect

OFFERED: Final = 10_000
"""Runs a second."""
TENTHS: Final = 10
SLOW: Final = 0.8
"""A second in which less than this share of the pace before was settled is a slow one."""


class Part(NamedTuple):
    """A part of the time: runs settled a second in all of it and in each of its seconds, and what claims took, in s."""

    rate: float
    seconds: Sequence[float]
    claims: Sequence[float]

    @property
    def worst(self) -> float:
        return min(self.seconds)

    @property
    def claim(self) -> float:
        """The median, in milliseconds."""
        return statistics.median(self.claims) * 1_000

    @property
    def claim95(self) -> float:
        """The 95th percentile, in milliseconds: of so few the next one up."""
        return sorted(self.claims)[math.ceil(0.95 * len(self.claims)) - 1] * 1_000

    def shown(self) -> dict[str, float]:
        told = {"rate": round(self.rate), "worst": round(self.worst)}
        return told | {"claim": round(self.claim, 2), "claim95": round(self.claim95, 2)}


async def _once(trial: Trial) -> Found:
    bed, port = trial.bed, free_port()
    floor = await floor_beside(bed, min(trial.seconds, 8))
    lead = max(0.5, min(20.0, trial.seconds / 4))
    probe = await Probe.made(bed.dsn, bed.database)
    async with (
        bed.process("worker", APP, FOLIOT_METRICS_PORT=str(port)) as worker,
        bed.process("scheduler") as scheduler,
        asyncio.TaskGroup() as group,
    ):
        await bed.until_workers()
        whole = 2 * lead + trial.seconds + 2
        producing = group.create_task(bed.tool("foliot.bench.produce", "pace", whole, OFFERED))
        await _until_settling(port)
        await asyncio.sleep(lead)  # the first ones meet cold caches
        quiet = await _part(port, probe, lead)
        watch = await bed.watch(worker=worker, scheduler=scheduler)
        async with _transaction(bed):
            began, tenths = time.monotonic(), list[Part]()
            for _ in range(TENTHS):
                part = await _part(port, probe, trial.seconds / TENTHS)
                tenths.append(part)
                at = time.monotonic() - began
                trial.say(f"held: {at:.0f} of {trial.seconds:g} s, {part.rate:,.0f}/s, claim {part.claim:.2f} ms")
        busy = watch.busy()
        await probe.close()
        made = (await producing)["made"]
        await bed.plainly("VACUUM run", "VACUUM ready")  # or every look whether they are empty would walk over it all
        await bed.until_empty()
    if (settled := await bed.settled()) != made:
        raise AssertionError(f"{made:,} runs were handed in and {settled:,} stand in history")
    return {**found_in(quiet, tenths), "floor": round(floor), "busy": busy}


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


async def _part(port: int, probe: Probe, seconds: float) -> Part:
    """Look on for so long, once a second and at least once: there is no part without a claim that was timed."""
    samples, claims = [await sample(port)], list[float]()
    end = time.monotonic() + seconds
    while not claims or time.monotonic() < end:
        claims.append(await probe.time())
        await asyncio.sleep(max(0.01, min(1.0 - RECENT, end - time.monotonic())))
        samples.append(await sample(port))
    return Part(rate(samples[0], samples[-1]), [rate(*pair) for pair in pairwise(samples)], claims)


def found_in(quiet: Part, tenths: list[Part]) -> Found:
    """Numbers by name: what became of the pace, and whether claims grew slower than before or from tenth to tenth."""
    held, before = statistics.fmean(part.rate for part in tenths), max(quiet.rate, 1.0)
    seconds = [each for part in tenths for each in part.seconds]
    slow = sum(each < SLOW * before for each in seconds)
    return {
        "quiet": round(quiet.rate),
        "rate": round(held),
        "loss": round(max(0.0, 100 * (1 - held / before)), 1),
        "lossAtEnd": round(max(0.0, 100 * (1 - tenths[-1].rate / before)), 1),
        "worst": round(min(part.worst for part in tenths)),
        "slowSeconds": round(100 * slow / len(seconds), 1),
        "claimQuiet": round(quiet.claim, 2),
        "claimQuiet95": round(quiet.claim95, 2),
        "claimFirst": round(tenths[0].claim, 2),
        "claimLast": round(tenths[-1].claim, 2),
        "claimLast95": round(tenths[-1].claim95, 2),
        "claimGrowth": round(tenths[-1].claim / tenths[0].claim, 2),
        "claimByQuiet": round(tenths[-1].claim / quiet.claim, 2),
        "tenths": [part.shown() for part in tenths],
    }


SECTION: Final = Section(
    "held",
    "Beside a transaction that is held open",
    f"{OFFERED:,} runs a second are handed in, first undisturbed and then for {{seconds}} s while an idle transaction"
    " holds its snapshot. Measured once, not three times. Claim times are medians over a tenth of that time: once a"
    f" second a claim of {RUNS} runs is made beside those of the worker, from where it would begin, its statement is"
    " timed, and the whole taken back. A scheduler runs beside them: once a minute it looks for what workers may have"
    " gone past, and whatever else it looks for is there too. The raw floor, as fast as it can and not tuned, came"
    " first: it says what the machine was like.",
    _once,
    full=600,
    repeats=1,
)
