"""What graphs cost: many small ones that a schedule fires, and one that is as large as they come."""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from foliot.bench.bed import APP, Bed
from foliot.bench.produce import PAYLOAD, tenant_name
from foliot.bench.sections import Section, Trial
from foliot.bench.targets import Found
from foliot.domain.graph import Need
from foliot.domain.job import Draft, Overlap
from foliot.domain.schedule import Cron
from foliot.domain.spec import FunctionHandler, Spec
from foliot.services.control import Control
from foliot.services.graphs import Graphs
from foliot.store.specs import SpecBook
from foliot.store.submission import Asked, NewRun
from foliot.store.tenants import find_tenant

SPEC: Final = Spec(handler=FunctionHandler("noop"))
SMALL: Final = {1: (0,), 2: (0,), 3: (0,), 4: (1, 2), 5: (2, 3), 6: (4, 5), 7: (4,), 8: (5,), 9: (6, 7, 8)}
"""Ten jobs: who waits for whom."""
EACH_SECOND: Final = Cron("* * * * * *", "UTC")
OFFERED: Final = 1_600
"""Small graphs that are fired every second: more than are asked for."""
PER_CALL: Final = 400
LAYERS: Final = 10
WIDTH: Final = 100
PARENTS: Final = 11
LEAD: Final = 3.0
"""Seconds of firing before the window."""


async def _once(trial: Trial) -> Found:
    small = await _small(trial)
    large = await _large(trial)
    trial.say(f"graphs: {small['rate']:,.0f} runs/s in graphs of ten, one of 1,000 in {large['large']:.2f} s")
    return {**large, **small}


async def _small(trial: Trial) -> Found:
    """Runs settled a second, in the order of their edges, while a scheduler fires and a worker works."""
    bed = trial.bed
    await _wipe(bed)
    tenant = await find_tenant(bed.database, tenant_name(0)) or 0
    control = Control(bed.database, SpecBook(bed.database), lambda _: None)
    count = OFFERED // 10 if trial.small else OFFERED
    for first in range(0, count, PER_CALL):
        drafts = [each for number in range(first, min(first + PER_CALL, count)) for each in _ten(number)]
        await control.create_batch(tenant, drafts, render=lambda _: b"")
    async with bed.process("worker", APP) as worker, bed.process("scheduler") as scheduler:
        await bed.until_workers()
        await _until(bed, "SELECT EXISTS (SELECT FROM graph_run)")
        await asyncio.sleep(min(LEAD, trial.seconds))
        watch = await bed.watch(worker=worker, scheduler=scheduler)
        began: datetime = await bed.value("SELECT clock_timestamp()")
        await asyncio.sleep(trial.seconds)
        ended: datetime = await bed.value("SELECT clock_timestamp()")
        busy = watch.busy()
        await bed.value("UPDATE schedule SET next_at = NULL")
        await _until(bed, "SELECT NOT EXISTS (SELECT FROM firing WHERE closed_at IS NULL)")
        await _until(bed, "SELECT NOT EXISTS (SELECT FROM graph_run WHERE ended_at IS NULL)")
    settled = "SELECT count(*) FROM history WHERE state = 4 AND finished_at > $1 AND finished_at <= $2"
    rate = await bed.value(settled, began, ended) / (ended - began).total_seconds()
    await _check(bed, tenant)
    return {"rate": round(rate), "busy": busy}


async def _large(trial: Trial) -> Found:
    """From the call that starts it to the end of its last run, with handlers that do nothing."""
    bed = trial.bed
    await _wipe(bed)
    tenant = await find_tenant(bed.database, tenant_name(0)) or 0
    book = SpecBook(bed.database)
    made: list[int] = []
    making = time.monotonic()
    drafts = _layers(LAYERS, WIDTH, PARENTS)
    await Control(bed.database, book, lambda _: None).create_batch(tenant, drafts, render=_noting(made))
    making = time.monotonic() - making
    async with bed.process("worker", APP):
        await bed.until_workers()
        run = NewRun(await book.intern(tenant, SPEC), PAYLOAD, job=made[0])
        began: datetime = await bed.value("SELECT clock_timestamp()")
        await Graphs(bed.database, lambda _: None).start(run, Asked(tenant))
        await _until(bed, "SELECT EXISTS (SELECT FROM graph_run WHERE ended_at IS NOT NULL)")
    ended: datetime = await bed.value("SELECT max(ended_at) FROM graph_run")
    await _check(bed, tenant)
    return {"large": round((ended - began) / timedelta(seconds=1), 2), "making": round(making, 2)}


async def _wipe(bed: Bed) -> None:
    await bed.wipe()
    await bed.value("TRUNCATE job, subscription, past_subscription, dependency, firing, schedule CASCADE")


async def _check(bed: Bed, tenant: int) -> None:
    """Nothing is left waiting, and nothing began before its parents had ended."""
    if left := await bed.value("SELECT count(*) FROM node WHERE run > 0"):
        raise AssertionError(f"{left:,} runs of graphs were left behind")
    early = """
        SELECT count(*)
          FROM (SELECT * FROM graph_shape ORDER BY id DESC LIMIT 200) AS s
         CROSS JOIN LATERAL unnest(s.parents, s.children) AS edge(parent, child)
          JOIN history p ON p.tenant = $1 AND p.run = s.id + edge.parent AND p.state = 4
          JOIN history c ON c.tenant = $1 AND c.run = s.id + edge.child AND c.state = 4
         WHERE c.started_at < p.finished_at"""
    if count := await bed.value(early, tenant):
        raise AssertionError(f"{count:,} runs began before their parents")


def _ten(number: int) -> list[Draft]:
    timing = {"cronExpression": str(EACH_SECOND.expression), "timezone": "UTC"}
    root = _draft(f"{number}.0", timing=timing, recurrence=EACH_SECOND, overlap=Overlap.ALLOW)
    return [root, *(_draft(f"{number}.{place}", [f"{number}.{each}" for each in SMALL[place]]) for place in SMALL)]


def _layers(layers: int, width: int, parents: int) -> list[Draft]:
    """Each job of a layer waits for some of the layer before; one root in front of all."""
    drafts = [_draft("root")]
    for layer in range(layers):
        for place in range(width - (layer == layers - 1)):
            above = [f"{layer - 1}.{(place + step) % width}" for step in range(parents)] if layer else ["root"]
            drafts.append(_draft(f"{layer}.{place}", above))
    return drafts


def _draft(key: str, parents: Sequence[str] = (), **fields: object) -> Draft:
    timing = fields.pop("timing", {})
    return Draft(
        name=key,
        key=key,
        spec=SPEC,
        payload=PAYLOAD,
        labels={},
        timing=timing,  # type: ignore[arg-type]
        depends_on=tuple(Need(each) for each in parents),
        **fields,  # type: ignore[arg-type]
    )


def _noting(made: list[int]) -> Callable[[Sequence[int]], bytes]:
    def note(ids: Sequence[int]) -> bytes:
        made.extend(ids)
        return b""

    return note


async def _until(bed: Bed, condition: str) -> None:
    async with asyncio.timeout(120):
        while not await bed.value(condition):  # noqa: ASYNC110 - the event would be in another process
            await asyncio.sleep(0.05)


SECTION: Final = Section(
    "graphs",
    "Graphs",
    f"{OFFERED:,} graphs of ten jobs each, with diamonds in them, that a scheduler fires every second, for"
    " {seconds} s beside a worker; then one graph of 1,000 jobs in ten layers with 9,989 edges, started once.",
    _once,
    full=10,
)
