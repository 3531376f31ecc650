"""Runs what was in the hands of workers that died: noted before it begins, or alone."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import structlog

from foliot.domain.ids import encode
from foliot.domain.outcome import Failure, Snoozed
from foliot.domain.spec import Spec
from foliot.domain.suspicion import Manner, manner
from foliot.store.dispatch import Claimed
from foliot.worker.executor import Assignment, Executor, Executors

log = structlog.get_logger("worker")

Note = Callable[[list[tuple[Claimed, datetime]]], Awaitable[object]]
"""Returns when it is on record that these have begun."""


class Wary:
    def __init__(self, note: Note, alone: Executors) -> None:
        """`alone` finds what runs a spec in a process of its own; nothing for handlers that cannot harm a worker."""
        self._note = note
        self._alone = alone
        self._turn = asyncio.Lock()
        self._next = _Batch()

    def executor(self, run: Claimed, spec: Spec, usual: Executor) -> tuple[Executor, bool]:
        """What runs a marked run, and whether that is alone."""
        alone = self._alone(spec) if manner(run.deaths) is Manner.ALONE else None
        if alone is not None:
            log.warning("running alone what may kill workers", run=encode("run", run.id), deaths=run.deaths)
        return self._noted(alone or usual), alone is not None

    def _noted(self, executor: Executor) -> Executor:
        async def execute(assignment: Assignment) -> Failure | Snoozed | None:
            await self._write(assignment.run, assignment.started_at)
            return await executor(assignment)

        return execute

    async def _write(self, run: Claimed, started_at: datetime) -> None:
        batch = self._next
        batch.begun.append((run, started_at))
        async with self._turn:  # while one statement is in flight, the next batch gathers
            if batch.is_written:
                return
            if batch is self._next:
                self._next = _Batch()
            await self._note(batch.begun)
            batch.is_written = True


class _Batch:
    def __init__(self) -> None:
        self.begun: list[tuple[Claimed, datetime]] = []
        self.is_written = False
