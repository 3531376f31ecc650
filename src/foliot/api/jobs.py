"""Operations on jobs: defining them, and reading what is defined."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from foliot.api.addressed import job_id
from foliot.api.operation import Call, Operation, Reply
from foliot.api.paging import Limit, PageQuery
from foliot.api.patch import merged
from foliot.api.reading import LARGE
from foliot.api.targets import check_target
from foliot.api.tenants import meant
from foliot.domain.errors import InvalidField, NotFound
from foliot.domain.ids import encode
from foliot.domain.job import Draft, Kind
from foliot.kit.clock import wall
from foliot.services.insights.jobs import job_view
from foliot.store.database import ACTING_FOR
from foliot.store.reading import JobRow
from foliot.wire.calendars import NO_CALENDARS, Calendars
from foliot.wire.job_views import CreatedJobs, JobView, VersionView
from foliot.wire.jobs import JobBatch, JobBody, check_key, draft_of, drafts_of
from foliot.wire.pages import Page
from foliot.wire.timing import check_not_over

Done = TypeVar("Done")


class JobQuery(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    tenant: str | None = None
    status: str | None = None
    name: str | None = None
    label: str | None = None
    schedule_type: str | None = None
    limit: Limit = 50
    cursor: str | None = None


def view_of(call: Call, row: JobRow, calendars: Calendars = NO_CALENDARS) -> JobView:
    return job_view(call.tenant.name, row, calendars.by_digest)


async def _resolving(call: Call, deed: Callable[[Calendars], Awaitable[Done]]) -> Done:
    """Do what may need calendars of the tenant's."""
    return await call.services.calendars.resolving(call.tenant.id, deed)


def _draft(call: Call, body: JobBody, calendars: Calendars) -> Draft:
    draft = draft_of(body, call.tenant.id, calendars)
    check_target(call, body.handler)
    return draft


def _to_come(body: JobBody, draft: Draft) -> Draft:
    """The same, unless all of it has been. What is declared by key again and again may be over: nothing is new then."""
    check_not_over(body, draft.not_before, draft.ends_at, wall())
    return draft


def _drafts(call: Call, calendars: Calendars) -> list[Draft]:
    drafts = drafts_of(call.body, call.tenant.id, calendars)
    for index, (body, draft) in enumerate(zip(call.body.jobs, drafts, strict=True)):
        try:
            _to_come(body, draft)
            check_target(call, body.handler)
        except InvalidField as error:
            raise error.within(f"jobs[{index}]") from None
    return drafts


def _with_room(call: Call, drafts: Sequence[Draft]) -> Sequence[Draft]:
    """The same; a job that runs once hands a run in, and is refused like one while too much waits."""
    if any(draft.kind is Kind.ONE_TIME for draft in drafts):
        call.services.backlog.check(call.tenant.id, call.tenant.backlog)
    return drafts


async def create_job(call: Call) -> Reply:
    async def create(calendars: Calendars) -> bytes:
        (draft,) = _with_room(call, [_to_come(call.body, _draft(call, call.body, calendars))])
        return await call.services.control.create(
            call.tenant.id,
            draft,
            key=call.key,
            fingerprint=call.fingerprint,
            render=lambda row: msgspec.json.encode(view_of(call, row, calendars)),
        )

    body = await _resolving(call, create)
    made = msgspec.json.decode(body)
    return Reply(body, location=f"/v1/jobs/{made['jobId']}", version=made["version"])


async def create_jobs(call: Call) -> Reply:
    async def create(calendars: Calendars) -> bytes:
        return await call.services.control.create_batch(
            call.tenant.id,
            _with_room(call, _drafts(call, calendars)),
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
            return _with_room(call, [draft])[0] if row is None else draft

        row, is_new = await call.services.control.put(call.tenant.id, key, replaced)
        return Reply(view_of(call, row, calendars), status=201 if is_new else 200)

    return await _resolving(call, put)


async def get_job_by_key(call: Call) -> Reply:
    try:
        key = check_key(call.path["key"])
    except InvalidField:
        raise NotFound("there is no such job") from None
    return Reply(await call.services.insights.job_by_key(call.tenant.id, call.tenant.name, key))


async def list_jobs(call: Call) -> Reply:
    query = msgspec.structs.asdict(call.query)
    asked = query.pop("tenant")
    if asked in {None, call.tenant.name}:
        return Reply(await call.services.insights.jobs(call.tenant.id, call.tenant.name, **query))
    row = await call.services.tenants.read(meant(call, asked))
    acting = ACTING_FOR.set(row.id)
    try:
        return Reply(await call.services.insights.jobs(row.id, row.name, **query))
    finally:
        ACTING_FOR.reset(acting)


async def get_job(call: Call) -> Reply:
    return Reply(await call.services.insights.job(call.tenant.id, call.tenant.name, job_id(call)))


async def change_job(call: Call) -> Reply:
    async def change(calendars: Calendars) -> Reply:
        def edited(row: JobRow) -> Draft:
            call.condition.check(row.version)
            body = merged(row, call.raw)
            # A job whose target has been forbidden since can still be changed otherwise.
            is_new = "handler" in call.body
            draft = _draft(call, body, calendars) if is_new else draft_of(body, call.tenant.id, calendars)
            return _to_come(body, draft)

        row = await call.services.control.change(call.tenant.id, job_id(call), edited)
        return Reply(view_of(call, row, calendars))

    return await _resolving(call, change)


async def list_versions(call: Call) -> Reply:
    query = msgspec.structs.asdict(call.query)
    return Reply(await call.services.insights.versions(call.tenant.id, job_id(call), **query))


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
        keeps_first_answer=True,
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
        keeps_first_answer=True,
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
)
