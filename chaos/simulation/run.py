"""One seed from its first statement to the checker's word."""

import asyncio
import random
from typing import Any, Final

import msgspec

from chaos.records import CROWD, CROWDED, Dump, Evidence
from chaos.simulation.client import Clients
from chaos.simulation.ground import Ground
from chaos.simulation.mode import Mode
from chaos.simulation.node import Node
from chaos.simulation.product import HEARTBEAT, LEASE
from chaos.simulation.storm import Storm
from chaos.simulation.wire import SimDatabase
from chaos.simulation.world import World
from chaos.verdict import Verdict, check
from chaos.watch import (
    BACKFILLED,
    DECIDED,
    FILLED,
    MISSED,
    backfilled_runs,
    decisions,
    filled_operations,
    missed_ranges,
)
from foliot.domain.misfire import GRACE
from foliot.kit import telemetry
from foliot.services.insights import Insights
from foliot.services.sweep import Sweeper
from foliot.store.admission import FIRST
from foliot.store.statements import SQL

SECONDS: Final = (2.0, 3.0, 5.0)
"""Most seeds are short, so that there can be many; some go on for longer."""
WITH_TIMES: Final = 9.0
"""Seconds in which a client minds the time: half of them before its schedulers are gone."""
CALM: Final = 2.5
"""After the storm, until what was sent in it has arrived."""
PATIENCE: Final = {"safety": 120.0, "liveness": 600.0}
"""Virtual seconds within which everything must have come to rest. A worker that loses half of its statements for ever
ends a run under a limit, in five of them, at one of thirty tries."""
BUSY: Final = """
SELECT EXISTS (SELECT FROM foliot.run WHERE id > 0 AND state < 2)
    OR EXISTS (SELECT FROM foliot.timer WHERE id > 0)
    OR EXISTS (SELECT FROM foliot.outbox WHERE refused IS NULL)
    OR EXISTS (SELECT FROM foliot.knock)
    OR EXISTS (SELECT FROM foliot.firing WHERE closed_at IS NULL)
    OR EXISTS (SELECT FROM foliot.schedule WHERE next_at <= foliot.clock_timestamp()) AS busy"""
"""Whether something goes on, or somebody has yet to deal with an instant, perhaps when the lease of one who died has
ended. What is blocked waits for one of these, or has been left behind. Not asked through the API: a hundred times so
cheap."""
LOOKS: Final = 0.2
"""Virtual seconds between two looks: every one of them costs as much as a real tenth."""


