"""What limits cost: one job's runs as fast as they go, without any limit and under each kind of them."""

from typing import Final

from foliot.bench.bed import APP, Bed
from foliot.bench.measure import settled_by
from foliot.bench.produce import PAYLOAD, limited_spec, tenant_name
from foliot.bench.sections import Section, Trial
from foliot.bench.targets import Found
from foliot.domain.job import Draft
from foliot.services.control import Control
from foliot.services.tenants import Tenants
from foliot.store.reading import JobRow
from foliot.store.specs import SpecBook
from foliot.store.tenants import find_tenant

JOB: Final = 100
KEYS: Final = 100_000
TENANT: Final = 200
NAME: Final = tenant_name(0)
OUT_OF_TURN: Final = """
SELECT count(*)
  FROM (SELECT h.started_at, lag(h.finished_at) OVER (PARTITION BY x.key ORDER BY x.place) AS free_since
          FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS x(run, key, place)
          JOIN history h ON h.run = x.run AND h.state = 4) AS turn
 WHERE started_at < free_since
"""
"""Of runs in the order in which they were handed in, and their keys: those that did not wait for their turn."""


async def _once(trial: Trial) -> Found:
    free = await _sustained(trial, 0)
    job = await _sustained(trial, JOB)
    keys = await _sustained(trial, 1, KEYS)
    await Tenants(trial.bed.database).set_limit(NAME, TENANT)
    try:
        tenant = await _sustained(trial, 0)
    finally:
        await Tenants(trial.bed.database).set_limit(NAME, None)
    rates = {"free": free, "job": job, "keys": keys, "tenant": tenant}
    trial.say("limits: " + ", ".join(f"{name} {found['rate']:,.0f}/s" for name, found in rates.items()))
    least = min(rates.values(), key=lambda found: found["rate"])
    return {**{name: round(found["rate"]) for name, found in rates.items()}, "busy": least["busy"]}


async def _sustained(trial: Trial, limit: int, keys: int = 0) -> Found:
    """Runs settled a second while the producer hands in what is taken, and who was busy; all are on record."""
    bed = trial.bed
    await bed.wipe()
    job = await _job(bed, limit, keys)
    async with bed.process("worker", APP) as worker:
        await bed.until_workers()
        watch = await bed.watch(worker=worker)
        told = await bed.tool("foliot.bench.produce", "limited", trial.seconds, job, limit, keys)
        made = told["made"]
        ended = await bed.value("SELECT clock_timestamp()")
        busy = watch.busy()
        await bed.until_empty()
    if (settled := await bed.settled()) != made:
        raise AssertionError(f"{made:,} runs were handed in and {settled:,} stand in history")
    if left := await bed.value("SELECT count(*) FROM seat"):
        raise AssertionError(f"{left:,} seats were not given back")
    if limit == 1 and (wrong := await bed.counted(OUT_OF_TURN, told["runs"], told["keys"])):
        raise AssertionError(f"{wrong:,} runs began before the one before them, of the same key, had ended")
    return {"rate": await settled_by(bed, ended), "busy": busy}


async def _job(bed: Bed, limit: int, keys: int) -> int:
    control = Control(bed.database, SpecBook(bed.database), lambda _: None)
    draft = Draft(name="limits", key=None, spec=limited_spec(limit, keys), payload=PAYLOAD, labels={}, timing={})
    made: list[int] = []

    def note(row: JobRow) -> bytes:
        made.append(row.id)
        return b""

    await control.create(await find_tenant(bed.database, NAME) or 0, draft, render=note)
    return made[0]


SECTION: Final = Section(
    "limits",
    "Under limits",
    "A producer and a worker for {seconds} s each: the runs of one job without any limit, then with a limit of"
    f" {JOB} for the job, then with a limit of 1 for each of {KEYS:,} keys drawn at random, then with a limit of"
    f" {TENANT} for the tenant. History must show the runs of each key one by one, in order. Up to 30,000 runs wait,"
    " for their turn or for the worker.",
    _once,
    full=10,
)
