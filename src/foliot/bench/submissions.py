"""Runs handed in over HTTP: one to a call, a thousand to a call, and at a steady pace."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from foliot.bench.bed import Bed, free_port
from foliot.bench.carried import api_process, until_open
from foliot.bench.sections import Section, Trial
from foliot.bench.targets import Found
from foliot.bench.wrk import Load, Told, check_wrk, press

RUN: Final = {"handler": "noop", "payload": {"order": 4711, "customer": "c-0815"}}
ONE: Final = Load(msgspec.json.encode(RUN), connections=64)
BATCH: Final = 1_000
MANY: Final = Load(msgspec.json.encode({"runs": [RUN] * BATCH}), connections=4)
PACED: Final = 2_000
"""Calls a second at which waiting is measured."""
STEADY: Final = ONE._replace(connections=256, pause=124)
"""256 callers who wait 124 ms on average and get their answer in 4: about 2,000 a second, whatever it takes."""


async def _once(trial: Trial) -> Found:
    check_wrk()
    bed, seconds = trial.bed, trial.seconds
    before = await _bare(seconds / 2)
    async with api_process(bed) as (api, access):
        url, key = access["FOLIOT_URL"], access["FOLIOT_KEY"]
        await press(f"{url}/v1/runs", key, ONE, 1)  # what a process learns once is not what is measured
        await bed.wipe()
        one, busy = await _watched(bed, api, f"{url}/v1/runs", key, ONE, seconds)
        await _all_there(bed, one.answers)
        await bed.wipe()
        many, beside = await _watched(bed, api, f"{url}/v1/runs:batch", key, MANY, seconds)
        await _all_there(bed, many.answers * BATCH)
        await bed.wipe()
        steady = await press(f"{url}/v1/runs", key, STEADY, seconds)
        await _all_there(bed, steady.answers)
    # Once more: a machine that grew busy meanwhile would otherwise be held against one of the two.
    bare = (before.rate + (await _bare(seconds / 2)).rate) / 2
    batch = many.rate * BATCH
    trial.say(f"submissions: {one.rate:,.0f}/s, bare {bare:,.0f}/s, in batches {batch:,.0f}/s, wrk {busy['wrk']:.2f}")
    return {
        "rate": round(one.rate),
        "bare": round(bare),
        "ratio": round(one.rate / bare, 2),
        "wrk": busy["wrk"],
        "p50": round(one.p50 / 1e3, 1),
        "batch": round(batch),
        "paced": round(steady.rate),
        "pacedP50": round(steady.p50 / 1e3, 1),
        "pacedP99": round(steady.p99 / 1e3, 1),
        "busy": busy,
        "busyInBatches": beside,
    }


async def _watched(bed: Bed, api: int, url: str, key: str, load: Load, seconds: float) -> tuple[Told, dict[str, float]]:
    """What wrk saw, and who was busy meanwhile."""
    pids: list[int] = []
    async with asyncio.TaskGroup() as group:
        pressing = group.create_task(press(url, key, load, seconds, pids.append))
        while not pids:  # noqa: ASYNC110 - it starts at once
            await asyncio.sleep(0.001)
        watch = await bed.watch(api=api, wrk=pids[0])
        await asyncio.sleep(max(0.4, max(1, round(seconds)) - 0.3))  # while it is still there to be looked at
        busy = watch.busy()
    return pressing.result(), busy


async def _all_there(bed: Bed, acknowledged: int) -> None:
    """What was being answered when wrk hung up may have been written as well; nothing may be missing."""
    written = await bed.value("SELECT count(*) FROM run WHERE id > 0")
    if written < acknowledged:
        raise AssertionError(f"{acknowledged:,} runs were acknowledged and {written:,} are there")


async def _bare(seconds: float) -> Told:
    async with _bare_process() as url:
        await press(url, "none", ONE, 1)
        return await press(url, "none", ONE, seconds)


@asynccontextmanager
async def _bare_process() -> AsyncIterator[str]:
    port = free_port()
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "foliot.bench.bare", str(port))
    try:
        await until_open(port)
        yield f"http://127.0.0.1:{port}/v1/runs"
    finally:
        process.kill()
        await process.wait()


SECTION: Final = Section(
    "submissions",
    "Handed in over HTTP",
    f"wrk with {ONE.connections} connections to one API process, a run to each call, for {{seconds}} s; then calls of"
    f" {BATCH:,} runs over {MANY.connections} connections; then {STEADY.connections} callers who pause so that about"
    f" {PACED:,} calls come a second. Acknowledged means committed, and every acknowledged run is looked for. Beside it"
    " bare Starlette and msgspec on the same server, which check the same body and keep nothing.",
    _once,
    full=8,
)
