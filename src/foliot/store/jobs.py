"""Jobs: their definitions, and which of them owns which instants of a schedule."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from foliot.domain.ids import BLOCK_SIZE, Block, mint
from foliot.domain.jitter import phase
from foliot.domain.job import Draft, Gate, Kind
from foliot.domain.misfire import USUAL
from foliot.domain.schedule import canonical_key, next_fire, parse_key
from foliot.store.admission import line_up_again, relimit, untying, untying_job
from foliot.store.calendars import bodies_of
from foliot.store.database import Connection, Line, Row
from foliot.store.specs import SpecRef
from foliot.store.statements import SQL


async def fetch_names(line: Line, jobs: Sequence[int]) -> dict[int, str]:
    return {row["id"]: row["name"] for row in await line.fetch("job_names", jobs)}


async def draw_ids(connection: Connection, count: int) -> list[int]:
    """New ids, rising."""
    rows = await connection.fetch(SQL["draw_blocks"], -(-count // BLOCK_SIZE))
    ids: list[int] = []
    for row in rows:
        ids.extend(mint(Block(*row), min(count - len(ids), BLOCK_SIZE)))
    return sorted(ids)


async def clock(connection: Connection) -> datetime:
    """The database's clock. Asked after a lock was granted, it is later than everything that the lock kept apart."""
    return await connection.fetchval(SQL["clock"])  # type: ignore[no-any-return]


async def runs_left(connection: Connection, tenant: int, job: int) -> int | None:
    return await connection.fetchval(SQL["runs_left"], tenant, job)  # type: ignore[no-any-return]


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


class Locked(NamedTuple):
    """What of a job must be known, under its lock, to move it to another schedule."""

    id: int
    gate: Gate
    version: int
    now: datetime


async def lock_jobs(connection: Connection, tenant: int, jobs: Sequence[int]) -> list[Locked]:
    rows = await connection.fetch(SQL["lock_jobs"], tenant, jobs)
    return [Locked(row[0], Gate(row[1]), *row[2:]) for row in rows]


async def move_jobs(connection: Connection, schedules: Mapping[int, int], now: datetime) -> None:
    """Note which schedule each of these jobs has from now on; all else stays."""
    await connection.execute(SQL["move_jobs"], list(schedules), list(schedules.values()), now)


class Definition(NamedTuple):
    """What a job is to be: its draft, and where in the store that belongs."""

    job: int
    spec: SpecRef
    draft: Draft
    schedule: int | None
    """Of a recurring job."""
    run: int | None
    """Of a one-time job."""


async def insert_jobs(connection: Connection, new: Sequence[Definition]) -> list[Definition]:
    """Store new jobs; returns those that are not stored, because their tenant has another of the same key.

    A key that a cancelled job has had goes over to the new one.
    """
    if keys := [each.draft.key for each in new if each.draft.key is not None]:
        await connection.execute(SQL["release_keys"], new[0].spec.tenant, keys)
    rows = await connection.fetch(
        SQL["insert_jobs"],
        [each.job for each in new],
        [each.spec.tenant for each in new],
        [each.draft.name for each in new],
        [each.draft.key for each in new],
        [each.spec.id for each in new],
        [each.draft.kind for each in new],
        [each.draft.overlap.is_exclusive for each in new],
        [each.schedule for each in new],
        [each.run for each in new],
        [as_json(each.draft.timing) for each in new],
        [as_json(each.draft.labels) for each in new],
        [each.draft.payload for each in new],
        [each.draft.max_runs for each in new],
        [each.draft.overlap.number for each in new],
        [each.draft.limit_key for each in new],
    )
    stored = {row["id"] for row in rows}
    return [each for each in new if each.job not in stored]


async def update_job(connection: Connection, changed: Definition, now: datetime) -> None:
    job, spec, draft, schedule, run = changed
    await connection.execute(
        SQL["update_job"],
        spec.tenant,
        job,
        draft.name,
        spec.id,
        draft.kind,
        draft.overlap.is_exclusive,
        schedule,
        run,
        as_json(draft.timing),
        as_json(draft.labels),
        draft.payload,
        draft.max_runs,
        now,
        draft.overlap.number,
        draft.limit_key,
    )
    await relimit(connection, job)


async def set_gate(connection: Connection, tenant: int, job: int, gate: Gate, now: datetime) -> None:
    await connection.execute(SQL["set_gate"], tenant, job, gate, now)


async def record_pause(connection: Connection, jobs: Sequence[int], now: datetime) -> None:
    """Those of the jobs that are paused: their instants since then were skipped."""
    await connection.execute(SQL["record_pause"], jobs, now)


