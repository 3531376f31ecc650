"""Workers and queues as the API shows them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from foliot.wire.timing import Instant

Count = Annotated[int, Meta(ge=0)]


class WorkerView(msgspec.Struct, kw_only=True, rename="camel"):
    """One process that runs handlers: what it offers, and what it had in hand at its last heartbeat."""

    worker_id: str
    name: str
    state: str
    host: str
    pid: int
    app: str | None
    version: str
    queues: list[str]
    handlers: list[str]
    """`http`, and `fn:` with the name of each function."""
    labels: list[str]
    """It takes runs that require some of these, or nothing."""
    concurrency: Count
    running: Count
    started_at: Instant
    last_seen_at: Instant


class QueueView(msgspec.Struct, kw_only=True, rename="camel"):
    """One queue: what waits in it, who serves it, and whether it is held back.

    `ready` is counted up to 100,000 per handler, `scheduled` among the 10,000 runs that are due next.
    """

    name: str
    paused_at: Instant | None
    holds_by: Instant | None
    """After this instant nothing of a paused queue starts, whatever happens to workers or network."""
    ready: Count
    running: Count
    scheduled: Count
    oldest_age_seconds: float | None
    rate: float
    """Runs that workers took a second, lately."""
    workers: Count
    unserved: list[str]
    """Handlers with runs that wait and no live worker that offers them: `http`, `http with gpu` if that is required."""
