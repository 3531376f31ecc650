"""Operations as people see them: those that there are, and those that were only thought of."""

from typing import Final

import msgspec

from foliot.domain.backfill import Backfill, Choice, Order
from foliot.domain.ids import encode
from foliot.domain.job import Gate
from foliot.domain.letters import Sweep
from foliot.domain.operation import OperationKind, OperationState, Progress, estimated_end
from foliot.store.operations import OperationRow
from foliot.store.sweeps import Counted
from foliot.wire.operations import OperationProgress, OperationView, PlanView

_SHOWN: Final = 5
"""Instants at either end that a dry run shows."""


def operation_view(row: OperationRow) -> OperationView:
    unfinished = row.finished_at is None
    waits = unfinished and row.gate is Gate.PAUSED and row.state is not OperationState.CANCELLED
    return OperationView(
        operation_id=encode("op", row.id),
        kind=row.kind.word,
        name=row.name,
        job_id=None if row.job is None else encode("job", row.job),
        status=row.state.word,
        arguments=row.arguments,
        progress=_progress_view(row.progress),
        message="the job is paused: resume it to go on" if waits else row.reason,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        estimated_end_at=estimated_end(row.progress, row.started_at, row.now)
        if row.state is OperationState.RUNNING
        else None,
    )


def planned_view(job: int, asked: Backfill, choice: Choice) -> OperationView:
    """An operation that was only thought of."""
    in_order = choice.chosen if asked.order is Order.OLDEST else choice.chosen[::-1]
    nothing = Progress(total=choice.total, submitted=0, succeeded=0, failed=0, cancelled=0, skipped=choice.skipped)
    return OperationView(
        operation_id=None,
        kind=OperationKind.BACKFILL.word,
        name=asked.name,
        job_id=encode("job", job),
        status="planned",
        arguments=asked.arguments,
        progress=_progress_view(nothing),
        message="nothing was written: a dry run",
        created_at=None,
        started_at=None,
        finished_at=None,
        estimated_end_at=None,
        plan=PlanView(
            to_run=len(in_order),
            already_done=choice.done,
            under_way=choice.under_way,
            first=list(in_order[:_SHOWN]),
            last=list(in_order[-_SHOWN:]),
        ),
    )


def planned_sweep_view(asked: Sweep, counted: Counted) -> OperationView:
    refused = counted.refused if asked.kind is OperationKind.REPLAY else 0
    nothing = Progress(total=counted.total, submitted=0, succeeded=0, failed=0, cancelled=0, skipped=refused)
    deed = "replayed" if asked.kind is OperationKind.REPLAY else "discarded"
    return OperationView(
        operation_id=None,
        kind=asked.kind.word,
        name=asked.name,
        job_id=None if asked.selection.job is None else encode("job", asked.selection.job),
        status="planned",
        arguments=asked.arguments,
        progress=_progress_view(nothing),
        message=f"{counted.total - refused:,} dead letters would be {deed}; nothing was written: a dry run",
        created_at=None,
        started_at=None,
        finished_at=None,
        estimated_end_at=None,
    )


def _progress_view(progress: Progress) -> OperationProgress:
    return OperationProgress(**msgspec.structs.asdict(progress), running=progress.running)
