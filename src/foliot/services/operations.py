"""Asking for work on many runs, looking at it, and calling it off."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from foliot.domain import backfill
from foliot.domain.backfill import MOST_INSTANTS, Backfill, Choice, Range, Reprocess
from foliot.domain.calendar import Calendar
from foliot.domain.errors import Conflict, InvalidField, NotFound
from foliot.domain.ids import decode, encode
from foliot.domain.job import LONGEST_NAME, Gate
from foliot.domain.letters import Sweep
from foliot.domain.operation import STATUSES, OperationKind, OperationState, Progress, estimated_end
from foliot.domain.schedule import next_fire, parse_key
from foliot.kit.signals import DUE
from foliot.store import operations as store
from foliot.store import sweeps
from foliot.store.audit import note
from foliot.store.calendars import Bodies
from foliot.store.database import Connection, Database
from foliot.store.jobs import clock
from foliot.store.operations import OperationRow
from foliot.store.reading import NEWEST, JobRow, find_job
from foliot.store.submission import Asked, answer_once, do_once
from foliot.store.sweeps import Counted
from foliot.wire.operations import OperationView, PlanView, ProgressView
from foliot.wire.views import Page

_TRIES: Final = 5
_SLICE: Final = 500
"""Instants that are worked out before others get their turn: some 20 ms."""
_SHOWN: Final = 5
"""Instants at either end that a dry run shows."""

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
            raise InvalidField("status", f"no operation has the status {status[:40]!r}", f"one of {sorted(STATUSES)}")
        state = None if status is None else STATUSES[status]
        below = _id_of(cursor)
        rows = await store.list_operations(self._database, tenant, below=below, state=state, job=job, limit=limit + 1)
        following = encode("c", rows[limit - 1].id) if len(rows) > limit else None
        return Page([operation_view(row) for row in rows[:limit]], following)

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
            _refuse_closed(Gate(row.gate))
            asked.range.check(now)
            calendars = await self._calendars.learn(self._database.fetch, [row.schedule_key])
            found = await _instants(row, asked.range, calendars)
            async with self._database.transaction() as connection:
                standing = await store.lock_job_to_fill(connection, tenant, job)
                if standing is None or standing.version != row.version:
                    continue
                await _refuse_overlap(connection, job, asked.range)
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


def operation_view(row: OperationRow) -> OperationView:
    unfinished = row.finished_at is None
    waits = unfinished and row.gate is Gate.PAUSED and row.state is not OperationState.CANCELLED
    return OperationView(
        operation_id=encode("op", row.id),
        kind=row.kind.word,
        name=row.name,
        job_id=None if row.job is None else encode("job", row.job),
        status=row.state.word,
        arguments=row.arguments,
        progress=_progress_view(row.progress),
        message="the job is paused: resume it to go on" if waits else row.reason,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        estimated_end_at=estimated_end(row.progress, row.started_at, row.now)
        if row.state is OperationState.RUNNING
        else None,
    )


def planned_view(job: int, asked: Backfill, choice: Choice) -> OperationView:
    """An operation that was only thought of."""
    in_order = choice.chosen if asked.order is backfill.Order.OLDEST else choice.chosen[::-1]
    nothing = Progress(total=choice.total, submitted=0, succeeded=0, failed=0, cancelled=0, skipped=choice.skipped)
    return OperationView(
        operation_id=None,
        kind=OperationKind.BACKFILL.word,
        name=asked.name,
        job_id=encode("job", job),
        status="planned",
        arguments=asked.arguments,
        progress=_progress_view(nothing),
        message="nothing was written: a dry run",
        created_at=None,
        started_at=None,
        finished_at=None,
        estimated_end_at=None,
        plan=PlanView(
            to_run=len(in_order),
            already_done=choice.done,
            under_way=choice.under_way,
            first=list(in_order[:_SHOWN]),
            last=list(in_order[-_SHOWN:]),
        ),
    )


def planned_sweep_view(asked: Sweep, counted: Counted) -> OperationView:
    refused = counted.refused if asked.kind is OperationKind.REPLAY else 0
    nothing = Progress(total=counted.total, submitted=0, succeeded=0, failed=0, cancelled=0, skipped=refused)
    deed = "replayed" if asked.kind is OperationKind.REPLAY else "discarded"
    return OperationView(
        operation_id=None,
        kind=asked.kind.word,
        name=asked.name,
        job_id=None if asked.selection.job is None else encode("job", asked.selection.job),
        status="planned",
        arguments=asked.arguments,
        progress=_progress_view(nothing),
        message=f"{counted.total - refused:,} dead letters would be {deed}; nothing was written: a dry run",
        created_at=None,
        started_at=None,
        finished_at=None,
        estimated_end_at=None,
    )


def _progress_view(progress: Progress) -> ProgressView:
    return ProgressView(**msgspec.structs.asdict(progress), running=progress.running)


async def _instants(row: JobRow, range_: Range, calendars: Mapping[str, Calendar]) -> list[datetime]:
    """The instants of the range, worked out in slices: others are served in between."""
    if row.schedule_key is None:
        raise Conflict("the job has no recurrence", "only recurring jobs have a past to fill; run this one with :run")
    recurrence = parse_key(row.schedule_key, calendars)
    found: list[datetime] = []
    for at in backfill.instants(recurrence, range_):
        if len(found) == MOST_INSTANTS:
            raise backfill.refuse_too_many(recurrence, range_, found[-1])
        found.append(at)
        if len(found) % _SLICE == 0:
            await asyncio.sleep(0)
    if not found:
        following = next_fire(recurrence, range_.since)
        hint = "it never fires after from" if following is None else f"it fires at {following:%Y-%m-%dT%H:%M:%SZ}"
        raise InvalidField("until", "the schedule has no instant between from and until", hint)
    return found


async def _refuse_overlap(connection: Connection, job: int, range_: Range) -> None:
    if (other := await store.overlapping_operation(connection, job, range_)) is not None:
        name = encode("op", other)
        raise Conflict(f"{name} fills some of the same instants", f"wait for its end, or cancel it: {name}:cancel")


def _refuse_closed(gate: Gate) -> None:
    if gate is Gate.PAUSED:
        raise Conflict("the job is paused", "resume it first: nothing of a paused job runs")
    if gate is Gate.CANCELLED:
        raise Conflict("the job is cancelled", "create a new one")


async def _read(connection: Connection, tenant: int, operation: int) -> OperationRow:
    row = await store.find_operation(connection, tenant, operation)
    if row is None:
        raise _no_such_operation()
    return row


def _no_such_operation() -> NotFound:
    return NotFound("there is no such operation")


def _id_of(cursor: str | None) -> int:
    if cursor is None:
        return NEWEST
    try:
        return decode("c", cursor)
    except InvalidField:
        raise InvalidField("cursor", "is not one of ours", "pass nextCursor of the page before, unchanged") from None


async def _answer(connection: Connection, once: Asked, operation: int) -> bytes:
    """A new operation rendered, and kept as the answer to its key."""
    await store.finish(connection, [operation])  # there may be nothing to do
    row = await _read(connection, once.tenant, operation)
    facts = {"kind": row.kind.name.lower(), "name": row.name, "arguments": row.arguments}
    await note(connection, encode("op", operation), None, facts)
    body = msgspec.json.encode(operation_view(row))
    await answer_once(connection, once, body)
    return body
