"""Operations on a job's gate: paused, resumed, cancelled for good, or deleted."""

from functools import partial

import msgspec

from foliot.api.addressed import job_id
from foliot.api.jobs import view_of
from foliot.api.operation import Call, Operation, Reply
from foliot.services.insights.jobs import draft_again
from foliot.wire.calendars import Calendars
from foliot.wire.job_views import JobView


class DeleteQuery(msgspec.Struct, forbid_unknown_fields=True):
    purge: bool = False


async def pause_job(call: Call) -> Reply:
    return Reply(view_of(call, await call.services.control.pause(call.tenant.id, job_id(call))))


async def resume_job(call: Call) -> Reply:
    async def resume(calendars: Calendars) -> Reply:
        again = partial(draft_again, call.tenant.id, calendars=calendars)
        row = await call.services.control.resume(call.tenant.id, job_id(call), again)
        return Reply(view_of(call, row, calendars))

    return await call.services.calendars.resolving(call.tenant.id, resume)


async def cancel_job(call: Call) -> Reply:
    cancelled = await call.services.control.cancel(call.tenant.id, job_id(call), call.condition)
    return Reply(view_of(call, cancelled))


async def delete_job(call: Call) -> Reply:
    reply = await cancel_job(call)
    if call.query.purge:
        await call.services.control.erase(call.tenant.id, job_id(call))
    return reply


OPERATIONS = (
    Operation(
        name="pauseJob",
        method="POST",
        path="/v1/jobs/{job}:pause",
        scope="jobs:write",
        summary="Pause a job: nothing of it starts from `holdsBy` on until it is resumed; what runs goes on",
        handler=pause_job,
        result=JobView,
        is_versioned=True,
    ),
    Operation(
        name="resumeJob",
        method="POST",
        path="/v1/jobs/{job}:resume",
        scope="jobs:write",
        summary="Resume a paused job",
        handler=resume_job,
        result=JobView,
        is_versioned=True,
    ),
    Operation(
        name="cancelJob",
        method="POST",
        path="/v1/jobs/{job}:cancel",
        scope="jobs:write",
        summary="Cancel a job and its runs; those that run are asked to stop",
        handler=cancel_job,
        result=JobView,
        is_versioned=True,
        is_conditional=True,
    ),
    Operation(
        name="deleteJob",
        method="DELETE",
        path="/v1/jobs/{job}",
        scope="jobs:write",
        summary="Cancel a job; it stays readable with its history, unless `purge` erases it with all that it did",
        handler=delete_job,
        query=DeleteQuery,
        result=JobView,
        is_versioned=True,
        is_conditional=True,
    ),
)
