"""Looking after workers and queues: who is there, what waits, draining and pausing."""

from collections.abc import Callable
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from foliot.domain.errors import Conflict, InvalidField, NotFound, one_of
from foliot.domain.ids import decode, encode
from foliot.kit.signals import FLEET, READY
from foliot.store import roster
from foliot.store.audit import note
from foliot.store.database import Database
from foliot.store.fleet import LEASE
from foliot.store.roster import QueueRow, WorkerRow
from foliot.wire.codec import rfc3339
from foliot.wire.fleet import QueueView, WorkerView
from foliot.wire.pages import Page, page_of, strange_cursor

STATES: Final = MappingProxyType({"live": 0, "draining": 1, "dead": 2})
_WORDS: Final = MappingProxyType({number: word for word, number in STATES.items()})


class Fleet:
    """Workers and queues are shared by all tenants: whoever may call this sees and steers them for everybody."""

    def __init__(self, database: Database, hint: Callable[[str], None]) -> None:
        self._database = database
        self._hint = hint

    async def workers(self, *, state: str | None, limit: int, cursor: str | None) -> Page[WorkerView]:
        """Newest first; dead ones for a day."""
        if state is not None and state not in STATES:
            raise InvalidField("state", f"no worker is {state[:40]!r}", one_of(STATES))
        before = None if cursor is None else _read_cursor(cursor)
        number = None if state is None else STATES[state]
        rows = await roster.list_workers(self._database, state=number, before=before, limit=limit + 1)
        return page_of(rows, limit, _worker_view, lambda row: f"{rfc3339(row.started_at)}.{encode('c', row.id)}")

    async def drain(self, worker: int) -> WorkerView:
        """Have a worker claim nothing more, finish what it runs, and leave."""
        async with self._database.transaction() as connection:
            if await roster.drain(connection, worker):
                await note(connection, encode("wrk", worker), {"state": "live"}, {"state": "draining"})
        self._hint(FLEET)
        row = await roster.find_worker(self._database, worker)
        if row is None:
            raise NotFound("there is no such worker")
        if row.state == STATES["dead"]:
            raise Conflict("the worker is gone already", "GET /v1/workers?state=live lists those that are not")
        return _worker_view(row)

    async def queues(self, *, limit: int, cursor: str | None) -> Page[QueueView]:
        """By name."""
        rows = await roster.list_queues(self._database, after=cursor or "", limit=limit + 1)
        return page_of(rows, limit, _queue_view, lambda row: row.name)

    async def pause(self, queue: str) -> QueueView:
        """No claim takes anything of it from now on; workers hand back what they have not begun.

        A worker hears of it at once, as a rule. One that does not, because it is cut off, starts nothing once its lease
        has ended: by then the pause holds, whatever happens.
        """
        await self._known(queue)
        async with self._database.transaction() as connection:
            if await roster.pause(connection, queue):
                await note(connection, f"queue {queue}", {"state": "open"}, {"state": "paused"})
        self._hint(FLEET)
        return await self._known(queue)

    async def resume(self, queue: str) -> QueueView:
        await self._known(queue)
        async with self._database.transaction() as connection:
            if await roster.resume(connection, queue):
                await note(connection, f"queue {queue}", {"state": "paused"}, {"state": "open"})
        self._hint(FLEET)
        self._hint(READY)
        return await self._known(queue)

    async def _known(self, queue: str) -> QueueView:
        # What no text of PostgreSQL can hold is not asked for.
        rows = await roster.list_queues(self._database, only=queue, limit=1) if queue.isprintable() else []
        if not rows:
            raise NotFound("there is no such queue", "a queue is there once a job, a run or a worker has named it")
        return _queue_view(rows[0])


def _worker_view(row: WorkerRow) -> WorkerView:
    return WorkerView(
        worker_id=encode("wrk", row.id),
        name=row.name,
        state=_WORDS[row.state],
        host=row.host,
        pid=row.pid,
        app=row.app,
        version=row.version,
        queues=row.queues,
        handlers=row.handlers,
        labels=row.labels,
        concurrency=row.concurrency,
        running=0 if row.state == STATES["dead"] else row.running,
        started_at=row.started_at,
        last_seen_at=row.seen_at,
    )


def _queue_view(row: QueueRow) -> QueueView:
    return QueueView(
        name=row.name,
        paused_at=row.paused_at,
        holds_by=None if row.paused_at is None else row.paused_at + LEASE,
        ready=row.ready,
        running=row.running,
        scheduled=row.scheduled,
        oldest_age_seconds=None if row.oldest_age is None else round(row.oldest_age, 3),
        rate=round(row.rate, 3),
        workers=row.workers,
        unserved=row.unserved,
    )


def _read_cursor(cursor: str) -> tuple[datetime, int]:
    started, _, number = cursor.rpartition(".")
    try:
        return datetime.fromisoformat(started).astimezone(UTC), decode("c", number)
    except (ValueError, OverflowError):  # InvalidField is one, too
        raise strange_cursor() from None
