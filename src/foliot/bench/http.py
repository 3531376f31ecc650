"""HTTP targets called by a worker, beside a bare client that calls the same target."""

from typing import Final

from foliot.bench.bed import APP
from foliot.bench.measure import span_of
from foliot.bench.sections import Section, Trial
from foliot.bench.target import CONCURRENCY, call_barely, target
from foliot.bench.targets import Found


async def _once(trial: Trial) -> Found:
    bed = trial.bed
    await bed.wipe()
    async with target() as url:
        bare = await call_barely(url, trial.seconds)
        made = await bed.tool("foliot.bench.produce", "fill", int(bare * trial.seconds), url)
        async with bed.process("worker", APP, "--concurrency", str(CONCURRENCY)) as worker:
            await bed.until_workers()
            watch = await bed.watch(worker=worker)
            await bed.until_empty()
            busy = watch.busy()
        rate = made["made"] / await span_of(bed)
        settled = await bed.settled()
        if settled != made["made"]:
            raise AssertionError(f"{made['made']:,} addresses were to be called, and {settled:,} calls succeeded")
        # Once more: a machine that grew busy meanwhile would otherwise be held against one of the two.
        bare = (bare + await call_barely(url, trial.seconds)) / 2
    trial.say(f"http: {rate:,.0f}/s, bare aiohttp {bare:,.0f}/s")
    return {"rate": round(rate), "bare": round(bare), "ratio": round(rate / bare, 2), "busy": busy}


SECTION: Final = Section(
    "http",
    "HTTP targets",
    f"Runs that call an aiohttp server on this machine, {CONCURRENCY} at once, from claim to history, beside a bare"
    " aiohttp client that calls the same server as often at once, for {seconds} s before and after.",
    _once,
    full=8,
)
