"""Operations on dead letters: look through them, let them go on, give them up."""

import msgspec

from foliot.api.addressed import run_id
from foliot.api.operation import Call, Operation, Reply
from foliot.api.paging import Limit
from foliot.services.dead_letters import whole_letter
from foliot.wire.letters import (
    DiscardBody,
    LetterFilter,
    LettersDone,
    LetterView,
    ReplayBody,
    WholeLetter,
    runs_of,
    selection_of,
    sweep_of,
)
from foliot.wire.operations import OperationView
from foliot.wire.pages import Page
from foliot.wire.run_views import RunView

_MOST_EXECUTIONS = 500


class LetterQuery(LetterFilter, kw_only=True, rename="camel", forbid_unknown_fields=True):
    limit: Limit = 50
    cursor: str | None = None


async def list_dead_letters(call: Call) -> Reply:
    query: LetterQuery = call.query
    selection = selection_of(query)
    found = await call.services.dead_letters.list(call.tenant.id, selection, limit=query.limit, cursor=query.cursor)
    return Reply(found)


async def get_dead_letter(call: Call) -> Reply:
    run = run_id(call)
    row = await call.services.dead_letters.read(call.tenant.id, run)
    executions = await call.services.insights.attempts(call.tenant.id, run=run, limit=_MOST_EXECUTIONS, cursor=None)
    return Reply(whole_letter(row, executions.items))


async def replay_dead_letters(call: Call) -> Reply:
    if (runs := runs_of(call.body)) is None:
        return await _sweep(call)
    letters = call.services.dead_letters
    return Reply(await letters.replay(call.tenant.id, runs, key=call.key, fingerprint=call.fingerprint))


async def discard_dead_letters(call: Call) -> Reply:
    if (runs := runs_of(call.body)) is None:
        return await _sweep(call)
    letters = call.services.dead_letters
    return Reply(await letters.discard(call.tenant.id, runs, key=call.key, fingerprint=call.fingerprint))


async def retry_run(call: Call) -> Reply:
    run, insights = run_id(call), call.services.insights
    await insights.run(call.tenant.id, run)
    await call.services.dead_letters.retry(call.tenant.id, run)
    return Reply(await insights.run(call.tenant.id, run))


async def _sweep(call: Call) -> Reply:
    asked, operations = sweep_of(call.body), call.services.operations
    if call.body.dry_run:
        return Reply(_begun(await operations.plan_sweep(call.tenant.id, asked)))
    body = await operations.sweep(call.tenant.id, asked, key=call.key, fingerprint=call.fingerprint)
    made = msgspec.json.decode(body, type=OperationView)
    return Reply(_begun(made), status=202, location=f"/v1/operations/{made.operation_id}")


def _begun(operation: OperationView) -> LettersDone:
    return LettersDone(run_ids=[], refused=[], operation=operation)


OPERATIONS = (
    Operation(
        name="listDeadLetters",
        method="GET",
        path="/v1/dead-letters",
        scope="runs:read",
        summary="List runs that have used their attempts, newest first",
        handler=list_dead_letters,
        query=LetterQuery,
        result=Page[LetterView],
    ),
    Operation(
        name="getDeadLetter",
        method="GET",
        path="/v1/dead-letters/{run}",
        scope="runs:read",
        summary="Read a dead letter with its payload, its error and all its attempts",
        handler=get_dead_letter,
        result=WholeLetter,
    ),
    Operation(
        name="replayDeadLetters",
        method="POST",
        path="/v1/dead-letters:replay",
        scope="runs:write",
        summary="Let dead letters go on: up to 1,000 by id at once, or those of a filter at a pace",
        handler=replay_dead_letters,
        body=ReplayBody,
        result=LettersDone,
        also=(202,),
        keeps_first_answer=True,
    ),
    Operation(
        name="discardDeadLetters",
        method="POST",
        path="/v1/dead-letters:discard",
        scope="runs:write",
        summary="Give dead letters up: up to 1,000 by id at once, or those of a filter",
        handler=discard_dead_letters,
        body=DiscardBody,
        result=LettersDone,
        also=(202,),
        keeps_first_answer=True,
    ),
    Operation(
        name="retryRun",
        method="POST",
        path="/v1/runs/{run}:retry",
        scope="runs:write",
        summary="Let a run that has used its attempts go on",
        handler=retry_run,
        result=RunView,
    ),
)
