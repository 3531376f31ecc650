"""Operations that explain: why a run does not start, why a job does or does not fire."""

from foliot.api.addressed import job_id, run_id
from foliot.api.operation import Call, Operation, Reply
from foliot.wire.explain import JobExplanation, RunExplanation


async def explain_run(call: Call) -> Reply:
    return Reply(await call.services.explainer.run(call.tenant.id, run_id(call)))


async def explain_job(call: Call) -> Reply:
    return Reply(await call.services.explainer.job(call.tenant.id, job_id(call)))


OPERATIONS = (
    Operation(
        name="explainRun",
        method="GET",
        path="/v1/runs/{run}/explain",
        scope="runs:read",
        summary="Why a run does not start: every gate with its numbers, the blocking one first, and an estimate",
        handler=explain_run,
        result=RunExplanation,
    ),
    Operation(
        name="explainJob",
        method="GET",
        path="/v1/jobs/{job}/explain",
        scope="jobs:read",
        summary="Why a job fires next or does not: every gate, the blocking one first, and what its runs wait for",
        handler=explain_job,
        result=JobExplanation,
    ),
)
