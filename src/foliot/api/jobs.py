"""Operations on jobs."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import msgspec

from foliot.api.operation import Call, Operation, Reply
from foliot.api.paging import Limit, PageQuery
from foliot.api.patch import merged
from foliot.api.reading import LARGE
from foliot.api.targets import check_target
from foliot.domain.errors import InvalidField, NotFound
from foliot.domain.fairness import parse_priority
from foliot.domain.ids import decode, encode
from foliot.domain.job import Draft
from foliot.services.insights import draft_again, job_view
from foliot.services.submit import Key
from foliot.store.reading import JobRow
from foliot.store.submission import Asked, NewRun
from foliot.wire.calendars import NO_CALENDARS, Calendars
from foliot.wire.jobs import JobBatch, JobBody, check_key, check_payload, draft_of, drafts_of
from foliot.wire.runs import RunByHand, start_of
from foliot.wire.views import Accepted, AttemptView, CreatedJobs, JobView, Page, VersionView

Done = TypeVar("Done")


class JobQuery(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    status: str | None = None
    name: str | None = None
    label: str | None = None
    schedule_type: str | None = None
    limit: Limit = 50
    cursor: str | None = None


class DeleteQuery(msgspec.Struct, forbid_unknown_fields=True):
    purge: bool = False


def job_id(call: Call) -> int:
    """The job that the path names."""
    return job_of(call.path["job"])


def job_of(text: str) -> int:
    """A malformed id is as unknown as any other."""
    try:
        return decode("job", text)
    except InvalidField:
        raise NotFound("there is no such job") from None


def _view(call: Call, row: JobRow, calendars: Calendars = NO_CALENDARS) -> JobView:
    return job_view(call.tenant.name, row, calendars.by_digest)


async def _resolving(call: Call, deed: Callable[[Calendars], Awaitable[Done]]) -> Done:
    """Do what may need calendars of the tenant's."""
    return await call.services.calendars.resolving(call.tenant.id, deed)


def _draft(call: Call, body: JobBody, calendars: Calendars) -> Draft:
    draft = draft_of(body, call.tenant.id, calendars)
    check_target(call, body.handler)
    return draft


def _drafts(call: Call, calendars: Calendars) -> list[Draft]:
    drafts = drafts_of(call.body, call.tenant.id, calendars)
    for index, body in enumerate(call.body.jobs):
        try:
            check_target(call, body.handler)
        except InvalidField as error:
            raise error.within(f"jobs[{index}]") from None
    return drafts


async def create_job(call: Call) -> Reply:
    async def create(calendars: Calendars) -> bytes:
        return await call.services.control.create(
            call.tenant.id,
            _draft(call, call.body, calendars),
            key=call.key,
            fingerprint=call.fingerprint,
            render=lambda row: msgspec.json.encode(_view(call, row, calendars)),
        )

    body = await _resolving(call, create)
    made = msgspec.json.decode(body)
    return Reply(body, location=f"/v1/jobs/{made['jobId']}", version=made["version"])


async def create_jobs(call: Call) -> Reply:
    async def create(calendars: Calendars) -> bytes:
        return await call.services.control.create_batch(
            call.tenant.id,
            _drafts(call, calendars),
            key=call.key,
            fingerprint=call.fingerprint,
            render=lambda ids: msgspec.json.encode(CreatedJobs([encode("job", number) for number in ids])),
        )

    return Reply(await _resolving(call, create))


async def put_job(call: Call) -> Reply:
    key = check_key(call.path["key"])
    if call.body.key not in {None, key}:
        raise InvalidField("key", "is not the key of the address", "leave it out of the body")
    call.body.key = key

    async def put(calendars: Calendars) -> Reply:
        draft = _draft(call, call.body, calendars)

        def replaced(row: JobRow | None) -> Draft:
            call.condition.check(None if row is None else row.version)
            return draft

        row, is_new = await call.services.control.put(call.tenant.id, key, replaced)
        return Reply(_view(call, row, calendars), status=201 if is_new else 200)

    return await _resolving(call, put)


async def get_job_by_key(call: Call) -> Reply:
    try:
        key = check_key(call.path["key"])
    except InvalidField:
        raise NotFound("there is no such job") from None
    return Reply(await call.services.insights.job_by_key(call.tenant.id, call.tenant.name, key))


async def list_jobs(call: Call) -> Reply:
    query = msgspec.structs.asdict(call.query)
    return Reply(await call.services.insights.jobs(call.tenant.id, call.tenant.name, **query))


async def get_job(call: Call) -> Reply:
    return Reply(await call.services.insights.job(call.tenant.id, call.tenant.name, job_id(call)))


async def change_job(call: Call) -> Reply:
    async def change(calendars: Calendars) -> Reply:
        def edited(row: JobRow) -> Draft:
            call.condition.check(row.version)
            body = merged(row, call.raw)
            # A job whose target has been forbidden since can still be changed otherwise.
            is_new = "handler" in call.body
            return _draft(call, body, calendars) if is_new else draft_of(body, call.tenant.id, calendars)

        row = await call.services.control.change(call.tenant.id, job_id(call), edited)
        return Reply(_view(call, row, calendars))

    return await _resolving(call, change)


async def cancel_job(call: Call) -> Reply:
    cancelled = await call.services.control.cancel(call.tenant.id, job_id(call), call.condition)
    return Reply(_view(call, cancelled))


