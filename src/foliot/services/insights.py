"""What people see: jobs, runs and attempts, rendered for the wire."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from foliot.domain.calendar import Calendar
from foliot.domain.errors import InvalidField, NotFound
from foliot.domain.ids import decode, encode, first_id_at, instant_of
from foliot.domain.job import Draft, Gate, Kind, Overlap
from foliot.domain.outcome import Ending
from foliot.domain.passage import Step, steps
from foliot.domain.schedule import calendar_of, next_fire, parse_key
from foliot.domain.seal import secret_text
from foliot.domain.spec import Spec, shown
from foliot.domain.states import STATUS_OF, State, Status, states_of
from foliot.store import graphs, past, reading
from foliot.store.calendars import Bodies
from foliot.store.database import Database
from foliot.store.fleet import LEASE, STOPPED_WITHIN
from foliot.store.graphs import Hindrance
from foliot.store.outside import signing_key
from foliot.store.reading import NEWEST, AttemptRow, JobRow, RunRow
from foliot.store.reports import Said, progress_of_attempts, progress_of_runs
from foliot.store.sealed import opened, opened_passage, opened_said
from foliot.store.vault import NO_VAULT, Vault
from foliot.wire.calendars import NO_CALENDARS, Calendars
from foliot.wire.graphs import need_bodies
from foliot.wire.jobs import JobBody, draft_of, usual_end, usual_retries
from foliot.wire.limits import COUNTED, LINES, BlockedBy, ConcurrencyBody, concurrency_body, turn_of
from foliot.wire.retries import backoff_body, rule_bodies
from foliot.wire.views import (
    AttemptView,
    JobView,
    LastRun,
    LateResult,
    Page,
    ProgressView,
    RunView,
    TransitionView,
    VersionView,
)

_NAMED = 3
_KINDS = {kind.word: kind for kind in Kind}
_JOB_STATUSES = frozenset(Status) - {Status.SKIPPED, Status.MISSED}
Row = TypeVar("Row")
View = TypeVar("View")


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
        if status is not None and status not in _JOB_STATUSES:
            raise InvalidField("status", f"no job has the status {status[:40]!r}", f"one of {sorted(_JOB_STATUSES)}")
        if schedule_type is not None and schedule_type not in _KINDS:
            raise InvalidField("scheduleType", f"{schedule_type[:40]!r} is none", f"one of {sorted(_KINDS)}")
        rows = await reading.list_jobs(
            self._database,
            tenant,
            below=_id_of(cursor),
            status=status,
            name=name,
            labels=_label(label),
            kind=None if schedule_type is None else _KINDS[schedule_type],
            limit=limit + 1,
        )
        rows = await opened(self._vault, tenant, rows)
        calendars = await self._calendars.learn(self._database.fetch, {row.schedule_key for row in rows})
        return _page(rows, limit, lambda row: job_view(tenant_name, row, calendars), lambda row: encode("c", row.id))

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
            below=min(_id_of(cursor), NEWEST if until is None else first_id_at(until)),
            job=job,
            states=_states(status, state),
            text=text,
            limit=limit + 1,
        )
        views = dict(zip((row.id for row in rows), await self._run_views(tenant, rows), strict=True))
        return _page(rows, limit, lambda row: views[row.id], lambda row: encode("c", row.id))

    async def _run_views(self, tenant: int, rows: Sequence[RunRow]) -> list[RunView]:
        """With what they said of themselves."""
        rows = await opened(self._vault, tenant, rows)
        told = await progress_of_runs(self._database, [row.id for row in rows])
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

        return _page(rows, limit, view, lambda row: str(row.job.version))

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
        return Page([_transition(each) for each in found[:limit]], str(first + limit) if len(found) > limit else None)

    async def signing_secret(self, tenant: int) -> str:
        """What the calls of a tenant's HTTP handlers are signed with."""
        return secret_text(await signing_key(self._database, tenant))

    async def attempts(
        self, tenant: int, *, job: int | None = None, run: int | None = None, limit: int, cursor: str | None
    ) -> Page[AttemptView]:
        rows = await reading.list_attempts(
            self._database, tenant, job=job, run=run, below=_attempt_of(cursor), limit=limit + 1
        )
        rows = await opened(self._vault, tenant, rows)
        told = await progress_of_attempts(self._database, [(row.run, row.fence) for row in rows])
        said = {each: await opened_said(self._vault, tenant, each[0], word) for each, word in told.items()}

        def view(row: AttemptRow) -> AttemptView:
            return attempt_view(row, said.get((row.run, row.fence)))

        return _page(rows, limit, view, lambda row: f"{encode('c', row.run)}.{row.fence}")


