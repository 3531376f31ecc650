"""Operations on operations: asking for back-fills, how far any operation is, calling it off."""

import msgspec

from foliot.api.addressed import job_id, operation_id
from foliot.api.operation import Call, Operation, Reply
from foliot.api.paging import Limit
from foliot.wire.filters import named_job
from foliot.wire.operations import BackfillBody, OperationView, backfill_of
from foliot.wire.pages import Page


class OperationQuery(msgspec.Struct, forbid_unknown_fields=True):
    status: str | None = None
    job: str | None = None
    limit: Limit = 50
    cursor: str | None = None


async def backfill_job(call: Call) -> Reply:
    job, asked, operations = job_id(call), backfill_of(call.body), call.services.operations
    if call.body.dry_run:
        return Reply(await operations.plan_backfill(call.tenant.id, job, asked), status=200)
    body = await operations.backfill(call.tenant.id, job, asked, key=call.key, fingerprint=call.fingerprint)
    return Reply(body, location=f"/v1/operations/{msgspec.json.decode(body)['operationId']}")


async def list_operations(call: Call) -> Reply:
    query = msgspec.structs.asdict(call.query)
    query["job"] = None if call.query.job is None else named_job(call.query.job)
    return Reply(await call.services.operations.operations(call.tenant.id, **query))


async def get_operation(call: Call) -> Reply:
    return Reply(await call.services.operations.operation(call.tenant.id, operation_id(call)))


async def cancel_operation(call: Call) -> Reply:
    return Reply(await call.services.operations.cancel(call.tenant.id, operation_id(call)))


OPERATIONS = (
    Operation(
        name="backfillJob",
        method="POST",
        path="/v1/jobs/{job}:backfill",
        scope="jobs:write",
        summary="Run the instants of a past range of a recurring job, at a pace of their own",
        handler=backfill_job,
        body=BackfillBody,
        result=OperationView,
        status=202,
        also=(200,),
        keeps_first_answer=True,
    ),
    Operation(
        name="listOperations",
        method="GET",
        path="/v1/operations",
        scope="jobs:read",
        summary="List back-fills, replays and discards, and how far they are, newest first",
        handler=list_operations,
        query=OperationQuery,
        result=Page[OperationView],
    ),
    Operation(
        name="cancelOperation",
        method="POST",
        path="/v1/operations/{operation}:cancel",
        scope="jobs:write",
        summary="Cancel an operation: nothing more is handed out, what runs goes on",
        handler=cancel_operation,
        result=OperationView,
    ),
    Operation(
        name="getOperation",
        method="GET",
        path="/v1/operations/{operation}",
        scope="jobs:read",
        summary="Read an operation and its progress",
        handler=get_operation,
        result=OperationView,
    ),
)
