"""Definitions as they are written: of new jobs, of those that change, and of many that only move to other schedules."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

import msgspec

from foliot.domain.errors import Conflict
from foliot.domain.ids import encode
from foliot.domain.job import Draft, Gate, Kind
from foliot.store import calendars, jobs, wiring
from foliot.store.database import Connection
from foliot.store.jobs import Definition
from foliot.store.reading import JobRow
from foliot.store.sealed import PAYLOAD
from foliot.store.specs import SpecRef
from foliot.store.submission import NewRun, plan
from foliot.store.vault import Mark, Vault

_ONE_TIME_ORIGIN: Final = 1


async def insert(connection: Connection, vault: Vault, specs: Sequence[SpecRef], drafts: Sequence[Draft]) -> list[int]:
    """Make jobs, the only way that there is. Nobody knows them yet, so their rows may come before the lock."""
    await calendars.follow(connection, drafts)
    schedules, own = await jobs.find_schedules(connection, specs[0].tenant, drafts)
    wired = any(draft.depends_on for draft in drafts)
    runs = [wired or draft.kind is Kind.ONE_TIME for draft in drafts]
    ids = iter(await jobs.draw_ids(connection, len(drafts) + sum(runs)))
    numbers = [(next(ids), next(ids) if one_time else None) for one_time in runs]
    graphs = None
    if wired:
        graphs = await wiring.plan_new(connection, specs[0].tenant, [job for job, _ in numbers], drafts, schedules)
        drafts, schedules = graphs.drafts, graphs.schedules
    drafts = [
        await _sealed(vault, spec, job, draft) for (job, _), spec, draft in zip(numbers, specs, drafts, strict=True)
    ]
    new = [
        Definition(job, spec, draft, schedule, run if draft.kind is Kind.ONE_TIME else None)
        for (job, run), spec, draft, schedule in zip(numbers, specs, drafts, schedules, strict=True)
    ]
    if taken := await jobs.insert_jobs(connection, new):
        raise _key_taken([each.draft.key for each in taken])
    await calendars.write_followers(connection, {each.job: id_ for each in new if (id_ := each.draft.calendar)})
    await _plan_runs(connection, new)
    if graphs is not None:
        await wiring.write_new(connection, graphs, {each.job: each.run for each in new})
    # Schedules made here come first, because nobody waits for them. From the lock of the others to the commit all
    # edits of their jobs queue up, and their firing too.
    for group in (own, {*schedules} - own - {None}):
        if members := {each.job: each.draft for each in new if each.schedule in group}:
            locked = await jobs.lock_schedules(connection, group)
            await jobs.subscribe(connection, members, locked.values(), await jobs.clock(connection))
    return [each.job for each in new]


async def replace(
    connection: Connection, vault: Vault, tenant: int, before: JobRow, spec: SpecRef, draft: Draft
) -> bool:
    """Put another definition in the place of one; not if somebody else has changed it since it was read."""
    await calendars.follow(connection, [draft])
    (schedule,), _ = await jobs.find_schedules(connection, tenant, [draft])
    graphs = await wiring.plan_change(connection, tenant, before, draft, schedule)
    draft, schedule = await _sealed(vault, spec, before.id, graphs.drafts[0]), graphs.schedules[0]
    locked = await jobs.lock_schedules(connection, [before.schedule, schedule, *graphs.schedules_of_all()])
    standing = await jobs.lock_job(connection, tenant, before.id)
    if standing is None or standing.version != before.version:
        return False
    # Never before an instant that the old definition has had, even if the clock was set back since.
    now = max([standing.now, *(row["cursor"] for row in locked.values() if row["id"] == before.schedule)])
    if standing.gate is Gate.CANCELLED:
        raise Conflict("the job is cancelled", "create a new one")
    if standing.ended_state is not None and draft.kind is Kind.ONE_TIME and draft.timing == before.timing:
        # Its instant has been.
        await jobs.update_job(connection, Definition(before.id, spec, draft, None, standing.run), now)
        return True
    await jobs.record_pause(connection, [] if before.parents else [before.id], now)
    await jobs.unsubscribe(connection, [before.id], now, closed=False)
    run = (await jobs.draw_ids(connection, 1))[0] if draft.kind is Kind.ONE_TIME else None
    if standing.run is not None and standing.ended_state is None:
        await _take_back(connection, standing.run, run)
    changed = Definition(before.id, spec, draft, schedule, run)
    await jobs.update_job(connection, changed, now)
    if draft.calendar is not None or "calendar" in before.timing:
        await calendars.write_followers(connection, {before.id: draft.calendar})
    await _plan_runs(connection, [changed])
    await wiring.write_change(connection, graphs, changed, now)
    if standing.gate is Gate.PAUSED:
        await jobs.block_runs(connection, before.id, run)
    if schedule is not None and (standing.gate is Gate.OPEN or draft.depends_on):
        members = dict.fromkeys((before.id, *graphs.shared), draft)
        await jobs.subscribe(connection, members, [locked[schedule]], now)
    return True


async def move(connection: Connection, tenant: int, before: Mapping[int, JobRow], drafts: Mapping[int, Draft]) -> int:
    """Give jobs other schedules, all but those that somebody else has changed since they were read; how many."""
    await calendars.follow(connection, list(drafts.values()))
    found, _ = await jobs.find_schedules(connection, tenant, list(drafts.values()))
    targets = {job: schedule for job, schedule in zip(drafts, found, strict=True) if schedule is not None}
    locked = await jobs.lock_schedules(connection, [*targets.values(), *(row.schedule for row in before.values())])
    mine = [
        each
        for each in await jobs.lock_jobs(connection, tenant, list(targets))
        if each.version == before[each.id].version and each.gate is not Gate.CANCELLED
    ]
    if not mine:
        return 0
    # As with a single edit: never before an instant that an old definition has had.
    cursors = (locked[schedule]["cursor"] for each in mine if (schedule := before[each.id].schedule) in locked)
    now = max([mine[-1].now, *cursors])
    numbers = [each.id for each in mine]
    await jobs.record_pause(connection, numbers, now)
    await jobs.unsubscribe(connection, numbers, now, closed=False)
    await jobs.move_jobs(connection, {job: targets[job] for job in numbers}, now)
    if members := {each.id: drafts[each.id] for each in mine if each.gate is Gate.OPEN}:
        await jobs.subscribe(connection, members, [locked[each] for each in {targets[job] for job in members}], now)
    await wiring.lead(connection, [job for job in members if before[job].head == job], now)
    return len(mine)


async def _take_back(connection: Connection, run: int, instead: int | None) -> None:
    if instead is not None:
        await wiring.replace_node(connection, run, instead)
    if not await jobs.take_back_run(connection, run):
        hint = f"wait for its end, cancel it ({encode('run', run)}:cancel), or create another job"
        raise Conflict("the job's run has already begun", hint)


async def _sealed(vault: Vault, spec: SpecRef, job: int, draft: Draft) -> Draft:
    """As it is stored. What is counted by its payload has been by now."""
    if (lock := await vault.lock(spec.tenant)) is None:
        return draft
    return msgspec.structs.replace(draft, payload=lock.seal(Mark.JOB, job, PAYLOAD, draft.payload))


async def _plan_runs(connection: Connection, definitions: Sequence[Definition]) -> None:
    """Write the runs of those that are one-time jobs."""
    runs = {
        each.run: NewRun(
            each.spec,
            each.draft.payload,
            job=each.job,
            due=each.draft.run_at,
            delay=timedelta() if each.draft.run_at is None else None,
            origin=_ONE_TIME_ORIGIN,
            limit_key=each.draft.limit_key,
        )
        for each in definitions
        if each.run is not None
    }
    if runs:
        await plan(connection, list(runs.values()), list(runs))


def _key_taken(keys: Sequence[str | None]) -> Conflict:
    named = ", ".join(map(repr, keys[:5])) + (f" and {len(keys) - 5:,} more" if len(keys) > 5 else "")
    said, hint = ("is a job with the key", "it") if len(keys) == 1 else ("are jobs with the keys", "them")
    return Conflict(f"there {said} {named} already", f"PUT {hint} by key to change {hint}")