async def delete_job(call: Call) -> Reply:
    reply = await cancel_job(call)
    if call.query.purge:
        await call.services.control.erase(call.tenant.id, job_id(call))
    return reply


async def pause_job(call: Call) -> Reply:
    return Reply(_view(call, await call.services.control.pause(call.tenant.id, job_id(call))))


async def resume_job(call: Call) -> Reply:
    async def resume(calendars: Calendars) -> Reply:
        again = partial(draft_again, call.tenant.id, calendars=calendars)
        row = await call.services.control.resume(call.tenant.id, job_id(call), again)
        return Reply(_view(call, row, calendars))

    return await _resolving(call, resume)


async def run_job(call: Call) -> Reply:
    row = await call.services.control.read(call.tenant.id, job_id(call))
    if row.head is not None and not row.parents:
        asked = Asked(call.tenant.id, call.key, call.fingerprint)
        return Reply(await call.services.graphs.start(await _by_hand(call, row), asked))
    accepted = await call.services.submitter.submit([await _by_hand(call, row)], run_key(call))
    return Reply(accepted.repeated or Accepted(encode("run", accepted.ids[0])))


async def list_executions(call: Call) -> Reply:
    job = job_id(call)
    await call.services.control.read(call.tenant.id, job)
    page = await call.services.insights.attempts(
        call.tenant.id, job=job, limit=call.query.limit, cursor=call.query.cursor
    )
    return Reply(page)


async def list_versions(call: Call) -> Reply:
    query = msgspec.structs.asdict(call.query)
    return Reply(await call.services.insights.versions(call.tenant.id, job_id(call), **query))


def run_key(call: Call) -> Key | None:
    if call.key is None:
        return None

    def answer(ids: Any) -> bytes:
        return msgspec.json.encode(Accepted(encode("run", ids[0])))

    return Key(call.key, call.tenant.id, call.fingerprint, answer)


async def _by_hand(call: Call, row: JobRow) -> NewRun:
    body: RunByHand = call.body or RunByHand()
    spec = row.spec
    if body.priority is not None:
        spec = msgspec.structs.replace(spec, priority=parse_priority(body.priority))
    payload = row.payload if body.payload is msgspec.UNSET else check_payload(bytes(body.payload))
    limit_key = spec.key_of(payload)
    due, delay = start_of(body)
    ref = await call.services.specs.intern(call.tenant.id, spec)
    return NewRun(ref, payload, job=row.id, due=due, delay=delay, limit_key=limit_key)


OPERATIONS = (
    Operation(
        name="createJob",
        method="POST",
        path="/v1/jobs",
        scope="jobs:write",
        summary="Create a job",
        handler=create_job,
        body=JobBody,
        result=JobView,
        is_versioned=True,
        status=201,
        idempotent_by_key=True,
    ),
    Operation(
        name="createJobs",
        method="POST",
        path="/v1/jobs:batch",
        scope="jobs:write",
        summary="Create up to 10,000 jobs, all or none",
        handler=create_jobs,
        body=JobBatch,
        result=CreatedJobs,
        status=201,
        idempotent_by_key=True,
        costs=lambda body: len(body.jobs),
        largest_body=LARGE,
    ),
    Operation(
        name="listJobs",
        method="GET",
        path="/v1/jobs",
        scope="jobs:read",
        summary="List jobs, newest first",
        handler=list_jobs,
        query=JobQuery,
        result=Page[JobView],
    ),
    Operation(
        name="putJobByKey",
        method="PUT",
        path="/v1/jobs/by-key/{key}",
        scope="jobs:write",
        summary="Create the job of this key, or replace its definition",
        handler=put_job,
        body=JobBody,
        result=JobView,
        also=(201,),
        is_versioned=True,
        is_conditional=True,
    ),
    Operation(
        name="getJobByKey",
        method="GET",
        path="/v1/jobs/by-key/{key}",
        scope="jobs:read",
        summary="Read the job of this key; a cancelled one has no key any more",
        handler=get_job_by_key,
        result=JobView,
        is_versioned=True,
    ),
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
        name="runJob",
        method="POST",
        path="/v1/jobs/{job}:run",
        scope="runs:write",
        summary="Run a job now, or at another time, besides its schedule; that of a graph's root runs the graph",
        handler=run_job,
        is_submission=True,
        body=RunByHand,
        body_is_optional=True,
        result=Accepted,
        status=201,
        idempotent_by_key=True,
    ),
    Operation(
        name="listExecutions",
        method="GET",
        path="/v1/jobs/{job}/executions",
        scope="jobs:read",
        summary="List the attempts of a job's runs, newest first",
        handler=list_executions,
        query=PageQuery,
        result=Page[AttemptView],
    ),
    Operation(
        name="listVersions",
        method="GET",
        path="/v1/jobs/{job}/versions",
        scope="jobs:read",
        summary="List the definitions that a job has had, newest first; the last hundred are kept",
        handler=list_versions,
        query=PageQuery,
        result=Page[VersionView],
    ),
    Operation(
        name="getJob",
        method="GET",
        path="/v1/jobs/{job}",
        scope="jobs:read",
        summary="Read a job",
        handler=get_job,
        result=JobView,
        is_versioned=True,
    ),
    Operation(
        name="changeJob",
        method="PATCH",
        path="/v1/jobs/{job}",
        scope="jobs:write",
        summary="Change some fields of a job, null takes one away; instants from now on follow the new definition",
        handler=change_job,
        body=dict[str, msgspec.Raw],
        body_shown=JobBody,
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
