"""Workers and their leases: one row per process, and what becomes of the work of a dead one."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Final, NamedTuple

from foliot.store.admission import untying
from foliot.store.database import Line, Row
from foliot.store.statements import SQL

LEASE = timedelta(seconds=15)
HEARTBEAT = timedelta(seconds=5)
STOPPED_WITHIN = LEASE + HEARTBEAT
"""After that a run that was asked to stop is over: its worker heard of it by a heartbeat and left behind what does not
heed it, or was taken for dead."""
MOST_LANES = 1_000
"""That one worker serves."""
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
    """What a heartbeat is answered: whether the worker is to leave, which lanes are paused, which runs are to stop."""

    draining: bool
    paused: frozenset[int]
    is_astray: bool = False
    """Whether claims stand in its name besides those that it named. Asked only by workers that named some."""
    stop: frozenset[int] = frozenset()
    """Runs that it holds and that are to end."""
    recalled: frozenset[int] = frozenset()
    """Runs that it holds and is to hand back unless they have begun."""
    lanes: Mapping[int, str] = MappingProxyType({})
    """All that a worker with labels serves by now, each with its queue."""


async def beat(line: Line, worker: int, lanes: Sequence[int] = (), load: Load = AT_REST) -> Standing | None:
    """Renew the lease; none if the worker has been declared dead, which is final. `lanes` as they were registered."""
    running, rate = ([of.get(lane, 0) for lane in lanes] for of in load)
    rows = await line.fetch("beat", worker, running, rate)
    return standing_of(rows[0]) if rows else None


async def widen(line: Line, worker: int) -> dict[int, str]:
    """Have a worker with labels serve the lanes that have come to be and require some of them; all that it serves."""
    return {row["id"]: row["queue"] for row in await line.fetch("widen", worker, MOST_LANES)}


def standing_of(row: Row, *, is_astray: bool = False) -> Standing:
    """How the worker stands whose heartbeat was answered with this row."""
    stop, recalled = frozenset(row["stop"]), frozenset(row["recalled"])
    return Standing(row["state"] == 1, frozenset(row["paused"]), is_astray, stop, recalled)


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


NOTHING_REAPED: Final = Reaped(0, 0, 0)


class Claims(NamedTuple):
    """Which claims to look at: these, and all above."""

    these: Sequence[int] = ()
    above: int = 0


ALL_CLAIMS: Final = Claims()
_MOST_NAMED: Final = 1_000
_UNDER_WAY: Final = 1_000
"""Of the last so many numbers any may belong to a claim that is not committed yet."""


async def standing_claims(line: Line) -> Claims:
    """All that stand now, and whatever comes: all but what got its number long ago and is committed later than this."""
    ((oldest, last),) = await line.fetch("standing_claims", _MOST_NAMED)
    above = max(last - _UNDER_WAY, 0)
    if len(oldest) == _MOST_NAMED:
        above = min(above, oldest[-1])
    return Claims([claim for claim in oldest if claim <= above], above)


async def reap(line: Line, claims: Claims = ALL_CLAIMS) -> Reaped:
    """Take back a bounded number of claims of dead or unknown workers, and make ready again what may be run again."""
    orphans = await line.fetch("orphans", *claims)
    if not orphans:
        return NOTHING_REAPED
    found, tied = [row["id"] for row in orphans], [run for row in orphans for run in row["tied"]]
    if tied:
        async with line.borrow(atomic=True) as connection, untying(connection, tied, for_good=False):
            row = await connection.fetchrow(SQL["reap"], DEATHS_ALLOWED, found, tied)
    else:
        (row,) = await line.fetch("reap", DEATHS_ALLOWED, found, tied)
    return Reaped(row["claims"], row["returned"], row["dead"], row["unknown"])