LOST: Final = {
    "before": "lost before it was executed",
    "after": "executed, then the reply was lost",
}
MANY: Final = 1_000
"""More lines than a seed has."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    seed: int
    mode: Mode
    verdict: Verdict
    crashes: list[str]
    quiet: bool
    fingerprint: str
    seconds: float
    """Of virtual time."""
    statements: int
    lost: dict[str, int]
    """How often a connection broke before its statement was executed, and after it."""
    story: list[str]

    @property
    def failures(self) -> list[str]:
        """Everything that is wrong, in a line each."""
        found = [
            f"{each.finding.check} {each.finding.rule}: "
            f"{' '.join(filter(None, (each.finding.run, each.finding.job)))} {each.finding.message}"
            for each in self.verdict.findings
            if each.finding.violation
        ]
        found += [f"crash: {each}" for each in self.crashes]
        return found if self.quiet else [*found, "liveness: work was still going on when patience ran out"]


async def simulate(ground: Ground, seed: int, mode: Mode = Mode.SAFETY) -> Outcome:
    ground.reset(seed)
    before = _left_behind()
    seconds = random.Random(f"{seed}/length").choice(SECONDS)  # noqa: S311 - guards nothing
    world = World(ground, seed)
    if world.has_times:
        seconds = WITH_TIMES
    clients, storm = Clients(world), Storm(world)
    for node in world.nodes:
        node.start()
    await asyncio.sleep(0.5)
    await clients.prepare()
    watch = world.loop.create_task(_watch_lines(world)) if world.has_lines else None
    async with asyncio.TaskGroup() as group:
        group.create_task(clients.run(seconds))
        await storm.blow(seconds)
    if mode is Mode.LIVENESS:
        await storm.ruin()
    else:
        await storm.heal()
    await asyncio.sleep(CALM)
    await clients.wind_down()
    quiet = await _rest(world, PATIENCE[mode])
    dump = await _dump(world, clients, quiet=quiet)
    left_behind = _left_behind() - before
    if watch is not None:
        left_behind += len(world.left_behind)
        watch.cancel()
    evidence = Evidence(
        seed=seed,
        operations=world.operations,
        effects=world.effects,
        faults=world.faults,
        dump=dump,
        settings={
            "lease": LEASE.total_seconds(),
            "heartbeat": HEARTBEAT.total_seconds(),
            "grace": GRACE.total_seconds(),
            "schedulers": [node.name for node in world.schedulers],
            "seconds": seconds,
            "rest": CALM,
            "crowds": {CROWDED: CROWD},
        },
        left_behind=left_behind,
    )
    for node in world.nodes:
        await node.kill()
    await world.server.quiet()
    return Outcome(
        seed=seed,
        mode=mode,
        verdict=check(evidence),
        crashes=world.crashes,
        quiet=quiet,
        fingerprint=world.fingerprint(),
        seconds=world.loop.time(),
        statements=world.server.statements,
        lost={name: world.lost[when] for when, name in LOST.items()},
        story=world.story,
    )


async def _rest(world: World, patience: float) -> bool:
    """Whether everything came to rest in time: nothing to do, twice in a row."""
    deadline, quiet = world.loop.time() + patience, 0
    while quiet < 2:
        if world.loop.time() > deadline:
            return False
        (found,) = world.ground.fetch(BUSY)
        quiet = 0 if found["busy"] else quiet + 1
        await asyncio.sleep(LOOKS)
    return True


async def _dump(world: World, clients: Clients, *, quiet: bool) -> Dump:
    found = Dump(taken=world.ground.seconds(), jobs={}, runs={}, attempts={}, quiet=quiet)
    found.missed = missed_ranges(world.ground.fetch(MISSED))
    found.backfilled = backfilled_runs(world.ground.fetch(BACKFILLED))
    found.filled = filled_operations(world.ground.fetch(FILLED))
    found.decided = decisions(world.ground.fetch(DECIDED))
    observer = Node(world, "observer")
    insights = Insights(SimDatabase(observer))
    await Sweeper(SimDatabase(observer)).run_once()
    for tenant in world.tenants:
        found.jobs[tenant] = await clients.pages(tenant, "/v1/jobs")
        found.runs[tenant] = await clients.pages(tenant, "/v1/runs")
        found.attempts[tenant] = await _attempts(world, insights, tenant)
        for job in found.jobs[tenant]:
            if job["scheduleType"] == "recurring":
                path = f"/v1/jobs/{job['jobId']}/occurrences"
                found.occurrences[job["jobId"]] = await clients.pages(tenant, path)
    observer.hang_up()
    return found


async def _watch_lines(world: World) -> None:
    """Look all the time for lines with room in which somebody stands uncalled: later comers may call it after all."""
    seen = 0
    while True:
        if seen != world.server.statements:  # else nothing can have changed, and some seeds wait for an hour
            seen = world.server.statements
            (found,) = world.ground.fetch(SQL["left_behind"], FIRST, MANY)
            world.left_behind.update(found["found"] or ())
        await asyncio.sleep(LOOKS)


def _left_behind() -> int:
    """Runs that only a sweeper called, since this process began."""
    return int(telemetry.REGISTRY.get_sample_value("foliot_left_behind_total") or 0)


async def _attempts(world: World, insights: Insights, tenant: str) -> list[dict[str, Any]]:
    """All of a tenant's: more than the API gives at once, by the same way."""
    (row,) = world.ground.fetch(f"SELECT id FROM tenant WHERE name = '{tenant}'")  # noqa: S608 - ours
    page = await insights.attempts(row["id"], job=None, run=None, cursor=None, limit=100_000)
    return [msgspec.to_builtins(each) for each in page.items]
