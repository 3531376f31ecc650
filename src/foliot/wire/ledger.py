"""The occurrence ledger on the wire: what became of fire times, and where some were missed."""

import msgspec

from foliot.wire.timing import Instant


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
