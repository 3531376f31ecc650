"""One chaos run from beginning to end; leaves its evidence in a folder."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from chaos import rest
from chaos.chores import USUAL, Odd
from chaos.client import Api, Held
from chaos.driver import Driver
from chaos.editors import Applicants, Locksmith, Rivals
from chaos.glance import Caught, glance
from chaos.inside import Insider, Weigher
from chaos.keys import Hasty, Keymaster
from chaos.nemesis import Burst, Nemesis, Strike
from chaos.outsiders import Gossip, Trespasser
from chaos.places import CLIENT, NODES, REMOTE
from chaos.plan import SLOWEST
from chaos.poison import Poisoner
from chaos.published import commit
from chaos.records import CROWD, CROWDED, MOST_JOBS, PACE, RATIONED, Effect, Phase, each_line
from chaos.rush import Rusher
from chaos.topology import TENANTS, Topology
from foliot.domain.misfire import GRACE
from foliot.store.fleet import HEARTBEAT, LEASE, STOPPED_WITHIN

PROGRESS: Final = 10.0
LOOK_EVERY: Final = 5.0
"""Seconds between two glances at the records of a run that ends at its first violation."""
CALM: Final = 10.0
"""Seconds between healing and winding down, in which schedules go on undisturbed."""
PATIENCE: Final = 180.0
RATE: Final = 700.0
"""Runs a second that the clients hand in: what two cores carry beside everything else."""
BESIDES: Final = 120.0
"""Runs a second of everybody else: of chores, of those who make jobs, and of those jobs."""
LEAST: Final = 10.0
WEIGH_EVERY: Final = 20.0
ROTATE_EVERY: Final = 45.0
OUTSIDE_EVERY: Final = 2.0
HEAD: Final = "run.json"
DONE: Final = "done.json"
"""Files of a run: what it was to be, and what the harness knew when it was over."""
MOST: Final = 3_000_000
"""Runs of a whole campaign: enough to bound the rate of violations at one in a million, and still checked in memory."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    seed: int
    seconds: float
    folder: Path
    rate: float | None = None
    guard: bool = False
    only: list[Strike] | None = None
    bursts: list[Burst] | None = None
    """These instead of what the seed would have."""
    source: Path | None = None
    """Where the processes under test find Foliot, if not where the harness does."""
    slowest: float = SLOWEST
    odd: Odd = USUAL
    chores: bool = True
    patience: float = PATIENCE
    command: str = ""
    """What repeats the run."""
    impatient: bool = False
    """End with Caught at the first violation that nothing to come could take back."""


class Done(msgspec.Struct, frozen=True):
    """What the harness itself knows when a run is over; the rest is in the folder."""

    acknowledged: int
    lacking: dict[str, str]
    unused: list[str]


async def run(options: Options, say: Callable[[str], None]) -> Done:
    folder = options.folder
    topology = Topology(folder, guard=options.guard, source=options.source, say=say)
    try:
        await topology.start()
        head = {"seed": options.seed, "settings": _settings(options, topology)}
        (folder / HEAD).write_bytes(msgspec.json.encode(head))
        api = Api(topology.places.urls, topology.keys, folder / "operations.jsonl")
        try:
            work = _under_load(options, topology, api, say)
            return await (_unless_caught(work, folder) if options.impatient else work)
        finally:
            await api.close()
    except Caught:
        topology.kill()
        raise
    finally:
        await topology.stop()


