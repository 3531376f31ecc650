"""Runs and their endings as the gateway tells and is told of them: in columns, with ids for people."""

from collections.abc import Iterable

import msgspec

from foliot.domain.ids import decode, decode_all, encode
from foliot.store.dispatch import Claimed, Settlement
from foliot.store.reports import Report
from foliot.wire.reports import Told, ToldProgress
from foliot.wire.work import Ended, RunColumns, RunRef, Succeeded


def claimed(runs: RunColumns) -> Iterable[Claimed]:
    """The runs that an answer tells of."""
    jobs = {job: decode("job", job) for job in {*runs.job_id} if job is not None}
    return map(
        Claimed,
        runs.fence,
        runs.position,
        decode_all("run", runs.run_id),
        [0] * len(runs.fence),  # ranks are the gateway's business
        runs.tenant,
        runs.spec,
        [None if job is None else jobs[job] for job in runs.job_id],
        runs.attempt,
        runs.deaths,
        runs.scheduled_at,
        [None if (target := bytes(raw)) == b"null" else target for raw in runs.target],
        [bytes(payload) for payload in runs.payload],
        runs.forgiven,
    )


def in_columns(successes: Iterable[Settlement]) -> list[Succeeded]:
    """Successes, claim by claim."""
    by_fence: dict[int, Succeeded] = {}
    for each in successes:
        run, at = each.run, each.started_at
        part = by_fence.get(run.fence)
        if part is None:
            part = by_fence[run.fence] = Succeeded(run.fence, [], [], [])
        part.run_id.append(encode("run", run.id))
        part.position.append(run.position)
        part.started_at.append(at or run.scheduled_at)
    return list(by_fence.values())


def in_full(settlement: Settlement) -> Ended:
    run = settlement.run
    return Ended(
        run_id=encode("run", run.id),
        fence=run.fence,
        position=run.position,
        tenant=run.tenant,
        job_id=None if run.job is None else encode("job", run.job),
        attempt=run.attempt,
        scheduled_at=run.scheduled_at,
        started_at=settlement.started_at,
        outcome=settlement.outcome,
    )


def told_of(report: Report) -> Told:
    said = report.progress
    progress = None if said is None else ToldProgress(report.at, said.fraction, said.done, said.total, said.message)
    checkpoint = msgspec.UNSET if report.state is None else msgspec.Raw(report.state)
    return Told(encode("run", report.run), report.fence, progress, checkpoint)


def key(ref: RunRef) -> tuple[int, int]:
    """As (run, fence)."""
    return decode("run", ref.run_id), ref.fence
