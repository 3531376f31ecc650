"""After the storm: heal, wait until nothing moves any more, and write down what the product says of itself."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import aiohttp
import msgspec

from chaos.client import Api
from chaos.records import Dump
from chaos.topology import TENANTS, Topology
from chaos.watch import TROUBLE

PAGE: Final = 500
SAMPLE: Final = 1_000
"""Of the ad-hoc runs that went well at the first try, this many are looked into per tenant: there is no list of all
attempts in the API, and a call for each of a million runs would take longer than the run."""


async def quiesce(api: Api, behind: Callable[[], Awaitable[bool]], patience: float, say: Callable[[str], None]) -> bool:
    """Wait until no run is pending or running and no instant is `behind`, twice in a row; false if that never came."""
    deadline, quiet = time.monotonic() + patience, 0
    while time.monotonic() < deadline:
        try:
            busy = [tenant for tenant in TENANTS if await _is_busy(api, tenant)]
            busy += ["the schedulers"] if await behind() else []
        except (aiohttp.ClientError, *TROUBLE):
            busy = ["the API does not answer"]
        quiet = 0 if busy else quiet + 1
        if quiet == 2:
            return True
        await asyncio.sleep(1.0)
    say(f"work was still going on after {patience:.0f} s")
    return False


async def _is_busy(api: Api, tenant: str) -> bool:
    for status in ("scheduled", "ready", "running"):  # what is blocked waits for one of these, or was left behind
        if (await api.read(tenant, "/v1/runs", status=status, limit=1))["items"]:
            return True
    return False


async def dump(
    api: Api, topology: Topology, seed: int, say: Callable[[str], None], *, quiet: bool, suspicious: set[str]
) -> Dump:
    """What a user sees. `suspicious` runs are looked into whatever the product says of them."""
    found = Dump(taken=time.time(), jobs={}, runs={}, attempts={}, missed=await topology.watch.missed(), quiet=quiet)
    found.backfilled = await topology.watch.backfilled()
    found.filled = await topology.watch.filled()
    found.decided = await topology.watch.decided()
    found.booked = await topology.watch.booked()
    found.uncalled = len(topology.watch.uncalled)
    found.left = topology.barracks.living() if topology.barracks else []
    found.audit = await topology.watch.audited()
    found.exposed, found.sealed = await topology.watch.kept_secret()
    found.let_out = await topology.watch.let_out()
    for tenant in TENANTS:
        found.jobs[tenant] = await _pages(api, tenant, "/v1/jobs")
        found.runs[tenant] = runs = await _pages(api, tenant, "/v1/runs")
        found.attempts[tenant] = await _attempts(api, tenant, found.jobs[tenant], runs, suspicious, seed)
        found.occurrences |= await _occurrences(api, tenant, found.jobs[tenant])
        say(f"  {tenant}: {len(found.jobs[tenant]):,} jobs, {len(runs):,} runs")
    return found


async def _attempts(
    api: Api, tenant: str, jobs: list[Any], runs: list[Any], suspicious: set[str], seed: int
) -> list[dict[str, Any]]:
    """Every attempt of every job's runs, and of each ad-hoc run that is not plainly well; of the rest a sample."""
    paths = [f"/v1/jobs/{job['jobId']}/executions" for job in jobs]
    plain: list[str] = []
    for run in runs:
        if run["jobId"] is None:
            well = run["status"] == "completed" and run["attempts"] == 1 and run["runId"] not in suspicious
            (plain if well else paths).append(f"/v1/runs/{run['runId']}/attempts")
    chance = random.Random(seed)  # noqa: S311 - guards nothing
    paths += chance.sample(plain, min(SAMPLE, len(plain)))
    return [attempt for rows in await _all(api, tenant, paths) for attempt in rows]


async def _occurrences(api: Api, tenant: str, jobs: list[Any]) -> dict[str, list[dict[str, Any]]]:
    """What became of every instant of every recurring job, by the product's own word."""
    names = [job["jobId"] for job in jobs if job["scheduleType"] == "recurring"]
    return dict(zip(names, await _all(api, tenant, [f"/v1/jobs/{name}/occurrences" for name in names]), strict=True))


async def _all(api: Api, tenant: str, paths: list[str]) -> list[list[dict[str, Any]]]:
    abreast = asyncio.Semaphore(8)

    async def ask(path: str) -> list[dict[str, Any]]:
        async with abreast:
            return await _pages(api, tenant, path)

    return await asyncio.gather(*map(ask, paths))


async def _pages(api: Api, tenant: str, path: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    query: dict[str, Any] = {"limit": PAGE}
    while True:
        page = await _patiently(api, tenant, path, query)
        items += page["items"]
        if page["nextCursor"] is None:
            return items
        query["cursor"] = page["nextCursor"]


async def _patiently(api: Api, tenant: str, path: str, query: dict[str, Any]) -> Any:
    for _ in range(5):
        try:
            return await api.read(tenant, path, **query)
        except (aiohttp.ClientError, TimeoutError, OSError):
            await asyncio.sleep(1.0)
    return await api.read(tenant, path, **query)


def write(found: Dump, topology: Topology) -> None:
    (topology.folder / "dump.json").write_bytes(msgspec.json.encode(found))
