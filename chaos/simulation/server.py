"""The database server as the nodes meet it: one statement at a time, at one instant; whoever must wait, waits.

A statement that waits for somebody's lock is set aside, the others go on, and it is looked at again whenever a
transaction ends: so what is blocked by whom, and for how long, is PostgreSQL's own doing, and the same every time.
"""

import asyncio
from functools import partial
from typing import Any

import asyncpg

from chaos.simulation.ground import Ground, Physical


class _Blocked:
    def __init__(self, statement: "asyncio.Task[Any]", physical: Physical) -> None:
        self.statement = statement
        self.physical = physical
        self.over = asyncio.Event()


class Server:
    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._loop = ground.loop
        self._turn = asyncio.Lock()
        self._blocked: list[_Blocked] = []
        self._cleaning: set[asyncio.Task[None]] = set()
        self.era = 0
        """Counts restarts: connections of an earlier era are dead."""
        self.is_down = False
        self.statements = 0

    async def run(self, physical: Physical, query: str, arguments: tuple[Any, ...], patience: float) -> list[Any]:
        """Execute at this instant, on a connection; wait for locks no longer than `patience`, by virtual time."""
        self.statements += 1
        async with self._turn:
            self._ground.tell_time()
            statement: asyncio.Task[list[Any]] = self._loop.create_task(physical.connection.fetch(query, *arguments))
            finished = await self._finish(statement, physical)
            if finished and not physical.connection.is_in_transaction():
                await self._look_again()
            blocked = _Blocked(statement, physical)
            if not finished:
                self._blocked.append(blocked)
        if not finished:
            await self._wait(blocked, patience)
        return statement.result()

    async def _finish(self, statement: "asyncio.Task[Any]", physical: Physical) -> bool:
        """Wait for the answer; false if it will not come before others have moved on."""
        while True:
            woken = asyncio.Event()
            self._loop.no_answer = woken.set
            statement.add_done_callback(partial(_wake, woken))
            with self._loop.awaiting_answer():
                await woken.wait()
                if statement.done():
                    return True
                if await self._ground.waits(physical):
                    return False

    async def _look_again(self) -> None:
        """A transaction has ended: who waited for it goes on, at this same instant, before anybody else does."""
        progress = True
        while progress and self._blocked:
            progress = False
            for each in self._blocked[:]:
                with self._loop.awaiting_answer():
                    waits = not each.statement.done() and await self._ground.waits(each.physical)
                if not waits and await self._finish(each.statement, each.physical):
                    self._blocked.remove(each)
                    each.over.set()
                    progress = True

    async def _wait(self, blocked: _Blocked, patience: float) -> None:
        try:
            async with asyncio.timeout(patience):
                await blocked.over.wait()
        except TimeoutError:
            await self._cancel(blocked)
            if isinstance(blocked.statement.exception(), asyncpg.QueryCanceledError):
                raise asyncpg.LockNotAvailableError("canceling statement due to lock timeout") from None

    async def _cancel(self, blocked: _Blocked) -> None:
        async with self._turn:
            while blocked in self._blocked:
                with self._loop.awaiting_answer():
                    await self._ground.cancel(blocked.physical)
                if await self._finish(blocked.statement, blocked.physical):
                    self._blocked.remove(blocked)
                    blocked.over.set()

    def hang_up(self, physical: Physical, running: "asyncio.Task[Any] | None") -> None:
        """The client is gone. What it asked for last is still done; then an open transaction is rolled back."""
        task = self._loop.create_task(self._clean(physical, running))
        self._cleaning.add(task)
        task.add_done_callback(self._cleaning.discard)

    async def _clean(self, physical: Physical, running: "asyncio.Task[Any] | None") -> None:
        if running is not None:
            await asyncio.wait([running])
        if physical.connection.is_in_transaction():
            await self.run(physical, "ROLLBACK", (), 1.0)
        self._ground.take_back(physical)

    async def quiet(self) -> None:
        """Return when everything that was left behind has been cleaned up."""
        while self._cleaning:
            for each in self._blocked[:]:
                await self._cancel(each)
            await asyncio.wait(list(self._cleaning))

    async def crash(self) -> None:
        """Everything that is under way is lost; nobody is let in until `come_back`."""
        self.is_down = True
        self.era += 1
        for each in self._blocked[:]:
            await self._cancel(each)

    async def come_back(self) -> None:
        await self._ground.restarted()
        self.is_down = False


def _wake(event: asyncio.Event, _: object) -> None:
    event.set()
