"""Operations that hand runs in: one, many at once, or one of a job by hand."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from foliot.api.addressed import job_id
from foliot.api.operation import Call, Operation, Reply
from foliot.api.reading import LARGE
from foliot.api.targets import check_target
from foliot.domain.errors import InvalidField
from foliot.domain.fairness import parse_priority
from foliot.domain.ids import encode
from foliot.domain.spec import Spec
from foliot.services.submit import Key
from foliot.store.reading import JobRow
from foliot.store.specs import SpecRef
from foliot.store.submission import Asked, NewRun
from foliot.wire.jobs import check_payload, payload_of
from foliot.wire.run_views import Accepted, AcceptedBatch
from foliot.wire.runs import RunBatch, RunBody, RunByHand, spec_and_target, start_of


class Drawn(NamedTuple):
    """A run that is in order, and not written yet."""

    spec: Spec
    payload: bytes
    target: bytes | None
    due: datetime | None
    delay: timedelta | None
    limit_key: int | None

    def under(self, ref: SpecRef) -> NewRun:
        return NewRun(ref, self.payload, self.target, None, self.due, self.delay, None, self.limit_key)


def drawn(call: Call, body: RunBody) -> Drawn:
    due, delay = start_of(body)
    spec, target = spec_and_target(body)
    check_target(call, body.handler)
    payload = payload_of(body)
    return Drawn(spec, payload, target, due, delay, spec.key_of(payload))


async def create_run(call: Call) -> Reply:
    run = drawn(call, call.body)
    ref = await call.services.specs.intern(call.tenant.id, run.spec)
    return await _submitted(call, [run.under(ref)], _one)


async def create_runs(call: Call) -> Reply:
    runs = []
    for index, body in enumerate(call.body.runs):
        try:
            runs.append(drawn(call, body))
        except InvalidField as error:
            raise error.within(f"runs[{index}]") from None
    refs = await call.services.specs.intern_batch(call.tenant.id, [run.spec for run in runs])
    return await _submitted(call, [run.under(ref) for run, ref in zip(runs, refs, strict=True)], _all)


async def run_job(call: Call) -> Reply:
    row = await call.services.control.read(call.tenant.id, job_id(call))
    if row.head is not None and not row.parents:
        asked = Asked(call.tenant.id, call.key, call.fingerprint)
        return Reply(await call.services.graphs.start(await _by_hand(call, row), asked))
    return await _submitted(call, [await _by_hand(call, row)], _one)


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


async def _submitted(call: Call, runs: Sequence[NewRun], told: Callable[[Sequence[int]], Any]) -> Reply:
    """Hand runs in and say what is `told` of their ids; to a repeated idempotency key, what was said the first time."""

    def answer(ids: Sequence[int]) -> bytes:
        return msgspec.json.encode(told(ids))

    key = None if call.key is None else Key(call.key, call.tenant.id, call.fingerprint, answer)
    accepted = await call.services.submitter.submit(runs, key)
    return Reply(accepted.repeated or told(accepted.ids))


def _one(ids: Sequence[int]) -> Accepted:
    return Accepted(encode("run", ids[0]))


def _all(ids: Sequence[int]) -> AcceptedBatch:
    return AcceptedBatch([encode("run", number) for number in ids])


OPERATIONS = (
    Operation(
        name="createRun",
        method="POST",
        path="/v1/runs",
        scope="runs:write",
        summary="Run something without a definition, now or later",
        handler=create_run,
        is_submission=True,
        body=RunBody,
        result=Accepted,
        status=201,
        keeps_first_answer=True,
    ),
    Operation(
        name="createRuns",
        method="POST",
        path="/v1/runs:batch",
        scope="runs:write",
        summary="Hand in up to 10,000 runs, accepted all or none",
        handler=create_runs,
        is_submission=True,
        body=RunBatch,
        costs=lambda body: len(body.runs),
        result=AcceptedBatch,
        status=201,
        keeps_first_answer=True,
        largest_body=LARGE,
    ),
    Operation(
        name="runJob",
        method="POST",
        path="/v1/jobs/{job}:run",
        scope="runs:write",
        summary="Run a job now, or at another time, besides its schedule; that of a graph's root runs the graph",
        handler=run_job,
        is_submission=True,
        is_by_hand=True,
        body=RunByHand,
        body_is_optional=True,
        result=Accepted,
        status=201,
        keeps_first_answer=True,
    ),
)