def job_view(tenant: str, row: JobRow, calendars: Mapping[str, Calendar] = MappingProxyType({})) -> JobView:
    """A job for its owner; `calendars` by digest has the one that it follows."""
    spec = row.spec
    return JobView(
        job_id=encode("job", row.id),
        tenant=tenant,
        name=row.name,
        key=row.key,
        status=row.status,
        schedule_type=Kind(row.kind).word,
        handler=msgspec.to_builtins(spec.handler),
        payload=msgspec.Raw(row.payload),
        next_run_at=_next_run(row, calendars),
        priority=spec.priority.name.lower(),
        queue=spec.queue,
        labels=row.labels,
        max_retries=spec.max_retries,
        backoff=backoff_body(spec.backoff),
        retry=rule_bodies(spec.rules) or msgspec.UNSET,
        timeout_seconds=spec.timeout.total_seconds(),
        delivery=delivery_word(spec),
        on_disconnect="stop" if spec.stops_when_cut_off else "finish",
        concurrency=_concurrency(spec),
        overlap=Overlap.stored(row.overlap, exclusive=row.exclusive),
        depends_on=need_bodies(row.parents, row.conditions) or msgspec.UNSET,
        version=row.version,
        created_at=row.created_at,
        updated_at=row.updated_at,
        last_run=_last_run(row),
        holds_by=None if row.paused_at is None else row.paused_at + LEASE,
        **{_SNAKE[name]: value for name, value in row.timing.items()},
    )


def draft_again(tenant: int, row: JobRow, calendars: Calendars = NO_CALENDARS) -> Draft:
    """The definition that a stored job was made from, by what `calendars` say now."""
    return draft_of(msgspec.convert(body_of(row), JobBody), tenant, calendars)


def body_of(row: JobRow) -> dict[str, Any]:
    """A stored job as its owner might have written it: what a PATCH is laid over.

    What depends on delivery or limit and is as usual is left out, so that it follows a change of either. Retries that
    were given up with at-most-once stay given up: nobody asked for them.
    """
    view = msgspec.to_builtins(job_view("", row), builtin_types=(msgspec.Raw,))
    at_most_once = row.spec.is_at_most_once
    usual = usual_end(at_most_once=at_most_once, one_by_one=row.spec.limit == 1)
    implied = {"onDisconnect"} if view["onDisconnect"] == usual else set()
    if not at_most_once and row.spec.max_retries == usual_retries(at_most_once=False):
        implied.add("maxRetries")
    return {name: value for name, value in view.items() if name in _BODY_FIELDS - implied}


def run_view(row: RunRow, said: Said | None = None) -> RunView:
    asked, state = row.cancel_asked, State(row.state)
    return RunView(
        run_id=encode("run", row.id),
        job_id=_job_id(row.job),
        status=STATUS_OF[state],
        state=state.word,
        handler=shown(row.spec.handler, row.target),
        queue=row.spec.queue,
        priority=row.spec.priority.name.lower(),
        delivery=delivery_word(row.spec),
        concurrency=_concurrency(row.spec),
        scheduled_at=row.scheduled_at,
        due_at=row.due_at,
        created_at=instant_of(row.id),
        started_at=row.started_at,
        finished_at=row.finished_at,
        attempts=row.attempt + (state is State.RUNNING),
        error_message=row.error,
        error_class=row.error_class,
        worker_id=_worker_id(row.worker),
        waiting_for=_waiting_for(row),
        blocked_by=_blocked_by(row) or msgspec.UNSET,
        complete_by=row.until or msgspec.UNSET,
        cancel_requested_at=asked,
        stops_by=None if asked is None else asked + STOPPED_WITHIN,
        progress=None if said is None else ProgressView(*said),
        payload=msgspec.UNSET if row.payload is None else msgspec.Raw(row.payload),
        result=msgspec.UNSET if row.result is None else msgspec.Raw(row.result),
    )


def attempt_view(row: AttemptRow, said: Said | None = None) -> AttemptView:
    run = encode("run", row.run)
    return AttemptView(
        execution_id=f"exe_{run.removeprefix('run_')}_{row.fence}",
        run_id=run,
        job_id=_job_id(row.job),
        attempt=row.attempt,
        status="running" if row.ending < 0 else Ending(row.ending).word,
        scheduled_at=row.scheduled_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        error_message=row.error,
        error_class=row.error_class,
        worker_id=_worker_id(row.worker),
        fence=row.fence,
        late_result=_late_result(row),
        progress=None if said is None else ProgressView(*said),
    )


def _transition(step: Step) -> TransitionView:
    return TransitionView(
        at=step.at,
        event=step.event,
        state=step.state.word,
        attempt=step.attempt,
        worker_id=_worker_id(step.worker),
        error_message=step.error,
    )


def delivery_word(spec: Spec) -> str:
    return "atMostOnce" if spec.is_at_most_once else "atLeastOnce"


def _concurrency(spec: Spec) -> ConcurrencyBody | msgspec.UnsetType:
    return msgspec.UNSET if spec.concurrency is msgspec.UNSET else concurrency_body(spec.concurrency)


