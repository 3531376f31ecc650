"""What the API answers with: jobs, runs, attempts, pages and problems."""

from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from foliot.domain.cron import Dst
from foliot.wire.calendars import CalendarUse
from foliot.wire.graphs import NeedBody
from foliot.wire.limits import BlockedBy, ConcurrencyBody
from foliot.wire.retries import BackoffBody, RetryRuleBody

Instant = Annotated[datetime, Meta(tz=True)]
Item = TypeVar("Item")


class Page(msgspec.Struct, Generic[Item], rename="camel"):
    """One page of a list, newest first; `nextCursor` is null on the last one."""

    items: list[Item]
    next_cursor: str | None = None


class LastRun(msgspec.Struct, rename="camel"):
    run_id: str
    status: str
    scheduled_at: Instant
    started_at: Instant | None
    finished_at: Instant
    error_message: str | None


class CatchUpView(msgspec.Struct):
    mode: str
    window: str


class JobView(msgspec.Struct, kw_only=True, rename="camel"):
    """A job: what its owner wrote, and how it stands."""

    job_id: str
    tenant: str
    name: str
    key: str | None
    status: str
    schedule_type: str
    handler: dict[str, Any]
    payload: msgspec.Raw
    cron_expression: str | UnsetType = UNSET
    timezone: str | UnsetType = UNSET
    dst: Dst | UnsetType = UNSET
    every: str | UnsetType = UNSET
    rrule: str | UnsetType = UNSET
    when: str | UnsetType = UNSET
    schedule_at: str | UnsetType = UNSET
    ends_at: str | UnsetType = UNSET
    max_runs: int | UnsetType = UNSET
    catch_up: CatchUpView | UnsetType = UNSET
    jitter: str | UnsetType = UNSET
    calendar: str | CalendarUse | UnsetType = UNSET
    depends_on: list[NeedBody] | UnsetType = UNSET
    next_run_at: Instant | None
    priority: str
    queue: str
    labels: dict[str, str]
    max_retries: int
    backoff: BackoffBody
    retry: list[RetryRuleBody] | UnsetType = UNSET
    timeout_seconds: float
    delivery: str
    on_disconnect: str
    concurrency: ConcurrencyBody | UnsetType = UNSET
    overlap: str
    version: int
    created_at: Instant
    updated_at: Instant
    last_run: LastRun | None
    holds_by: Instant | None = None
    """Of a paused job: nothing of it starts from then on."""


class ProgressView(msgspec.Struct):
    """How far an attempt said that it was, at that instant."""

    fraction: float | None
    done: float | None
    total: float | None
    message: str | None
    at: Instant


class RunView(msgspec.Struct, kw_only=True, rename="camel"):
    """One occurrence of a job, or one ad-hoc submission."""

    run_id: str
    job_id: str | None
    status: str
    state: str
    handler: str
    queue: str
    priority: str
    delivery: str
    concurrency: ConcurrencyBody | UnsetType = UNSET
    scheduled_at: Instant
    due_at: Instant
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    attempts: int
    error_message: str | None
    error_class: str | None
    worker_id: str | None
    waiting_for: str | None
    """What keeps it from starting, besides time and its turn; or from ending, if its handler went on outside."""
    complete_by: Instant | UnsetType = UNSET
    """When an attempt that went on outside has timed out."""
    blocked_by: BlockedBy | UnsetType = UNSET
    cancel_requested_at: Instant | None = None
    """Since when a run that a worker holds is to stop: it is over by `stopsBy`, cancelled or completed."""
    stops_by: Instant | None = None
    progress: ProgressView | None = None
    """The last attempt's."""
    payload: msgspec.Raw | UnsetType = UNSET
    result: msgspec.Raw | UnsetType = UNSET
    """What its handler returned, if that was small enough to be kept."""


class TransitionView(msgspec.Struct, kw_only=True, rename="camel"):
    """Something that happened to a run, and the state in which it was afterwards."""

    at: Instant
    event: str
    """`accepted`, `started`, how an attempt ended (its status), `replayed`, or the state that ended it."""
    state: str
    attempt: int | None
    worker_id: str | None
    error_message: str | None


