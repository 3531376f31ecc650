"""Work that is carried by HTTP: through the gateway of one API, for one worker and for many."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Final

from foliot.bench.bed import APP, Bed, free_port
from foliot.bench.measure import floor_beside, settled_by
from foliot.bench.produce import tenant_name
from foliot.bench.sections import Section, Trial
from foliot.bench.targets import Found
from foliot.services.tenants import Tenants

FEW, MANY = 8, 500
FEWER: Final = 50
"""Instead of many in a short trial."""
_CONNECTIONS: Final = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"


async def _once(trial: Trial) -> Found:
    bed = trial.bed
    floor = await floor_beside(bed, min(trial.seconds, 8))
    async with api_process(bed) as (api, access), bed.process("worker", APP, "--gateway", **access) as worker:
        await bed.until_workers()
        watch = await bed.watch(api=api, worker=worker)
        rate, connections = await _sustain(trial)
        busy = watch.busy()
    trial.say(f"gateway: {rate:,.0f}/s")
    return {"rate": round(rate), "floor": round(floor), "connections": connections, "busy": busy}


async def _compare(trial: Trial) -> Found:
    many = FEWER if trial.small else MANY
    floor = await floor_beside(trial.bed, min(trial.seconds, 8))
    few_rate, _ = await _fleet(trial, FEW)
    many_rate, busy = await _fleet(trial, many)
    connections = await _count_connections(trial, many)
    trial.say(f"fleet: {few_rate:,.0f}/s by {FEW} workers, {many_rate:,.0f}/s by {many}, {connections} connections")
    found = {"few": round(few_rate), "many": round(many_rate), "ratio": round(many_rate / few_rate, 2)}
    return found | {"floor": round(floor), "connections": connections, "busy": busy}


async def _fleet(trial: Trial, workers: int) -> tuple[float, dict[str, float]]:
    bed = trial.bed
    await bed.wipe()
    async with api_process(bed) as (api, access), _workers(bed, workers, access) as fleet:
        await bed.until_workers(workers)
        watch = await bed.watch(api=api, fleet=fleet)
        rate, _ = await _sustain(trial)
        return rate, watch.busy()


async def _count_connections(trial: Trial, workers: int) -> int:
    """Of a whole installation: two APIs with half of the workers each, and a scheduler, all at work."""
    bed = trial.bed
    await bed.wipe()
    async with (
        bed.process("scheduler"),
        api_process(bed) as (_, first),
        api_process(bed) as (_, second),
        _workers(bed, workers // 2, first),
        _workers(bed, workers - workers // 2, second),
    ):
        await bed.until_workers(workers)
        await _until_scheduled(bed)
        _, connections = await _sustain(trial)
        return connections


def _workers(bed: Bed, count: int, access: dict[str, str]) -> AbstractAsyncContextManager[int]:
    return bed.process(APP, "--workers", str(count), module="foliot.cli.fleet", **access)


async def _until_scheduled(bed: Bed) -> None:
    async with asyncio.timeout(60):
        while not await bed.value("SELECT EXISTS (SELECT FROM scheduler)"):  # noqa: ASYNC110 - no event to await
            await asyncio.sleep(0.05)


@asynccontextmanager
async def api_process(bed: Bed) -> AsyncIterator[tuple[int, dict[str, str]]]:
    """Its pid, and what a worker must know of it."""
    port = free_port()
    key = await Tenants(bed.database).issue_key(tenant_name(0), f"bench-{port}", ["*"])
    access = {"FOLIOT_URL": f"http://127.0.0.1:{port}", "FOLIOT_KEY": key}
    async with bed.process("api", FOLIOT_HOST="127.0.0.1", FOLIOT_PORT=str(port)) as pid:
        await until_open(port)
        yield pid, access


async def until_open(port: int) -> None:
    async with asyncio.timeout(60):
        while True:
            with suppress(ConnectionError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(0.05)


async def _sustain(trial: Trial) -> tuple[float, int]:
    """Runs settled a second, producer and workers at once, and the most connections that were open meanwhile."""
    bed, most = trial.bed, 0
    async with asyncio.TaskGroup() as group:
        producing = group.create_task(bed.tool("foliot.bench.produce", "sustain", trial.seconds))
        end = time.monotonic() + trial.seconds
        while time.monotonic() < end:
            most = max(most, await bed.value(_CONNECTIONS))
            await asyncio.sleep(0.5)
        made = (await producing)["made"]
    ended = await bed.value("SELECT clock_timestamp()")
    await bed.until_empty()
    if (settled := await bed.settled()) != made:
        raise AssertionError(f"{made:,} runs were handed in and {settled:,} stand in history")
    return await settled_by(bed, ended), most


GATEWAY: Final = Section(
    "gateway",
    "Through the gateway",
    "One worker that has only a URL and a key, one API, and a producer, for {seconds} s; every run ends in history. The"
    " raw floor beside it is not tuned: it says what the machine was like.",
    _once,
    full=60,
)
FLEET: Final = Section(
    "fleet",
    "Five hundred workers",
    f"{FEW} and then {MANY} registered workers, identities of one process, all through the gateway of one API, each"
    f" time for {{seconds}} s beside a producer. Then {MANY} once more, half of them through a second API, and a"
    " scheduler beside them: connections are those of all that, with the producer's and our own. The raw floor, for"
    " a few seconds, is not tuned.",
    _compare,
    full=20,
)