async def _unless_caught(work: Coroutine[Any, Any, Done], folder: Path) -> Done:
    """What comes of the work; it is broken off as soon as the records say that something is violated for good."""

    async def look() -> Caught:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            if found := await asyncio.to_thread(glance, folder):
                return Caught(found)

    working, looking = asyncio.ensure_future(work), asyncio.ensure_future(look())
    try:
        await asyncio.wait((working, looking), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise looking.result()
        return working.result()
    finally:
        for each in (working, looking):
            each.cancel()
        await asyncio.gather(working, looking, return_exceptions=True)


def _settings(options: Options, topology: Topology) -> dict[str, Any]:
    """What the checker must know of how the product was set up."""
    return {
        "lease": LEASE.total_seconds(),
        "stop": STOPPED_WITHIN.total_seconds(),
        "heartbeat": HEARTBEAT.total_seconds(),
        "grace": GRACE.total_seconds(),
        "schedulers": [name for name in NODES if name.startswith("scheduler")],
        "seconds": options.seconds,
        "everything": options.only is None,
        "command": options.command,
        "commit": commit(),
        "remote": REMOTE,
        "crowds": {CROWDED: CROWD},
        "quotas": {RATIONED: MOST_JOBS},
        "pace": PACE,
        "commands": bool(topology.command),
        "forbidden": f"{topology.places.forbidden}/do",
        "attempts": "some",  # see rest.SAMPLE
    }


async def _under_load(options: Options, topology: Topology, api: Api, say: Callable[[str], None]) -> Done:
    rate = options.rate or min(RATE, max(LEAST, MOST / options.seconds - BESIDES))
    # Who encrypts cannot hand in runs inside transactions of its own: there is no key for it in the database.
    keys = {tenant: key for tenant, key in topology.keys.items() if tenant != RATIONED}
    insider = Insider(api, topology.proxies, topology.places.dsn(CLIENT), topology.places.urls, keys)
    weigher = Weigher(api, topology.weigh, options.seed)
    more = [
        (insider.step, 0.5),
        (weigher.step, WEIGH_EVERY),
        *_faces(api, options.seed, keys),
        *_outsiders(api, options.seed, topology),
    ]
    driver = Driver(
        api,
        options.seed,
        topology.places.ledger,
        rate=rate,
        slowest=options.slowest,
        odd=options.odd,
        chores=options.chores,
        command=topology.command,
        more=more,
    )
    poisoner = Poisoner(driver, options.seed, TENANTS[0], topology.folder / "ledger.jsonl")
    rusher = Rusher(driver, options.seed, topology.watch.waiting)
    nemesis = Nemesis(
        topology,
        options.seed,
        options.seconds,
        only=options.only,
        bursts=options.bursts,
        poisoner=poisoner,
        rusher=rusher,
    )
    began = time.time()
    until = began + options.seconds

    async def tell() -> None:
        while True:
            await asyncio.sleep(PROGRESS)
            say(
                f"{time.time() - began:5.0f} s: {api.acknowledged:,} acknowledged, {driver.backlog:,} to go,"
                f" {driver.counts.get(Phase.START, 0):,} starts, {len(nemesis.faults)} faults"
            )

    async with asyncio.TaskGroup() as group:
        telling = group.create_task(tell())
        load = group.create_task(driver.run(until))
        await group.create_task(nemesis.run(until))
        await load
        telling.cancel()
    await insider.close()
    await topology.heal()
    await topology.ready()
    say("healed; letting schedules go on for a moment, then winding down")
    await asyncio.sleep(min(CALM, options.seconds / 6))
    await driver.wind_down()
    quiet = await rest.quiesce(api, topology.watch.behind, options.patience, say)
    say("at rest; reading everything back" if quiet else "reading everything back all the same")
    suspicious = _started_twice(topology.folder / "ledger.jsonl")
    rest.write(await rest.dump(api, topology, options.seed, say, quiet=quiet, suspicious=suspicious), topology)
    done = Done(api.acknowledged, dict(topology.lacking), nemesis.unused())
    (topology.folder / DONE).write_bytes(msgspec.json.encode(done))
    return done


def _faces(api: Api, seed: int, keys: Mapping[str, str]) -> list[tuple[Callable[[], Awaitable[None]], float]]:
    """What is done with keys, versions, quotas and encryption, and how often."""
    stranger = Held(*next(iter(keys.items())))
    return [
        (Keymaster(api, seed).step, 0.0),
        (Keymaster(api, seed, 1).step, 1.0),
        (Hasty(api, seed).step, 2.0),
        (Rivals(api, seed, stranger).step, 1.0),
        (Applicants(api, seed).step, 3.0),
        (Locksmith(api, seed).step, ROTATE_EVERY),
    ]


def _outsiders(api: Api, seed: int, topology: Topology) -> list[tuple[Callable[[], Awaitable[None]], float]]:
    """What is done with targets that handlers may not call, and with secrets."""
    return [
        (Trespasser(api, seed, f"{topology.places.forbidden}/do").step, OUTSIDE_EVERY),
        (Gossip(api, seed, f"{topology.places.ledger}/do").step, OUTSIDE_EVERY),
    ]


def _started_twice(path: Path) -> set[str]:
    """Runs that the ledger saw start more than once, or start and not end."""
    starts: dict[str, int] = {}
    ended: set[str] = set()
    for effect in each_line(path, Effect):
        if effect.phase is Phase.START:
            starts[effect.run] = starts.get(effect.run, 0) + 1
        elif effect.phase is Phase.END and not effect.failed:
            ended.add(effect.run)
    return {run for run, count in starts.items() if count > 1 or run not in ended}
