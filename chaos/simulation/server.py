"""The database server as the nodes meet it: one statement at a time, at one instant; whoever must wait, waits.

A statement that waits for somebody's lock is set aside, the others go on, and it is looked at again whenever a
transaction ends: so what is blocked by whom, and for how long, is PostgreSQL's own doing, and the same every time.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg

from chaos.simulation.ground import Ground
from chaos.simulation.statement import Physical, Statement


class Server:
    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._loop = ground.loop
        self._blocked: dict[Statement, asyncio.Event] = {}
        self._cleaning: set[asyncio.Task[None]] = set()
        self.era = 0
        """Counts restarts: connections of an earlier era are dead."""
        self.is_down = False
        self.statements = 0

    def execute(self, physical: Physical, query: str, arguments: tuple[Any, ...]) -> Statement:
        """At this instant, on a connection. If it is not done then, it waits for a lock: see `wait`."""
        self.statements += 1
        self._ground.tell_time()
        with self._in_order():
            statement = Statement(physical, query, arguments)
            if not self._finish(statement):
                self._blocked[statement] = asyncio.Event()
                self._break_deadlock()
            elif statement.error is not None or not physical.is_in_transaction():
                self._look_again()
        return statement

    @contextmanager
    def _in_order(self) -> Iterator[None]:
        """Whoever has waited longest goes on first. Else those who are woken together run for it, in real time."""
        several = [each.physical for each in self._blocked] if len(self._blocked) > 1 else []
        for each in several:
            each.halt()
        try:
            yield
        finally:
            for each in several:
                each.go_on()

    def _finish(self, statement: Statement) -> bool:
        """Wait for the answer; false if it will not come before others have moved on."""
        while not statement.is_answered():
            if self._ground.waits(statement.physical):
                return False
        return True

    def _look_again(self) -> None:
        """A transaction has ended: who waited for it goes on, at this same instant, before anybody else does."""
        progress = True
        while progress and self._blocked:
            progress = False
            for each in list(self._blocked):
                if self._ground.waits(each.physical):
                    continue
                each.physical.go_on()
                if self._finish(each):
                    self._blocked.pop(each).set()
                    progress = True

    def _break_deadlock(self) -> None:
        """Let the server find a victim, if all of these wait for each other: it takes real time for that."""
        waiting = {each.physical.pid: each for each in self._blocked}
        while self._ground.in_a_circle(list(waiting)):
            if any(each.is_answered() for each in waiting.values()):
                self._look_again()
                return

    async def wait(self, statement: Statement, patience: float) -> None:
        """Until it is done; for locks no longer than `patience`, by virtual time."""
        over = self._blocked.get(statement)
        if over is None:
            return
        try:
            async with asyncio.timeout(patience):
                await over.wait()
        except TimeoutError:
            self._cancel(statement)
            if isinstance(statement.error, asyncpg.QueryCanceledError):
                raise asyncpg.LockNotAvailableError("canceling statement due to lock timeout") from None

    def _cancel(self, statement: Statement) -> None:
        with self._in_order():
            statement.physical.go_on()
            while statement in self._blocked:
                self._ground.cancel(statement.physical)
                if self._finish(statement):
                    self._blocked.pop(statement).set()
                    self._look_again()

    def hang_up(self, physical: Physical, running: "asyncio.Task[Any] | None") -> None:
        """The client is gone. What it asked for last is still done; then an open transaction is rolled back."""
        task = self._loop.create_task(self._clean(physical, running))
        self._cleaning.add(task)
        task.add_done_callback(self._cleaning.discard)

    async def _clean(self, physical: Physical, running: "asyncio.Task[Any] | None") -> None:
        if running is not None:
            await asyncio.wait([running])
        if physical.is_in_transaction():
            self.execute(physical, "ROLLBACK", ()).result()
        self._ground.take_back(physical)

    async def quiet(self) -> None:
        """Return when everything that was left behind has been cleaned up."""
        while self._cleaning:
            for each in list(self._blocked):
                self._cancel(each)
            await asyncio.wait(list(self._cleaning))

    async def crash(self) -> None:
        """Everything that is under way is lost; nobody is let in until `come_back`."""
        self.is_down = True
        self.era += 1
        for each in list(self._blocked):
            self._cancel(each)

    async def come_back(self) -> None:
        self._ground.restarted()
        self.is_down = False
