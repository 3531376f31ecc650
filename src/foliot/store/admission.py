"""What may run now for reasons other than time: runs under a limit hold seats, in lines that are kept in order."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final

from foliot.store.database import Connection, Line
from foliot.store.statements import SQL

PATIENCE: Final = timedelta(seconds=5)
"""How long whoever is first in a line with room may stand there before the sweeper speaks of a lost wake-up."""


class Ties:
    """The ties of some runs, locked; what happens to the runs happens meanwhile, in the same transaction."""

    def __init__(self, connection: Connection, ids: Sequence[int], locked: Sequence[int]) -> None:
        self._connection = connection
        self._ids = ids
        self._locked = locked

    async def untie(self) -> list[int]:
        """Free what these runs do not need any more, and call the next; the lanes in which something became ready."""
        return await self._connection.fetchval(SQL["untie"], self._ids, self._locked)  # type: ignore[no-any-return]

    async def admit(self) -> list[int]:
        """Let those of these due runs be ready whose turn it is; the others are blocked until they are called."""
        return await self._connection.fetchval(SQL["admit"], self._ids, self._locked)  # type: ignore[no-any-return]


async def lock_ties(connection: Connection, ids: Sequence[int]) -> Ties:
    """Whoever ends tied runs, puts them off or asks for their turn does this first, in a statement of its own."""
    return Ties(connection, ids, await connection.fetchval(SQL["lock_ties"], ids))


@asynccontextmanager
async def leaving(line: Line, ids: Sequence[int], *, for_good: bool) -> AsyncIterator[Connection]:
    """A transaction in which some tied runs end, or wait again; at its end others take their places.

    Whoever does not end `for_good` comes back to its job: whether that is paused is then asked under its lock.
    """
    async with line.borrow(atomic=True) as connection:
        if not for_good:
            await connection.fetch(SQL["lock_owners"], ids)
        ties = await lock_ties(connection, ids)
        yield connection
        await ties.untie()


async def enter_lines(connection: Connection, ids: Sequence[int]) -> Ties:
    """Take seats for runs that have none, and lock the lines of all of them."""
    await connection.fetch(SQL["take_seats"], ids)
    await connection.fetch(SQL["lock_owners"], ids)
    return await lock_ties(connection, ids)


async def seat(connection: Connection, ids: Sequence[int]) -> None:
    """Put runs into their lines, in the transaction that writes them, and let those be ready whose turn it is."""
    if await connection.fetchval(SQL["take_seats"], ids):
        await (await lock_ties(connection, ids)).admit()


async def retune(connection: Connection, tenant: int) -> None:
    """Let as many go as the tenant's limit, which has just been changed, has room for."""
    if slot := await connection.fetchval(SQL["lock_tenant_line"], tenant):
        await connection.fetchval(SQL["hand_over"], [slot])


async def call_left_behind(line: Line, patience: timedelta = PATIENCE, most: int = 1_000) -> int:
    """Call those whose turn it is and that nobody has called; how many there were: it should be none, ever."""
    found = [row["run"] for row in await line.fetch("left_behind", patience, most)]
    if found:
        async with line.borrow(atomic=True) as connection:
            await (await lock_ties(connection, found)).admit()
    return len(found)
