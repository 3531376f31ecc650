"""What people see: jobs, runs and attempts, rendered for the wire."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from foliot.domain.errors import NotFound
from foliot.domain.ids import HIGHEST, encode, first_id_at, instant_of
from foliot.domain.passage import Step, steps
from foliot.domain.seal import secret_text
from foliot.domain.states import State
from foliot.services.insights.filters import attempt_below, job_status, kind_of, labels_of, states_asked
from foliot.services.insights.jobs import body_of, job_view
from foliot.services.insights.runs import attempt_view, run_view, transition_view
from foliot.services.insights.waiting import parents_words
from foliot.store import graphs, past, reading
from foliot.store.calendars import Bodies
from foliot.store.database import Database
from foliot.store.outside import signing_key
from foliot.store.reading import AttemptRow, RunRow
from foliot.store.reports import progress_of_attempts, progress_of_runs
from foliot.store.sealed import opened, opened_passage, opened_said
from foliot.store.vault import NO_VAULT, Vault
from foliot.wire.job_views import JobView, VersionView
from foliot.wire.limits import COUNTED
from foliot.wire.pages import Page, id_below, page_of
from foliot.wire.run_views import AttemptView, RunView, TransitionView


class Insights:
    """Reads for one tenant at a time; another tenant's id is answered like one that never was."""

    def __init__(self, database: Database, vault: Vault = NO_VAULT) -> None:
        self._database = database
        self._vault = vault
        self._calendars = Bodies()

    async def job(self, tenant: int, tenant_name: str, job: int) -> JobView:
        async with self._database.connection() as connection:
            row = await reading.find_job(connection, tenant, job)
        if row is None:
            raise NotFound("there is no such job")
        calendars = await self._calendars.learn(self._database.fetch, [row.schedule_key])
        (row,) = await opened(self._vault, tenant, [row])
        return job_view(tenant_name, row, calendars)

    async def job_by_key(self, tenant: int, tenant_name: str, key: str) -> JobView:
        """The job of this key that is not cancelled."""
        async with self._database.connection() as connection:
            job = await reading.find_job_by_key(connection, tenant, key)
        if job is None:
            raise NotFound("there is no such job")
        return await self.job(tenant, tenant_name, job)

    async def jobs(
        self,
        tenant: int,
        tenant_name: str,
        *,
        status: str | None,
        name: str | None,
        label: str | None,
        schedule_type: str | None,
        limit: int,
        cursor: str | None,
    ) -> Page[JobView]:
        rows = await reading.list_jobs(
            self._database,
            tenant,
            status=job_status(status),
            kind=kind_of(schedule_type),
            below=id_below(cursor),
            name=name,
            labels=labels_of(label),
            limit=limit + 1,
        )
        rows = await opened(self._vault, tenant, rows)
        calendars = await self._calendars.learn(self._database.fetch, {row.schedule_key for row in rows})
        return page_of(rows, limit, lambda row: job_view(tenant_name, row, calendars), lambda row: encode("c", row.id))

    async def run(self, tenant: int, run: int) -> RunView:
        row = await reading.find_run(self._database, tenant, run, COUNTED)
        if row is None:
            raise NotFound("there is no such run")
        (view,) = await self._run_views(tenant, [row])
        if row.waits == "parents":
            view.waiting_for = parents_words(await graphs.why_blocked(self._database, run))
        return view

    async def runs(
        self,
        tenant: int,
        *,
        status: str | None,
        state: str | None,
        job: int | None,
        limit: int,
        cursor: str | None,
        since: datetime | None = None,
        until: datetime | None = None,
        text: str | None = None,
    ) -> Page[RunView]:
        """Newest first: those accepted within these bounds, whose error, address or function has `text` in it."""
        rows = await reading.list_runs(
            self._database,
            tenant,
            above=0 if since is None else first_id_at(since),
            below=min(id_below(cursor), HIGHEST if until is None else first_id_at(until)),
            job=job,
            states=states_asked(status, state),
            text=text,
            limit=limit + 1,
        )
        views = dict(zip((row.id for row in rows), await self._run_views(tenant, rows), strict=True))
        return page_of(rows, limit, lambda row: views[row.id], lambda row: encode("c", row.id))

    async def _run_views(self, tenant: int, rows: Sequence[RunRow]) -> list[RunView]:
        """With what they said of themselves."""
        rows = await opened(self._vault, tenant, rows)
        told = await progress_of_runs(self._database, tenant, [row.id for row in rows])
        said = {run: await opened_said(self._vault, tenant, run, word) for run, word in told.items()}
        return [run_view(row, said.get(row.id)) for row in rows]

    async def versions(self, tenant: int, job: int, *, limit: int, cursor: str | None) -> Page[VersionView]:
        """The definitions that a job has had, newest first."""
        below = past.NEWEST if cursor is None else int(cursor)
        rows = await past.list_versions(self._database, tenant, job, below=below, limit=limit + 1)
        if not rows and cursor is None:
            raise NotFound("there is no such job")
        shown = await opened(self._vault, tenant, [row.job for row in rows])
        rows = [row._replace(job=job_) for row, job_ in zip(rows, shown, strict=True)]

        def view(row: past.VersionRow) -> VersionView:
            definition = msgspec.to_builtins(body_of(row.job), builtin_types=(msgspec.Raw,))
            return VersionView(version=row.job.version, since=row.since, until=row.until, definition=definition)

        return page_of(rows, limit, view, lambda row: str(row.job.version))

    async def transitions(self, tenant: int, run: int, *, limit: int, cursor: str | None) -> Page[TransitionView]:
        """What happened to a run, oldest first. Nothing comes before what is there, so that a place is a number."""
        row = await reading.find_run(self._database, tenant, run, 0)
        if row is None:
            raise NotFound("there is no such run")
        first = 0 if cursor is None else int(cursor)
        waits = State.SCHEDULED if row.scheduled_at > instant_of(run) else State.READY
        going = None
        if row.state == State.RUNNING and row.started_at is not None:
            going = Step(row.started_at, "started", State.RUNNING, row.attempt + 1, row.worker)
        told = await past.passages_of(self._database, tenant, run)
        known = [await opened_passage(self._vault, tenant, run, each) for each in told]
        found = steps(Step(instant_of(run), "accepted", waits), known, going)[first:]
        return page_of(found, limit, transition_view, lambda _: str(first + limit))

    async def signing_secret(self, tenant: int) -> str:
        """What the calls of a tenant's HTTP handlers are signed with."""
        return secret_text(await signing_key(self._database, tenant))

    async def attempts(
        self, tenant: int, *, job: int | None = None, run: int | None = None, limit: int, cursor: str | None
    ) -> Page[AttemptView]:
        rows = await reading.list_attempts(
            self._database, tenant, job=job, run=run, below=attempt_below(cursor), limit=limit + 1
        )
        rows = await opened(self._vault, tenant, rows)
        told = await progress_of_attempts(self._database, tenant, [(row.run, row.fence) for row in rows])
        said = {each: await opened_said(self._vault, tenant, each[0], word) for each, word in told.items()}

        def view(row: AttemptRow) -> AttemptView:
            return attempt_view(row, said.get((row.run, row.fence)))

        return page_of(rows, limit, view, lambda row: f"{encode('c', row.run)}.{row.fence}")