async def find_schedules(
    connection: Connection, tenant: int, drafts: Sequence[Draft]
) -> tuple[list[int | None], set[int]]:
    """For each draft the schedule that it shares with all others of its tenant that have the same recurrence.

    Also says which schedules are made here: until the commit nobody else sees those.
    """
    keys = [None if draft.recurrence is None else canonical_key(draft.recurrence) for draft in drafts]
    wanted = {key for key in keys if key is not None}
    found, made = await _known_schedules(connection, tenant, wanted), dict[str, int]()
    if missing := wanted - found.keys():
        rows = await connection.fetch(SQL["make_schedules"], tenant, list(missing))
        made = {row["key"]: row["id"] for row in rows}
        # A statement of its own: it sees what a rival, for whom the insert waited, has made.
        found |= made | await _known_schedules(connection, tenant, missing - made.keys())
    return [None if key is None else found[key] for key in keys], set(made.values())


async def _known_schedules(connection: Connection, tenant: int, keys: set[str]) -> dict[str, int]:
    rows = await connection.fetch(SQL["find_schedules"], tenant, list(keys)) if keys else []
    return {row["key"]: row["id"] for row in rows}


async def lock_schedules(connection: Connection, schedules: Iterable[int | None]) -> dict[int, Row]:
    """Lock in id order, so that two edits cannot deadlock; a fire in mid-chunk is waited for."""
    wanted = sorted({schedule for schedule in schedules if schedule is not None})
    return {row["id"]: row for row in await connection.fetch(SQL["lock_schedules"], wanted)} if wanted else {}


async def schedules_followed(connection: Connection, job: int, head: int | None) -> list[int]:
    """All schedules that may yet fire the job, or the graph that begins with `head`: several, after an edit."""
    return [row["schedule"] for row in await connection.fetch(SQL["schedules_followed"], job, head)]


async def subscribe(connection: Connection, drafts: Mapping[int, Draft], locked: Iterable[Row], now: datetime) -> None:
    """Give these jobs, whose rows say the same as their drafts, the instants after `now`.

    Their schedules are `locked`, no others; those that slept are woken.
    """
    await _wake(connection, [schedule for schedule in locked if schedule["next_at"] is None], now)
    # Just below, because a subscription owns the instants strictly after its beginning.
    beginnings = [
        max(now, draft.not_before - datetime.resolution) if draft.not_before else now for draft in drafts.values()
    ]
    ends = [
        max(draft.ends_at, after) if draft.ends_at else None
        for draft, after in zip(drafts.values(), beginnings, strict=True)
    ]
    ids, modes = list(drafts), [draft.catch_up.mode for draft in drafts.values()]
    windows = [int(draft.catch_up.window.total_seconds()) for draft in drafts.values()]
    phases = [int(phase(job, draft.jitter) / timedelta(milliseconds=1)) for job, draft in drafts.items()]
    await connection.execute(SQL["subscribe"], ids, beginnings, ends, modes, windows, phases)
    if any(draft.catch_up != USUAL for draft in drafts.values()):
        await connection.execute(SQL["reach_back"], ids, modes, windows)


async def _wake(connection: Connection, sleeping: Sequence[Row], now: datetime) -> None:
    moves = []
    calendars = await bodies_of(connection, [schedule["key"] for schedule in sleeping])
    for schedule in sleeping:
        # Never back: an instant that was fired before the clock was set back is not fired again.
        cursor = max(now, schedule["cursor"])
        if (following := next_fire(parse_key(schedule["key"], calendars), cursor)) is not None:
            moves.append((schedule["id"], cursor, following))
    if moves:
        await connection.execute(SQL["wake_schedules"], *map(list, zip(*moves, strict=True)))


async def unsubscribe(connection: Connection, jobs: Sequence[int], now: datetime, *, closed: bool) -> None:
    """Instants up to `now` stay with the definition that had them; if `closed`, those still to be fired are skipped."""
    await connection.execute(SQL["end_subscription"], jobs, now, closed)
    await connection.execute(SQL["retire_subscription"], jobs, now)


async def take_back_run(connection: Connection, run: int) -> bool:
    """Remove the waiting run of a one-time job; false if it waits no more."""
    async with untying(connection, [run], for_good=True):
        return bool(await connection.fetch(SQL["take_back_run"], run))


async def cancel_runs(connection: Connection, job: int, run: int | None) -> None:
    """End what waits, is ready or is blocked; `run` is the only one of a one-time job."""
    await connection.execute(SQL["cancel_timers"], job, run)
    async with untying_job(connection, job):
        await connection.execute(SQL["cancel_runs"], job)


async def block_runs(connection: Connection, job: int, run: int | None) -> None:
    """Hold what waits or is ready; `run` as above."""
    await connection.execute(SQL["hold_timers"], job, run, True)
    async with untying_job(connection, job):
        await connection.execute(SQL["block_runs"], job)


async def unblock_runs(connection: Connection, job: int, run: int | None) -> None:
    await connection.execute(SQL["hold_timers"], job, run, False)
    await line_up_again(connection, job)
    await connection.execute(SQL["unblock_runs"], job)


def as_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