class VersionView(msgspec.Struct, kw_only=True, rename="camel"):
    """A definition of a job, from when on it was the job's, and until when: null for the present one."""

    version: int
    since: Instant
    until: Instant | None
    definition: dict[str, Any]
    """As it could be sent to create the job."""


class LateResult(msgspec.Struct, kw_only=True, rename="camel"):
    """What a handler said when its worker had lost the run: kept for people, and without effect on the run."""

    status: str
    error_message: str | None
    recorded_at: Instant


class AttemptView(msgspec.Struct, kw_only=True, rename="camel"):
    """One try of a run by one worker."""

    execution_id: str
    run_id: str
    job_id: str | None
    attempt: int
    status: str
    scheduled_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    error_message: str | None
    error_class: str | None
    worker_id: str | None
    fence: int | None
    late_result: LateResult | None = None
    progress: ProgressView | None = None


class CreatedJobs(msgspec.Struct, rename="camel"):
    """The new jobs' ids, in the order they were sent."""

    job_ids: list[str]


class Accepted(msgspec.Struct, rename="camel"):
    """The new run's id: it is on disk."""

    run_id: str


class AcceptedBatch(msgspec.Struct, rename="camel"):
    """The new runs' ids, in the order they were sent."""

    run_ids: list[str]


class FieldError(msgspec.Struct):
    field: str
    message: str
    hint: str = ""


class Problem(msgspec.Struct, kw_only=True):
    """What went wrong and what to do about it (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    hint: str = ""
    errors: list[FieldError] = []


class OccurrenceView(msgspec.Struct, kw_only=True, rename="camel"):
    """One nominal fire time of a job and what became of it."""

    at: Instant
    status: str
    reason: str | None
    run_id: str | None
    run_status: str | None
    due_at: Instant | None
    backfill_run_id: str | None
    """The run that a back-fill made for it, besides or instead."""


class GapView(msgspec.Struct, kw_only=True, rename="camel"):
    """Fire times, from the first to the last, that so many jobs went without; one of the jobs by name."""

    first: Instant
    last: Instant
    instants: int
    jobs: int
    job_id: str
    name: str
    noticed_at: Instant


class FireView(msgspec.Struct, omit_defaults=True):
    """One fire to come: when, what the schedule's wall clock shows then, and whether it changes on that day.

    Compared with a job's present schedule it also says its `change`: `same`, `added` or `removed`.
    """

    at: Instant
    local: str
    transition: str | None
    change: str | None = None


class Preview(msgspec.Struct, rename="camel"):
    """The next fires of a recurrence, and the edition of the time zone database that they were reckoned with."""

    items: list[FireView]
    zone_data: str


class CalendarSummary(msgspec.Struct, kw_only=True, rename="camel"):
    """A calendar in a list: how much it has, and who follows it."""

    name: str
    timezone: str
    business_days: list[str]
    holiday_count: int
    blackout_count: int
    source: str
    version: int
    jobs: int
    pending_jobs: int
    created_at: Instant
    updated_at: Instant


class CalendarView(msgspec.Struct, kw_only=True, rename="camel"):
    """A calendar as its owner wrote it; `pendingJobs` of its `jobs` follow the version before still."""

    name: str
    timezone: str
    business_days: list[str]
    holidays: list[dict[str, str]]
    blackouts: list[dict[str, str]]
    source: str
    version: int
    jobs: int
    pending_jobs: int
    created_at: Instant
    updated_at: Instant


class UnreadView(msgspec.Struct):
    """A line of a file that could not be read, and why; its event was left out."""

    line: int
    message: str


class ImportedCalendar(msgspec.Struct, kw_only=True):
    """What became of a file: the calendar now, the events that it took over, and what could not be read."""

    calendar: CalendarView
    events: int
    unread: list[UnreadView]


class ClosedView(msgspec.Struct, rename={"from_": "from"}):
    """A time without work, `until` excluded, and the names of what closes it."""

    from_: Instant
    until: Instant
    names: list[str]


class ClosedViews(msgspec.Struct):
    """The times without work, rising."""

    items: list[ClosedView]
