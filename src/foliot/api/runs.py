"""Operations on runs that there are, and their attempts."""

from typing import Annotated

import msgspec
from msgspec import Meta

from foliot.api.addressed import job_id, run_id
from foliot.api.operation import Call, Operation, Reply
from foliot.api.paging import Limit, PageQuery
from foliot.domain.ids import encode
from foliot.domain.states import STATUS_OF
from foliot.wire.completion import CompletionBody, CompletionView, SigningSecret, answer_of
from foliot.wire.filters import named_job
from foliot.wire.graphs import GraphView
from foliot.wire.pages import Page
from foliot.wire.run_views import AttemptView, RunView, TransitionView
from foliot.wire.timing import Instant, check_instant


class RunsOfJobQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    status: str | None = None
    state: str | None = None
    since: Instant | None = None
    until: Instant | None = None
    text: Annotated[str, Meta(min_length=1, max_length=500)] | None = None
    limit: Limit = 50
    cursor: str | None = None


class RunQuery(RunsOfJobQuery, kw_only=True, forbid_unknown_fields=True):
    job: str | None = None


async def list_runs(call: Call) -> Reply:
    return await _runs(call, None if call.query.job is None else named_job(call.query.job))


async def list_runs_of_job(call: Call) -> Reply:
    job = job_id(call)
    await call.services.control.read(call.tenant.id, job)
    return await _runs(call, job)


async def _runs(call: Call, job: int | None) -> Reply:
    query = {**msgspec.structs.asdict(call.query), "job": job}
    for bound in ("since", "until"):
        query[bound] = check_instant(query[bound], bound)
    return Reply(await call.services.insights.runs(call.tenant.id, **query))


async def get_run(call: Call) -> Reply:
    return Reply(await call.services.insights.run(call.tenant.id, run_id(call)))


async def cancel_run(call: Call) -> Reply:
    run, insights = run_id(call), call.services.insights
    await insights.run(call.tenant.id, run)
    await call.services.canceller.cancel(call.tenant.id, run)
    return Reply(await insights.run(call.tenant.id, run))


async def list_attempts(call: Call) -> Reply:
    run = run_id(call)
    await call.services.insights.run(call.tenant.id, run)
    query = msgspec.structs.asdict(call.query)
    return Reply(await call.services.insights.attempts(call.tenant.id, run=run, **query))


async def list_executions(call: Call) -> Reply:
    job = job_id(call)
    await call.services.control.read(call.tenant.id, job)
    query = msgspec.structs.asdict(call.query)
    return Reply(await call.services.insights.attempts(call.tenant.id, job=job, **query))


async def list_transitions(call: Call) -> Reply:
    query = msgspec.structs.asdict(call.query)
    return Reply(await call.services.insights.transitions(call.tenant.id, run_id(call), **query))


async def get_signing_secret(call: Call) -> Reply:
    return Reply(SigningSecret(await call.services.insights.signing_secret(call.tenant.id)))


async def complete_run(call: Call) -> Reply:
    run = run_id(call)
    ended = await call.services.completer.complete(run, call.token, answer_of(call.body))
    return Reply(
        CompletionView(
            run_id=encode("run", run),
            status=ended.ending.word,
            finished_at=ended.at,
            run_status=STATUS_OF[ended.state],
            run_state=ended.state.word,
        )
    )


async def get_graph(call: Call) -> Reply:
    return Reply(await call.services.graphs.read(call.tenant.id, run_id(call)))


async def cancel_graph(call: Call) -> Reply:
    return Reply(await call.services.graphs.cancel(call.tenant.id, run_id(call)))


OPERATIONS = (
    Operation(
        name="listRuns",
        method="GET",
        path="/v1/runs",
        scope="runs:read",
        summary="List runs, newest first; `since` and `until` are about when they were accepted",
        handler=list_runs,
        query=RunQuery,
        result=Page[RunView],
    ),
    Operation(
        name="listRunsOfJob",
        method="GET",
        path="/v1/jobs/{job}/runs",
        scope="runs:read",
        summary="List the runs of a job, newest first",
        handler=list_runs_of_job,
        query=RunsOfJobQuery,
        result=Page[RunView],
    ),
    Operation(
        name="listTransitions",
        method="GET",
        path="/v1/runs/{run}/transitions",
        scope="runs:read",
        summary="List what happened to a run, oldest first, and the states that it passed through",
        handler=list_transitions,
        query=PageQuery,
        result=Page[TransitionView],
    ),
    Operation(
        name="listAttempts",
        method="GET",
        path="/v1/runs/{run}/attempts",
        scope="runs:read",
        summary="List the attempts of a run, newest first",
        handler=list_attempts,
        query=PageQuery,
        result=Page[AttemptView],
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
        name="cancelRun",
        method="POST",
        path="/v1/runs/{run}:cancel",
        scope="runs:write",
        summary="End a run that waits, or ask for the end of one that runs: over by `stopsBy`, and never tried again",
        handler=cancel_run,
        result=RunView,
    ),
    Operation(
        name="completeRun",
        method="POST",
        path="/v1/runs/{run}:complete",
        scope="token",
        summary="Say how an attempt ended that went on outside; the token of its call is all it takes",
        handler=complete_run,
        body=CompletionBody,
        result=CompletionView,
        needs_key=False,
    ),
    Operation(
        name="getSigningSecret",
        method="GET",
        path="/v1/signing-secret",
        scope="secrets:read",
        summary="The secret that calls of HTTP handlers are signed with (Standard Webhooks)",
        handler=get_signing_secret,
        result=SigningSecret,
    ),
    Operation(
        name="cancelGraph",
        method="POST",
        path="/v1/runs/{run}/graph:cancel",
        scope="runs:write",
        summary="Cancel the graph that a run is part of: what waits ends, what runs is asked to stop",
        handler=cancel_graph,
        result=GraphView,
    ),
    Operation(
        name="getGraph",
        method="GET",
        path="/v1/runs/{run}/graph",
        scope="runs:read",
        summary="Read the graph that a run is part of: its runs with their states, and what waits for what",
        handler=get_graph,
        result=GraphView,
    ),
    Operation(
        name="getRun",
        method="GET",
        path="/v1/runs/{run}",
        scope="runs:read",
        summary="Read a run",
        handler=get_run,
        result=RunView,
    ),
)
