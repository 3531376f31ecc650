"""Workers and their leases: one row per process, and what becomes of the work of a dead one."""

from datetime import timedelta
from typing import NamedTuple

from foliot.store.database import Line

LEASE = timedelta(seconds=15)
HEARTBEAT = timedelta(seconds=5)
DEATHS_ALLOWED = 20
"""A run under which that many workers died is not given to another one. Whoever kills workers runs alone long before
that (`domain.suspicion`): this is for machines that die by themselves, again and again."""


async def register(line: Line, worker: int, name: str) -> None:
    await line.fetch("register_worker", worker, name)


async def beat(line: Line, worker: int) -> bool:
    """Renew the lease; false if the worker has been declared dead, which is final."""
    return bool(await line.fetch("beat", worker))


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


async def reap(line: Line) -> Reaped:
    """Take back a bounded number of claims of dead or unknown workers and make their runs ready again."""
    (row,) = await line.fetch("reap", DEATHS_ALLOWED)
    return Reaped(row["claims"], row["returned"], row["dead"])
