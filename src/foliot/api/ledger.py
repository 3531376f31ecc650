"""Operations on the occurrence ledger: what became of every instant, and where there are gaps."""

import msgspec

from foliot.api.addressed import job_id
from foliot.api.operation import Call, Operation, Reply
from foliot.api.paging import Limit
from foliot.wire.ledger import GapView, OccurrenceView
from foliot.wire.pages import Page
from foliot.wire.timing import Instant, check_instant


class SpanQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    since: Instant | None = None
    until: Instant | None = None
    limit: Limit = 50
    cursor: str | None = None


class OccurrenceQuery(SpanQuery, kw_only=True, forbid_unknown_fields=True):
    status: str | None = None


async def list_occurrences(call: Call) -> Reply:
    query: OccurrenceQuery = call.query
    page = await call.services.ledger.occurrences(
        call.tenant.id,
        job_id(call),
        since=check_instant(query.since, "since"),
        until=check_instant(query.until, "until"),
        status=query.status,
        limit=query.limit,
        cursor=query.cursor,
    )
    return Reply(page)


async def list_gaps(call: Call) -> Reply:
    query: SpanQuery = call.query
    page = await call.services.ledger.gaps(
        call.tenant.id,
        since=check_instant(query.since, "since"),
        until=check_instant(query.until, "until"),
        limit=query.limit,
        cursor=query.cursor,
    )
    return Reply(page)


OPERATIONS = (
    Operation(
        name="listOccurrences",
        method="GET",
        path="/v1/jobs/{job}/occurrences",
        scope="jobs:read",
        summary="Every nominal fire time of a job and what became of it: fired, skipped or missed, newest first",
        handler=list_occurrences,
        query=OccurrenceQuery,
        result=Page[OccurrenceView],
    ),
    Operation(
        name="listGaps",
        method="GET",
        path="/v1/gaps",
        scope="jobs:read",
        summary="Fire times that jobs went without because they came up late, newest first",
        handler=list_gaps,
        query=SpanQuery,
        result=Page[GapView],
    ),
)
