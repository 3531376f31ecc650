"""Asking for work on many runs, looking at it, and calling it off."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from foliot.domain import backfill
from foliot.domain.backfill import Backfill, Choice, Reprocess
from foliot.domain.errors import Conflict, InvalidField, NotFound, one_of
from foliot.domain.ids import encode
from foliot.domain.job import LONGEST_NAME, Gate
from foliot.domain.letters import Sweep
from foliot.domain.operation import STATUSES, OperationKind, OperationState
from foliot.kit.signals import DUE
from foliot.services.operations.filling import instants, refuse_closed, refuse_overlap
from foliot.services.operations.views import operation_view, planned_sweep_view, planned_view
from foliot.store import operations as store
from foliot.store import sweeps
from foliot.store.audit import note
from foliot.store.calendars import Bodies
from foliot.store.database import Connection, Database
from foliot.store.jobs import clock
from foliot.store.operations import OperationRow
from foliot.store.reading import JobRow, find_job
from foliot.store.submission import Asked, answer_once, do_once
from foliot.wire.operations import OperationView
from foliot.wire.pages import Page, id_below, page_of

_TRIES: Final = 5

Result = TypeVar("Result")


class Operations:
    """Serves one tenant at a time; another tenant's id is answered like one that never was."""

    def __init__(self, database: Database, hint: Callable[[str], None]) -> None:
        self._database = database
        self._calendars = Bodies()
        self._hint = hint

    async def plan_backfill(self, tenant: int, job: int, asked: Backfill) -> OperationView:
        """What a back-fill would do, and refuse as it would; nothing is written."""

        async def answer(_: Connection, named: Backfill, choice: Choice) -> OperationView:
            return planned_view(job, named, choice)

        return await self._planned(tenant, job, asked, answer)

    async def backfill(
        self, tenant: int, job: int, asked: Backfill, *, key: str | None = None, fingerprint: bytes = b""
    ) -> bytes:
        """Write a back-fill down and return it rendered; with an idempotency `key`, the first answer to that key."""
        once = Asked(tenant, key, fingerprint)

        async def write(connection: Connection, named: Backfill, choice: Choice) -> bytes:
            made = await store.insert_backfill(connection, tenant, job, named, choice)
            return await _answer(connection, once, made)

        return await self._begin(once, lambda: self._planned(tenant, job, asked, write))

    async def plan_sweep(self, tenant: int, asked: Sweep) -> OperationView:
        """How many dead letters would be replayed or discarded; nothing is written."""
        async with self._database.connection() as connection:
            counted = await sweeps.count_letters(connection, tenant, asked.selection, await clock(connection))
        return planned_sweep_view(asked, counted)

    async def sweep(self, tenant: int, asked: Sweep, *, key: str | None = None, fingerprint: bytes = b"") -> bytes:
        """Write down that the dead letters of now are to be replayed or discarded; `key` as in `backfill`."""
        once = Asked(tenant, key, fingerprint)

        async def write() -> bytes:
            async with self._database.transaction() as connection:
                now = await clock(connection)
                counted = await sweeps.count_letters(connection, tenant, asked.selection, now)
                made = await sweeps.insert_sweep(connection, tenant, asked, counted.total, now)
                return await _answer(connection, once, made)

        return await self._begin(once, write)

    async def _begin(self, once: Asked, write: Callable[[], Awaitable[bytes]]) -> bytes:
        body, is_new = await do_once(self._database, once, write)
        if is_new:
            self._hint(DUE)
        return body

    async def operation(self, tenant: int, operation: int) -> OperationView:
        async with self._database.connection() as connection:
            return operation_view(await _read(connection, tenant, operation))

    async def operations(
        self, tenant: int, *, status: str | None, job: int | None, limit: int, cursor: str | None
    ) -> Page[OperationView]:
        if status is not None and status not in STATUSES:
            raise InvalidField("status", f"no operation has the status {status[:40]!r}", one_of(STATUSES))
        state = None if status is None else STATUSES[status]
        rows = await store.list_operations(
            self._database, tenant, below=id_below(cursor), state=state, job=job, limit=limit + 1
        )
        return page_of(rows, limit, operation_view, lambda row: encode("c", row.id))

    async def cancel(self, tenant: int, operation: int) -> OperationView:
        """Hand out nothing more.

        Of a back-fill, what no worker holds ends; what runs goes on, but is not tried again. What was replayed goes on
        in any case: it is older than the operation.
        """
        async with self._database.transaction() as connection:
            locked = await store.lock_operation(connection, tenant, operation)
            if locked is None:
                raise _no_such_operation()
            if locked.is_over and locked.state is not OperationState.CANCELLED:
                raise Conflict("the operation is over", "there is nothing left to cancel")
            if not locked.is_over:
                await store.cancel_operation(connection, operation)
                if locked.kind is OperationKind.BACKFILL and locked.job is not None:
                    await store.cancel_waiting_runs(connection, {operation: locked.job}, wait=True)
                await store.note_ended(connection, [operation])
                await store.finish(connection, [operation])
                await note(connection, encode("op", operation), None, {"state": "cancelled"})
            return operation_view(await _read(connection, tenant, operation))

    async def _planned(
        self,
        tenant: int,
        job: int,
        asked: Backfill,
        then: Callable[[Connection, Backfill, Choice], Awaitable[Result]],
    ) -> Result:
        """Choose the instants and do something with them while the job stands still.

        Working them out takes up to seconds, so it comes before the lock; if the job changes meanwhile, once more.
        """
        for _ in range(_TRIES):
            row, now = await self._job(tenant, job)
            refuse_closed(Gate(row.gate))
            asked.range.check(now)
            calendars = await self._calendars.learn(self._database.fetch, [row.schedule_key])
            found = await instants(row, asked.range, calendars)
            async with self._database.transaction() as connection:
                standing = await store.lock_job_to_fill(connection, tenant, job)
                if standing is None or standing.version != row.version:
                    continue
                await refuse_overlap(connection, job, asked.range)
                past = await store.read_past(
                    connection, job, asked.range, with_history=asked.reprocess is not Reprocess.ALL
                )
                choice = backfill.choose(found, asked.reprocess, **past._asdict())
                name = asked.name or f"back-fill of {row.name}"[:LONGEST_NAME]
                return await then(connection, msgspec.structs.replace(asked, name=name), choice)
        raise Conflict("others keep changing this job", "repeat the call")

    async def _job(self, tenant: int, job: int) -> tuple[JobRow, datetime]:
        async with self._database.connection() as connection:
            row = await find_job(connection, tenant, job)
            if row is None:
                raise NotFound("there is no such job")
            return row, await clock(connection)


async def _read(connection: Connection, tenant: int, operation: int) -> OperationRow:
    row = await store.find_operation(connection, tenant, operation)
    if row is None:
        raise _no_such_operation()
    return row


def _no_such_operation() -> NotFound:
    return NotFound("there is no such operation")


async def _answer(connection: Connection, once: Asked, operation: int) -> bytes:
    """A new operation rendered, and kept as the answer to its key."""
    await store.finish(connection, [operation])  # there may be nothing to do
    row = await _read(connection, once.tenant, operation)
    facts = {"kind": row.kind.name.lower(), "name": row.name, "arguments": row.arguments}
    await note(connection, encode("op", operation), None, facts)
    body = msgspec.json.encode(operation_view(row))
    await answer_once(connection, once, body)
    return body
