"""Operations on the wire: what is asked for, and how it stands."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from foliot.domain.backfill import MOST_AT_ONCE, Backfill, Order, Range, Reprocess
from foliot.domain.errors import InvalidField
from foliot.domain.job import LONGEST_NAME
from foliot.wire.codec import CONTROL
from foliot.wire.timing import Instant, check_instant


class BackfillBody(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The instants of a job's schedule from `from` to `until`, both included, are run as if they came now."""

    from_: Instant = msgspec.field(name="from")
    until: Instant
    name: Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)] | None = None
    concurrency: Annotated[int, Meta(ge=1, le=MOST_AT_ONCE)] = 1
    order: Literal["oldest", "newest"] = "oldest"
    reprocess: Literal["none", "failed", "all"] = "none"
    dry_run: bool = False


def backfill_of(body: BackfillBody) -> Backfill:
    since, until = check_instant(body.from_, "from"), check_instant(body.until, "until")
    if since is None or until is None:
        raise InvalidField("from", "is missing", "add it")
    if body.name is not None and CONTROL.search(body.name):
        raise InvalidField("name", "contains a control character", "take it out")
    return Backfill(
        range=Range(since, until),
        name=body.name or "",
        concurrency=body.concurrency,
        order=Order(body.order),
        reprocess=Reprocess(body.reprocess),
    )


class OperationProgress(msgspec.Struct, kw_only=True):
    """`total` instants: `skipped` need no run; of those `submitted`, `running` are under way and the others ended."""

    total: int
    submitted: int
    running: int
    succeeded: int
    failed: int
    cancelled: int
    skipped: int


class PlanView(msgspec.Struct, kw_only=True, rename="camel"):
    """What a dry run found: how many instants would be run, the first and the last of them in their order."""

    to_run: int
    already_done: int
    under_way: int
    first: list[Instant]
    last: list[Instant]


class OperationView(msgspec.Struct, kw_only=True, rename="camel"):
    """Work on many runs that was asked for once. Of a dry run, `operationId` is null and there is a `plan`."""

    operation_id: str | None
    kind: str
    name: str
    job_id: str | None
    status: str
    arguments: dict[str, Any]
    progress: OperationProgress
    message: str | None
    created_at: Instant | None
    started_at: Instant | None
    finished_at: Instant | None
    estimated_end_at: Instant | None
    plan: PlanView | UnsetType = UNSET
