"""Creating, changing and stopping jobs: each change is one transaction that locks what it touches in one order."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime

from foliot.domain.condition import UNCONDITIONAL, Condition
from foliot.domain.errors import Conflict
from foliot.domain.ids import encode
from foliot.domain.job import Draft, Gate, Kind, Overlap
from foliot.kit.signals import DUE
from foliot.services.control import definitions, gates
from foliot.services.control.counting import counted, counted_more
from foliot.services.control.erasing import erase_some
from foliot.services.control.finding import read
from foliot.store import jobs, wiring
from foliot.store.audit import job_facts, note
from foliot.store.database import Connection, Database
from foliot.store.reading import JobRow, find_job_by_key, find_jobs
from foliot.store.sealed import opened
from foliot.store.specs import SpecBook, SpecRef
from foliot.store.submission import Asked, answer_once, do_once
from foliot.store.terms import respect_quota
from foliot.store.vault import NO_VAULT, Vault, open_answer, sealed_answer

_TRIES = 5

Render = Callable[[JobRow], bytes]
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
            return await read(connection, self._vault, tenant, job)

    async def runs_left(self, tenant: int, job: int) -> int | None:
        """How many runs its schedule may still make of a job; none if they are not counted."""
        async with self._database.connection() as connection:
            return await jobs.runs_left(connection, tenant, job)

    async def clock(self) -> datetime:
        """The database's, which decides when a job fires."""
        async with self._database.connection() as connection:
            return await jobs.clock(connection)

    async def create(
        self, tenant: int, draft: Draft, *, key: str | None = None, fingerprint: bytes = b"", render: Render
    ) -> bytes:
        """Store a job and return it rendered; with an idempotency `key`, the first answer to that key."""

        async def answer(connection: Connection, made: Sequence[int]) -> bytes:
            return render(await read(connection, self._vault, tenant, made[0]))

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
                await respect_quota(connection, asked.tenant, **counted(drafts))
                made = await definitions.insert(connection, self._vault, specs, drafts)
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
            before = None if job is None else await read(connection, self._vault, tenant, job)
        if before is not None and _is_as_drafted(before, edit(before)):
            return before, False
        if job is not None:
            return await self.change(tenant, job, edit), False
        draft = edit(None)
        (spec,) = await self._intern(tenant, [draft])
        try:
            async with self._database.transaction() as connection:
                await respect_quota(connection, tenant, **counted([draft]))
                (job,) = made = await definitions.insert(connection, self._vault, [spec], [draft])
                await _note_made(connection, made, [draft])
                row = await read(connection, self._vault, tenant, job)
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
                await respect_quota(connection, tenant, **counted_more(before, draft))
                if await definitions.replace(connection, self._vault, tenant, before, spec, draft):
                    after = await read(connection, self._vault, tenant, job)
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
            moved = await definitions.move(connection, tenant, {job: rows[job] for job in drafts}, drafts)
        self._hint(DUE)
        return moved

    async def pause(self, tenant: int, job: int) -> JobRow:
        """Nothing of this job becomes ready any more, and workers hand back what they have not begun; the rest goes on.

        A worker hears of it at once, as a rule. One that is cut off starts nothing once its lease has ended: by then
        the pause holds, whatever happens.
        """
        async with self._database.transaction() as connection:
            channels = await gates.pause(connection, tenant, job)
            row = await read(connection, self._vault, tenant, job)
        self._tell(channels)
        return row

    async def resume(self, tenant: int, job: int, draft_of: Callable[[JobRow], Draft]) -> JobRow:
        """Open the gate again: instants from now on fire, and what was held goes on."""
        for _ in range(_TRIES):
            before = await self.read(tenant, job)
            draft_of(before)  # what it needs of calendars is asked for now, and not under locks
            async with self._database.transaction() as connection:
                if await gates.resume(connection, self._vault, tenant, before, draft_of):
                    row = await read(connection, self._vault, tenant, job)
                    break
        else:
            raise _too_many_changes()
        self._hint(DUE)
        return row

    async def cancel(self, tenant: int, job: int, condition: Condition = UNCONDITIONAL) -> JobRow:
        """End the job and its runs: it stays readable with its history. What a worker holds is asked to stop."""
        async with self._database.transaction() as connection:
            channels = await gates.cancel(connection, tenant, job, condition)
            row = await read(connection, self._vault, tenant, job)
        self._tell(channels)
        return row

    async def erase(self, tenant: int, job: int) -> None:
        """Forget a cancelled job and its history, once nothing of it goes on: bit by bit, the job itself last."""
        is_gone = False
        while not is_gone:
            async with self._database.transaction() as connection:
                is_gone = await erase_some(connection, tenant, job)

    def _tell(self, channels: Iterable[str]) -> None:
        for channel in channels:
            self._hint(channel)

    async def _intern(self, tenant: int, drafts: Sequence[Draft]) -> Sequence[SpecRef]:
        """Their specs, which are stored for good: not before it is known that they can wait for what they depend on."""
        if any(draft.depends_on for draft in drafts):
            async with self._database.connection() as connection:
                await wiring.find_parents(connection, tenant, drafts)
        return await self._specs.intern_batch(tenant, [draft.spec for draft in drafts])


async def _note_made(connection: Connection, made: Sequence[int], drafts: Sequence[Draft]) -> None:
    """One entry for all that were made together; what each of a batch was like, its version 1 says."""
    if len(made) == 1:
        await note(connection, encode("job", made[0]), None, job_facts(drafts[0]))
    else:
        await note(connection, "jobs", None, {"jobIds": [encode("job", number) for number in made]})


async def _note(connection: Connection, before: JobRow, after: JobRow) -> None:
    await note(connection, encode("job", after.id), job_facts(before), job_facts(after))


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


def _too_many_changes() -> Conflict:
    return Conflict("others keep changing this job", "read it again and repeat the change")
