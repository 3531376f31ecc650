"""Jobs as the API tells of them: what their owner wrote, and how they stand."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from foliot.domain.cron import Dst
from foliot.wire.calendars import CalendarUse
from foliot.wire.graphs import NeedBody
from foliot.wire.limits import ConcurrencyBody
from foliot.wire.retries import BackoffBody, RetryRuleBody
from foliot.wire.timing import Instant


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
    requires: list[str] | UnsetType = UNSET
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


class VersionView(msgspec.Struct, kw_only=True, rename="camel"):
    """A definition of a job, from when on it was the job's, and until when: null for the present one."""

    version: int
    since: Instant
    until: Instant | None
    definition: dict[str, Any]
    """As it could be sent to create the job."""


class CreatedJobs(msgspec.Struct, rename="camel"):
    """The new jobs' ids, in the order they were sent."""

    job_ids: list[str]
