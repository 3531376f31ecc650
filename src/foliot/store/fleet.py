"""Workers and their leases: one row per process, and what becomes of the work of a dead one."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Final, NamedTuple

from foliot.store.database import Line

LEASE = timedelta(seconds=15)
HEARTBEAT = timedelta(seconds=5)
DEATHS_ALLOWED = 20
"""A run under which that many workers died is not given to another one. Whoever kills workers runs alone long before
that (`domain.suspicion`): this is for machines that die by themselves, again and again."""


class About(NamedTuple):
    """What a worker tells of itself for people to see."""

    host: str = ""
    pid: int = 0
    version: str = ""
    app: str | None = None
    concurrency: int = 0


UNTOLD: Final = About()


async def register(line: Line, worker: int, name: str, lanes: Sequence[int] = (), about: About = UNTOLD) -> None:
    """Make a worker known, with the lanes that it serves. Once only: what is registered again stays as it was."""
    await line.fetch("register_worker", worker, name, lanes, *about)


class Load(NamedTuple):
    """What a worker has in hand, and how many runs it takes a second, by lane."""

    running: Mapping[int, int] = MappingProxyType({})
    rate: Mapping[int, float] = MappingProxyType({})


AT_REST: Final = Load()


class Standing(NamedTuple):
    """What a heartbeat is answered: whether the worker is to leave, and which of its lanes are paused."""

    draining: bool
    paused: frozenset[int]
    is_astray: bool = False
    """Whether claims stand in its name besides those that it named. Asked only by workers that named some."""


async def beat(line: Line, worker: int, lanes: Sequence[int] = (), load: Load = AT_REST) -> Standing | None:
    """Renew the lease; none if the worker has been declared dead, which is final. `lanes` as they were registered."""
    running, rate = ([of.get(lane, 0) for lane in lanes] for of in load)
    rows = await line.fetch("beat", worker, running, rate)
    return Standing(rows[0]["state"] == 1, frozenset(rows[0]["paused"])) if rows else None


async def leave(line: Line, worker: int) -> None:
    """The worker is done: declared dead at once, so whatever it still held is taken over without waiting."""
    await line.fetch("leave", worker)


async def uptime(line: Line) -> timedelta:
    """How long the server has been up."""
    return await line.fetchval("uptime")  # type: ignore[no-any-return]


async def bury(line: Line, lease: timedelta = LEASE) -> list[int]:
    """Declare dead every worker whose lease has ended; returns them."""
    return [row["id"] for row in await line.fetch("bury", lease)]


class Reaped(NamedTuple):
    claims: int
    returned: int
    dead: int
    unknown: int = 0
    """At-most-once runs that had begun: they are over, and nobody can tell how they ended."""


async def reap(line: Line) -> Reaped:
    """Take back a bounded number of claims of dead or unknown workers, and make ready again what may be run again."""
    (row,) = await line.fetch("reap", DEATHS_ALLOWED)
    return Reaped(row["claims"], row["returned"], row["dead"], row["unknown"])
