"""What may run now for reasons other than time: runs under a limit hold seats, in lines that are kept in order.

Whoever ends runs that are tied, or puts them off, does so inside `untying`. Whoever writes runs that are to be let in
writes them blocked and tied, and calls `enter` in the same transaction.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from foliot.store.database import Connection, Line, Row
from foliot.store.statements import SQL

FIRST: Final = -(2**63)
"""Where a round over all lines begins."""
MOST_KNOCKS: Final = 1_000
"""Lines that one transaction looks after."""


class Untied:
    """What came of it, once the block has ended."""

    lanes: Sequence[int] = ()
    """In which something became ready."""


@asynccontextmanager
async def untying(connection: Connection, ids: Sequence[int], *, for_good: bool) -> AsyncIterator[Untied]:
    """What ends these tied runs, or lets them wait again; afterwards others take their places. In a transaction.

    Whoever does not end `for_good` comes back to its job: whether that is paused is then asked under its lock.
    """
    if not for_good:
        await connection.fetch(SQL["lock_owners"], ids)
    locked = await connection.fetchval(SQL["lock_ties"], ids)
    untied = Untied()
    yield untied
    untied.lanes = await connection.fetchval(SQL["untie"], ids, locked)


@asynccontextmanager
async def untying_job(connection: Connection, job: int) -> AsyncIterator[None]:
    """The same for whatever is tied of a job, which is locked."""
    ids = await connection.fetchval(SQL["tied_of_job"], job)
    if not ids:
        yield
        return
    async with untying(connection, ids, for_good=True):
        yield


async def enter(connection: Connection, ids: Sequence[int]) -> Sequence[int]:
    """Let these runs in, which were just written, blocked and tied; the lanes in which something became ready."""
    return await connection.fetchval(SQL["enter"], ids) if ids else ()


async def answer_knocks(line: Line) -> int:
    """Look after lines that somebody joined while they were locked; in how many lanes something became ready."""
    if not await line.fetchval("are_knocking"):
        return 0
    return len(await line.fetchval("answer_knocks", MOST_KNOCKS))


async def line_up_again(connection: Connection, job: int) -> None:
    """Put the runs of a job that was paused back into their lines."""
    await connection.execute(SQL["line_up_again"], job)


async def relimit(connection: Connection, job: int) -> None:
    """Let the job's limits, which may have been changed, count for those that wait."""
    await connection.execute(SQL["relimit"], job)


async def relimit_tenant(connection: Connection, tenant: int) -> None:
    """The same for a tenant's."""
    await connection.execute(SQL["relimit_tenant"], tenant)


class Looked(NamedTuple):
    reached: int
    """Where to look next; `FIRST` after the last."""
    found: int

    @classmethod
    def at(cls, page: Row, most: int, found: int) -> "Looked":
        """What came of a look at a page of at most so many."""
        return cls(FIRST if page["looked_at"] < most else page["reached"], found)


async def call_left_behind(line: Line, after: int, most: int) -> Looked:
    """Have those looked after, of the next lines, in which somebody stands that should have been called."""
    (row,) = await line.fetch("left_behind", after, most)
    if row["found"]:
        await line.fetch("knock", row["found"])
    return Looked.at(row, most, len(row["found"] or ()))


async def clear_vacant(line: Line, after: int, most: int) -> Looked:
    """Free the seats of runs that are gone, of the next that have any."""
    (row,) = await line.fetch("vacant", after, most)
    gone = row["found"] or ()
    if gone:
        async with line.borrow(atomic=True) as connection, untying(connection, gone, for_good=True):
            pass
    return Looked.at(row, most, len(gone))


async def free_stranded(line: Line, after: int, most: int) -> Looked:
    """Let those of the next runs go on that are blocked and stand nowhere."""
    (row,) = await line.fetch("stranded", after, most)
    blocked = row["found"] or ()
    if blocked:
        async with line.borrow(atomic=True) as connection:
            await let_promote(connection, blocked)
    return Looked.at(row, most, len(blocked))


async def let_promote(connection: Connection, ids: Sequence[int]) -> None:
    """Leave runs that are blocked and should not be to promote, unless somebody has paused their jobs meanwhile."""
    await connection.fetch(SQL["lock_owners"], ids)
    await connection.execute(SQL["free_stranded"], ids)


async def tidy_lines(line: Line, after: int, most: int) -> None:
    """Remove lines, of the next ones, that nobody needs any more."""
    await line.fetch("tidy_slots", after, most)
