"""Runs as the API tells of them, with their attempts and all that happened to them."""

import msgspec
from msgspec import UNSET, UnsetType

from foliot.wire.limits import BlockedBy, ConcurrencyBody
from foliot.wire.timing import Instant


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
    requires: list[str] | UnsetType = UNSET
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


class Accepted(msgspec.Struct, rename="camel"):
    """The new run's id: it is on disk."""

    run_id: str


class AcceptedBatch(msgspec.Struct, rename="camel"):
    """The new runs' ids, in the order they were sent."""

    run_ids: list[str]
