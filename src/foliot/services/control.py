"""Creating, changing and stopping jobs: each change is one transaction that locks what it touches in one order."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from foliot.domain.condition import UNCONDITIONAL, Condition
from foliot.domain.errors import Conflict, NotFound
from foliot.domain.ids import encode
from foliot.domain.job import Draft, Gate, Kind, Overlap
from foliot.kit.signals import DUE
from foliot.store import calendars, jobs, past, stopping, wiring
from foliot.store.audit import job_facts, note
from foliot.store.database import Connection, Database, Row
from foliot.store.jobs import Definition, Standing
from foliot.store.past import Lingering
from foliot.store.reading import JobRow, find_job, find_job_by_key, find_jobs
from foliot.store.sealed import PAYLOAD, opened
from foliot.store.specs import SpecBook, SpecRef
from foliot.store.submission import Asked, NewRun, answer_once, do_once, plan
from foliot.store.terms import respect_quota
from foliot.store.vault import NO_VAULT, Mark, Vault, open_answer, sealed_answer

ONE_TIME_ORIGIN = 1
_TRIES = 5
_ERASED_AT_ONCE = 5_000

Render = Callable[[JobRow], bytes]
_Redraft = Callable[[JobRow], Draft]
_Answer = Callable[[Connection, Sequence[int]], Awaitable[bytes]]
"""What to say about the jobs of these ids, asked inside the transaction that makes them."""


class Control:
    """What owners do to their jobs."""

    def __init__(
        self, database: Database, specs: SpecBook, hint: Callable[[str], None], vault: Vault = NO_VAULT
    ) -> None:
        self._database = database
        self._specs = specs
        self._hint = hint
        self._vault = vault

    async def read(self, tenant: int, job: int) -> JobRow:
        async with self._database.connection() as connection:
            return await self._read(connection, tenant, job)

    async def create(
        self, tenant: int, draft: Draft, *, key: str | None = None, fingerprint: bytes = b"", render: Render
    ) -> bytes:
        """Store a job and return it rendered; with an idempotency `key`, the first answer to that key."""

        async def answer(connection: Connection, made: Sequence[int]) -> bytes:
            return render(await self._read(connection, tenant, made[0]))

        return await self._create([draft], answer, Asked(tenant, key, fingerprint))

    async def create_batch(
        self,
        tenant: int,
        drafts: Sequence[Draft],
        *,
        key: str | None = None,
        fingerprint: bytes = b"",
        render: Callable[[Sequence[int]], bytes],
    ) -> bytes:
        """Store jobs, all or none, and return their ids rendered, in the order of the drafts; `key` as in `create`."""

        async def answer(_: Connection, made: Sequence[int]) -> bytes:
            return render(made)

        return await self._create(drafts, answer, Asked(tenant, key, fingerprint))

    async def _create(self, drafts: Sequence[Draft], answer: _Answer, asked: Asked) -> bytes:
        async def write() -> bytes:
            specs = await self._intern(asked.tenant, drafts)
            async with self._database.transaction() as connection:
                await respect_quota(connection, asked.tenant, **_counted(drafts))
                made = await self._insert(connection, specs, drafts)
                body = await answer(connection, made)
                await _note_made(connection, made, drafts)
                await answer_once(connection, asked, await sealed_answer(self._vault, asked.tenant, asked.key, body))
            return body

        body, is_new = await do_once(self._database, asked, write)
        if not is_new:
            return await open_answer(self._vault, asked.tenant, asked.key, body)
        self._hint(DUE)
        return body

    async def put(self, tenant: int, key: str, edit: Callable[[JobRow | None], Draft]) -> tuple[JobRow, bool]:
        """Create the job of this key, or change it; also says whether it is new. What is the same is left as it is.

        A fleet that declares its schedules at every start makes no new versions, and nothing begins to count anew.
        """
        async with self._database.connection() as connection:
            job = await find_job_by_key(connection, tenant, key)
            before = None if job is None else await find_job(connection, tenant, job)
        if before is not None and _is_as_drafted(before, edit(before)):
            return before, False
        if job is not None:
            return await self.change(tenant, job, edit), False
        draft = edit(None)
        (spec,) = await self._intern(tenant, [draft])
        try:
            async with self._database.transaction() as connection:
                await respect_quota(connection, tenant, **_counted([draft]))
                (job,) = made = await self._insert(connection, [spec], [draft])
                await _note_made(connection, made, [draft])
                row = await self._read(connection, tenant, job)
        except Conflict:  # somebody else has just created it
            async with self._database.connection() as connection:
                job = await find_job_by_key(connection, tenant, key)
            if job is None:
                raise
            return await self.change(tenant, job, edit), False
        self._hint(DUE)
        return row, True

    async def change(self, tenant: int, job: int, edit: Callable[[JobRow], Draft]) -> JobRow:
        """Replace the definition by what `edit` makes of the present one, from this instant on."""
        for _ in range(_TRIES):
            before = await self.read(tenant, job)
            draft = edit(before)
            (spec,) = await self._intern(tenant, [draft])
            async with self._database.transaction() as connection:
                await respect_quota(connection, tenant, **_counted_more(before, draft))
                if await self._replace(connection, tenant, before, spec, draft):
                    after = await self._read(connection, tenant, job)
                    await _note(connection, before, after)
                    break
        else:
            raise _too_many_changes()
        self._hint(DUE)
        return after

    async def move(self, tenant: int, numbers: Sequence[int], redraft: Callable[[JobRow], Draft | None]) -> int:
        """Give recurring jobs the schedules that `redraft` says, from this instant on, and nothing else; how many.

        One transaction for all. Jobs that somebody else changes at the same moment stay as they are, and so do those of
        which `redraft` makes nothing.
        """
        found = await find_jobs(self._database, tenant, numbers)
        rows = {row.id: row for row in await opened(self._vault, tenant, found)}
        # A graph goes with its first root.
        leading = {job: row for job, row in rows.items() if row.head in {None, job}}
        drafts = {job: draft for job, row in leading.items() if (draft := redraft(row)) is not None}
        if not drafts:
            return 0
        async with self._database.transaction() as connection:
            moved = await self._move(connection, tenant, {job: rows[job] for job in drafts}, drafts)
        self._hint(DUE)
        return moved

    async def pause(self, tenant: int, job: int) -> JobRow:
        """Nothing of this job becomes ready any more, and workers hand back what they have not begun; the rest goes on.

        A worker hears of it at once, as a rule. One that is cut off starts nothing once its lease has ended: by then
        the pause holds, whatever happens.
        """
        channels: Iterable[str] = ()
        async with self._database.transaction() as connection:
            standing = await self._lock(connection, tenant, job)
            _refuse_if_over(standing)
            if standing.gate is Gate.OPEN:
                await jobs.set_gate(connection, tenant, job, Gate.PAUSED, standing.now)
                stopped = await wiring.fired_with(connection, job)
                await jobs.unsubscribe(connection, stopped, standing.now, closed=True)
                await jobs.block_runs(connection, job, standing.run)
                await _note_gate(connection, job, standing.gate, Gate.PAUSED)
                channels = await stopping.recall_held(connection, job)
            row = await self._read(connection, tenant, job)
        self._tell(channels)
        return row

    async def resume(self, tenant: int, job: int, draft_of: Callable[[JobRow], Draft]) -> JobRow:
        """Open the gate again: instants from now on fire, and what was held goes on."""
        for _ in range(_TRIES):
            before = await self.read(tenant, job)
            draft_of(before)  # what it needs of calendars is asked for now, and not under locks
            async with self._database.transaction() as connection:
                locked = await jobs.lock_schedules(connection, [before.schedule])
                standing = await self._lock_job(connection, tenant, job)
                if standing.version != before.version:
                    continue
                _refuse_if_over(standing)
                if standing.gate is Gate.PAUSED:
                    # As in an edit: what the schedule has dealt with was paused, even if the clock was set back since.
                    now = max([standing.now, *(row["cursor"] for row in locked.values())])
                    await jobs.record_pause(connection, [] if before.parents else [job], now)
                    await jobs.set_gate(connection, tenant, job, Gate.OPEN, now)
                    if before.schedule is not None and not before.parents:
                        await self._fire_again(connection, tenant, before, draft_of, locked.values(), now)
                    await jobs.unblock_runs(connection, job, standing.run)
                    await _note_gate(connection, job, standing.gate, Gate.OPEN)
                row = await self._read(connection, tenant, job)
                break
        else:
            raise _too_many_changes()
        self._hint(DUE)
        return row

    async def _fire_again(
        self,
        connection: Connection,
        tenant: int,
        before: JobRow,
        draft_of: _Redraft,
        locked: Iterable[Row],
        now: datetime,
    ) -> None:
        """Give a job its instants again, from where its pause ended: asked anew, an instant would lie between the two.

        Of a graph all have theirs, if none of its roots is paused any more.
        """
        if before.head is None:
            await jobs.subscribe(connection, {before.id: draft_of(before)}, locked, now)
        elif await wiring.is_open(connection, before.head):
            lead = await self._read(connection, tenant, before.head)
            await jobs.subscribe(connection, {lead.id: draft_of(lead)}, locked, now)
            await wiring.lead(connection, [lead.id], now)

    async def cancel(self, tenant: int, job: int, condition: Condition = UNCONDITIONAL) -> JobRow:
        """End the job and its runs: it stays readable with its history. What a worker holds is asked to stop."""
        channels: Iterable[str] = ()
        async with self._database.transaction() as connection:
            row = await self._read(connection, tenant, job)
            await wiring.leave(connection, tenant, row)
            standing = await self._lock(connection, tenant, job)
            condition.check(standing.version)
            if standing.gate is not Gate.CANCELLED:
                await wiring.forget(connection, row, standing.now)
                await jobs.record_pause(connection, [job], standing.now)
                await jobs.set_gate(connection, tenant, job, Gate.CANCELLED, standing.now)
                await jobs.unsubscribe(connection, [job], standing.now, closed=True)
                await jobs.cancel_runs(connection, job, standing.run)
                await _note_gate(connection, job, standing.gate, Gate.CANCELLED)
                channels = await stopping.stop_held(connection, job)
            row = await self._read(connection, tenant, job)
        self._tell(channels)
        return row

    async def erase(self, tenant: int, job: int) -> None:
        """Forget a cancelled job and its history, once nothing of it goes on: bit by bit, the job itself last."""
        while True:
            async with self._database.transaction() as connection:
                await self._lock_job(connection, tenant, job)
                _refuse_if_it_lingers(await past.lingers(connection, job))
                if not await past.erase_history(connection, tenant, job, _ERASED_AT_ONCE):
                    await past.erase_job(connection, tenant, job)
                    await note(connection, encode("job", job), {"gate": "cancelled"}, None)
                    return

    def _tell(self, channels: Iterable[str]) -> None:
        for channel in channels:
            self._hint(channel)

    async def _intern(self, tenant: int, drafts: Sequence[Draft]) -> Sequence[SpecRef]:
        """Their specs, which are stored for good: not before it is known that there is what they depend on."""
        if any(draft.depends_on for draft in drafts):
            async with self._database.connection() as connection:
                await wiring.find_parents(connection, tenant, drafts)
        return await self._specs.intern_batch(tenant, [draft.spec for draft in drafts])

    async def _insert(self, connection: Connection, specs: Sequence[SpecRef], drafts: Sequence[Draft]) -> list[int]:
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
            await self._sealed(spec, job, draft) for (job, _), spec, draft in zip(numbers, specs, drafts, strict=True)
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

    async def _lock(self, connection: Connection, tenant: int, job: int) -> Standing:
        """Lock the schedule, then the job: the order in which firing takes them."""
        row = await self._read(connection, tenant, job)
        await jobs.lock_schedules(connection, [row.schedule])
        standing = await self._lock_job(connection, tenant, job)
        if standing.schedule != row.schedule:
            raise Conflict("the job was changed at the same moment", "repeat the call")
        return standing

    async def _lock_job(self, connection: Connection, tenant: int, job: int) -> Standing:
        standing = await jobs.lock_job(connection, tenant, job)
        if standing is None:
            raise NotFound("there is no such job")
        return standing

    async def _replace(self, connection: Connection, tenant: int, before: JobRow, spec: SpecRef, draft: Draft) -> bool:
        await calendars.follow(connection, [draft])
        (schedule,), _ = await jobs.find_schedules(connection, tenant, [draft])
        graphs = await wiring.plan_change(connection, tenant, before, draft, schedule)
        draft, schedule = await self._sealed(spec, before.id, graphs.drafts[0]), graphs.schedules[0]
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
            await self._take_back(connection, standing.run, run)
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

    async def _move(
        self, connection: Connection, tenant: int, before: Mapping[int, JobRow], drafts: Mapping[int, Draft]
    ) -> int:
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

    async def _take_back(self, connection: Connection, run: int, instead: int | None) -> None:
        if instead is not None:
            await wiring.replace_node(connection, run, instead)
        if not await jobs.take_back_run(connection, run):
            raise Conflict("the job's run has already begun", "wait for its end, or create another job")

    async def _read(self, connection: Connection, tenant: int, job: int) -> JobRow:
        row = await find_job(connection, tenant, job)
        if row is None:
            raise NotFound("there is no such job")
        (shown,) = await opened(self._vault, tenant, [row])
        return shown

    async def _sealed(self, spec: SpecRef, job: int, draft: Draft) -> Draft:
        """As it is stored. What is counted by its payload has been by now."""
        if (lock := await self._vault.lock(spec.tenant)) is None:
            return draft
        return msgspec.structs.replace(draft, payload=lock.seal(Mark.JOB, job, PAYLOAD, draft.payload))


def _counted(drafts: Sequence[Draft]) -> dict[str, int]:
    """How many of what quotas count these are; see `domain/terms.py`."""
    kinds = [draft.kind for draft in drafts]
    return {"jobs": len(kinds) - kinds.count(Kind.ONE_TIME), "schedules": kinds.count(Kind.RECURRING)}


def _counted_more(before: JobRow, draft: Draft) -> dict[str, int]:
    """What a job becomes that it was not; what gives something back is never refused."""
    was = {"jobs": int(before.kind != Kind.ONE_TIME), "schedules": int(before.kind == Kind.RECURRING)}
    return {what: max(0, count - was[what]) for what, count in _counted([draft]).items()}


async def _note_made(connection: Connection, made: Sequence[int], drafts: Sequence[Draft]) -> None:
    """One entry for all that were made together; what each of a batch was like, its version 1 says."""
    if len(made) == 1:
        await note(connection, encode("job", made[0]), None, job_facts(drafts[0]))
    else:
        await note(connection, "jobs", None, {"jobIds": [encode("job", number) for number in made]})


async def _note(connection: Connection, before: JobRow, after: JobRow) -> None:
    await note(connection, encode("job", after.id), job_facts(before), job_facts(after))


async def _note_gate(connection: Connection, job: int, before: Gate, after: Gate) -> None:
    await note(connection, encode("job", job), {"gate": before.name.lower()}, {"gate": after.name.lower()})


async def _plan_runs(connection: Connection, definitions: Sequence[Definition]) -> None:
    """Write the runs of those that are one-time jobs."""
    runs = {
        each.run: NewRun(
            each.spec,
            each.draft.payload,
            job=each.job,
            due=each.draft.run_at,
            delay=timedelta() if each.draft.run_at is None else None,
            origin=ONE_TIME_ORIGIN,
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


def _is_as_drafted(job: JobRow, draft: Draft) -> bool:
    """Whether nothing would change. Of what waits for others, and of what runs once, that is not asked."""
    if job.gate == Gate.CANCELLED or job.parents or draft.depends_on or draft.kind is not Kind.RECURRING:
        return False
    present = (
        job.name,
        job.spec,
        job.payload,
        job.labels,
        job.timing,
        Overlap.stored(job.overlap, exclusive=job.exclusive),
    )
    return present == (draft.name, draft.spec, draft.payload, draft.labels, draft.timing, draft.overlap)


def _refuse_if_it_lingers(lingering: Lingering) -> None:
    if lingering.goes_on:
        hint = "it is cancelled: repeat the call when its runs have stopped, which takes at most a minute"
        raise Conflict("runs of the job still go on", hint)
    if lingering.children:
        named = ", ".join(encode("job", child) for child in lingering.children)
        raise Conflict(f"other jobs wait for it: {named}", "it is cancelled: change them, or cancel them, first")


def _too_many_changes() -> Conflict:
    return Conflict("others keep changing this job", "read it again and repeat the change")


def _refuse_if_over(standing: Standing) -> None:
    if standing.gate is Gate.CANCELLED or standing.ended_state is not None:
        raise Conflict("the job is over", "create a new one")