_SNAKE = dict(zip(JobView.__struct_encode_fields__, JobView.__struct_fields__, strict=True))
_BODY_FIELDS = frozenset(JobBody.__struct_encode_fields__)


def _next_run(row: JobRow, calendars: Mapping[str, Calendar]) -> Any:
    if row.gate != Gate.OPEN or row.status in {Status.COMPLETED, Status.FAILED}:
        return None
    if row.kind == Kind.ONE_TIME:
        return row.timing.get("scheduleAt") if row.status in {Status.PENDING, Status.BLOCKED} else None
    if row.schedule_key is None or row.after is None or row.next_at is None:
        return None
    following: datetime | None = row.next_at
    if row.next_at <= row.after:
        if calendar_of(row.schedule_key) not in {None, *calendars}:
            return None  # nobody asks: only the definition is of interest
        following = next_fire(parse_key(row.schedule_key, calendars), row.after)
    ended = following is not None and row.until is not None and following > row.until
    return None if ended else following


def _last_run(row: JobRow) -> LastRun | None:
    if row.last_run is None or row.last_state is None or row.last_scheduled_at is None or row.last_finished_at is None:
        return None
    return LastRun(
        encode("run", row.last_run),
        STATUS_OF[State(row.last_state)],
        row.last_scheduled_at,
        row.last_started_at,
        row.last_finished_at,
        row.last_error,
    )


def _late_result(row: AttemptRow) -> LateResult | None:
    if row.late_ending is None or row.late_at is None:
        return None
    return LateResult(status=Ending(row.late_ending).word, error_message=row.late_error, recorded_at=row.late_at)


def _page(rows: Sequence[Row], limit: int, view: Callable[[Row], View], name: Callable[[Row], str]) -> Page[View]:
    """One row more than asked for was fetched: it says whether there is a next page."""
    more = len(rows) > limit
    return Page([view(row) for row in rows[:limit]], name(rows[limit - 1]) if more else None)


def _id_of(cursor: str | None) -> int:
    if cursor is None:
        return NEWEST
    try:
        return decode("c", cursor)
    except InvalidField:
        raise InvalidField("cursor", "is not one of ours", "pass nextCursor of the page before, unchanged") from None


def _attempt_of(cursor: str | None) -> tuple[int, int]:
    if cursor is None:
        return NEWEST, 0
    run, _, fence = cursor.partition(".")
    if not (fence.isascii() and fence.isdigit() and len(fence) < 19):
        raise InvalidField("cursor", "is not one of ours", "pass nextCursor of the page before, unchanged")
    return _id_of(run), int(fence)


def _states(status: str | None, state: str | None) -> list[int] | None:
    chosen: frozenset[State] | None = None
    for field, word in (("status", status), ("state", state)):
        if word is not None:
            found = states_of(word)
            if not found:
                raise InvalidField(
                    field, f"no run has the {field} {word[:40]!r}", "pending, running, completed, failed, …"
                )
            chosen = found if chosen is None else chosen & found
    return None if chosen is None else sorted(chosen)


def _label(label: str | None) -> dict[str, str] | None:
    if label is None:
        return None
    name, equals, value = label.partition("=")
    if not equals:
        raise InvalidField("label", "is not name=value", "for example label=team=growth")
    return {name: value}


def _job_id(job: int | None) -> str | None:
    return None if job is None else encode("job", job)


def _waiting_for(row: RunRow) -> str | None:
    if row.until is not None:
        return "its handler, which went on outside, to say how it ended"
    match row.waits:
        case "pause":
            return f"queue {row.spec.queue!r} to be resumed"
        case "parents":
            return "its parents"
        case "worker":
            return f"a worker: none that lives offers {row.spec.handler.group!r} on queue {row.spec.queue!r}"
        case _ if blocked := _blocked_by(row):
            return turn_of(blocked, row.spec.limit_path, has_job=row.job is not None)
        case _:
            return "its job to be resumed" if row.state == State.BLOCKED else None


def parents_words(hindrances: Sequence[Hindrance]) -> str:
    """What a run waits for of its graph: what has failed for good, or else what has yet to end."""
    dead = [each for each in hindrances if each.dead]
    named = [f"{encode('run', each.run)} ({each.name})" for each in (dead or hindrances)[:_NAMED]]
    told = ", ".join(named) + (f" and {more} more" if (more := len(dead or hindrances) - len(named)) > 0 else "")
    if not dead:
        return f"its parents: {told}"
    return f"{told}, which failed for good: replay it to go on, or discard it to give this run up"


def _blocked_by(row: RunRow) -> BlockedBy | None:
    if row.line is None or row.capacity is None:
        return None
    return BlockedBy(line=LINES[row.line], limit=row.capacity, going=row.going, ahead=row.ahead)


def _worker_id(worker: int | None) -> str | None:
    return None if worker is None else encode("wrk", worker)
