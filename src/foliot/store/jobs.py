"""Jobs: their definitions, and which of them owns which instants of a schedule."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from foliot.domain.ids import Block, mint
from foliot.domain.job import Draft, Gate, Kind
from foliot.domain.schedule import canonical_key, next_fire
from foliot.store.database import Connection, Line, Row
from foliot.store.specs import SpecRef
from foliot.store.statements import SQL


async def fetch_names(line: Line, jobs: Sequence[int]) -> dict[int, str]:
    return {row["id"]: row["name"] for row in await line.fetch("job_names", jobs)}


async def draw_ids(connection: Connection, count: int) -> tuple[range, datetime]:
    """New ids, and the database's clock."""
    row = await connection.fetchrow(SQL["draw_id"])
    return mint(Block(row["block"], row["at"]), count), row["at"]


async def clock(connection: Connection) -> datetime:
    """The database's clock. Asked after a lock was granted, it is later than everything that the lock kept apart."""
    return await connection.fetchval(SQL["clock"])  # type: ignore[no-any-return]


class Standing(NamedTuple):
    """What of a job must be known, under its lock, to change it."""

    id: int
    kind: Kind
    gate: Gate
    schedule: int | None
    run: int | None
    version: int
    ended_state: int | None
    now: datetime


async def lock_job(connection: Connection, tenant: int, job: int) -> Standing | None:
    row = await connection.fetchrow(SQL["lock_job"], tenant, job)
    return None if row is None else Standing(row[0], Kind(row[1]), Gate(row[2]), *row[3:])


async def insert_job(
    connection: Connection, job: int, spec: SpecRef, draft: Draft, schedule: int | None, run: int | None
) -> bool:
    """Store a new job; false if the tenant has one of the same key."""
    rows = await connection.fetch(
        SQL["insert_job"],
        job,
        spec.tenant,
        draft.name,
        draft.key,
        spec.id,
        draft.kind,
        draft.exclusive,
        schedule,
        run,
        _json(draft.timing),
        _json(draft.labels),
        draft.payload,
    )
    return bool(rows)


async def update_job(
    connection: Connection, job: int, spec: SpecRef, draft: Draft, schedule: int | None, run: int | None
) -> None:
    await connection.execute(
        SQL["update_job"],
        spec.tenant,
        job,
        draft.name,
        spec.id,
        draft.kind,
        draft.exclusive,
        schedule,
        run,
        _json(draft.timing),
        _json(draft.labels),
        draft.payload,
    )


async def set_gate(connection: Connection, tenant: int, job: int, gate: Gate) -> None:
    await connection.execute(SQL["set_gate"], tenant, job, gate)


async def find_schedule(connection: Connection, draft: Draft) -> int | None:
    """The schedule that this definition shares with all others of the same recurrence."""
    if draft.recurrence is None:
        return None
    key = canonical_key(draft.recurrence)
    found = await connection.fetchval(SQL["find_schedule"], key)
    if found is None:
        await connection.execute(SQL["make_schedule"], key)
        # A statement of its own: it sees what a rival, for whom the insert waited, has made.
        found = await connection.fetchval(SQL["find_schedule"], key)
    return found  # type: ignore[no-any-return]


async def lock_schedules(connection: Connection, schedules: Sequence[int | None]) -> dict[int | None, Row]:
    """Lock in id order, so that two edits cannot deadlock; a fire in mid-chunk is waited for."""
    wanted = sorted({schedule for schedule in schedules if schedule is not None})
    return {row["id"]: row for row in await connection.fetch(SQL["lock_schedules"], wanted)}


async def subscribe(
    connection: Connection, job: int, spec: SpecRef, draft: Draft, schedule: Row, now: datetime
) -> None:
    """Give the definition the instants after `now`. The schedule must be locked; it is woken if it slept."""
    if draft.recurrence is None:
        raise ValueError("only a recurring job subscribes")
    if schedule["next_at"] is None:
        # Never back: an instant that was fired before the clock was set back is not fired again.
        cursor = max(now, schedule["cursor"])
        if (following := next_fire(draft.recurrence, cursor)) is not None:
            await connection.execute(SQL["wake_schedule"], schedule["id"], cursor, following)
    # Just below, because a subscription owns the instants strictly after its beginning.
    after = max(now, draft.not_before - datetime.resolution) if draft.not_before else now
    until = max(draft.ends_at, after) if draft.ends_at else None
    await connection.execute(
        SQL["subscribe"], schedule["id"], job, after, until, spec.tenant, spec.id, draft.exclusive, draft.payload
    )


async def unsubscribe(connection: Connection, job: int, now: datetime, *, closed: bool) -> None:
    """Instants up to `now` stay with the definition that had them; if `closed`, those still to be fired are skipped."""
    await connection.execute(SQL["end_subscription"], job, now, closed)
    await connection.execute(SQL["retire_subscription"], job, now)


async def take_back_run(connection: Connection, run: int) -> bool:
    """Remove the waiting run of a one-time job; false if it waits no more."""
    return bool(await connection.fetch(SQL["take_back_run"], run))


async def cancel_runs(connection: Connection, job: int, run: int | None) -> None:
    await connection.execute(SQL["cancel_runs"], job, run)


async def block_runs(connection: Connection, job: int) -> None:
    await connection.execute(SQL["block_runs"], job)


async def unblock_runs(connection: Connection, job: int) -> None:
    await connection.execute(SQL["unblock_runs"], job)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
