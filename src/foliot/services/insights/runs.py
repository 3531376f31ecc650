"""Runs as people see them, with their attempts and what happened to them."""

import msgspec

from foliot.domain.ids import encode, instant_of
from foliot.domain.outcome import Ending
from foliot.domain.passage import Step
from foliot.domain.spec import shown
from foliot.domain.states import STATUS_OF, State
from foliot.services.insights.waiting import blocked_by, waiting_for
from foliot.services.insights.words import concurrency_of, delivery_word
from foliot.store.fleet import STOPPED_WITHIN
from foliot.store.reading import AttemptRow, RunRow
from foliot.store.reports import Said
from foliot.wire.run_views import AttemptView, LateResult, ProgressView, RunView, TransitionView


def run_view(row: RunRow, said: Said | None = None) -> RunView:
    asked, state = row.cancel_asked, State(row.state)
    return RunView(
        run_id=encode("run", row.id),
        job_id=_job_id(row.job),
        status=STATUS_OF[state],
        state=state.word,
        handler=shown(row.spec.handler, row.target),
        queue=row.spec.queue,
        requires=list(row.spec.labels) or msgspec.UNSET,
        priority=row.spec.priority.name.lower(),
        delivery=delivery_word(row.spec),
        concurrency=concurrency_of(row.spec),
        scheduled_at=row.scheduled_at,
        due_at=row.due_at,
        created_at=instant_of(row.id),
        started_at=row.started_at,
        finished_at=row.finished_at,
        attempts=row.attempt + (state is State.RUNNING),
        error_message=row.error,
        error_class=row.error_class,
        worker_id=_worker_id(row.worker),
        waiting_for=waiting_for(row),
        blocked_by=blocked_by(row) or msgspec.UNSET,
        complete_by=row.until or msgspec.UNSET,
        cancel_requested_at=asked,
        stops_by=None if asked is None else asked + STOPPED_WITHIN,
        progress=None if said is None else ProgressView(*said),
        payload=msgspec.UNSET if row.payload is None else msgspec.Raw(row.payload),
        result=msgspec.UNSET if row.result is None else msgspec.Raw(row.result),
    )


def attempt_view(row: AttemptRow, said: Said | None = None) -> AttemptView:
    run = encode("run", row.run)
    return AttemptView(
        execution_id=f"exe_{run.removeprefix('run_')}_{row.fence}",
        run_id=run,
        job_id=_job_id(row.job),
        attempt=row.attempt,
        status="running" if row.ending < 0 else Ending(row.ending).word,
        scheduled_at=row.scheduled_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        error_message=row.error,
        error_class=row.error_class,
        worker_id=_worker_id(row.worker),
        fence=row.fence,
        late_result=_late_result(row),
        progress=None if said is None else ProgressView(*said),
    )


def transition_view(step: Step) -> TransitionView:
    return TransitionView(
        at=step.at,
        event=step.event,
        state=step.state.word,
        attempt=step.attempt,
        worker_id=_worker_id(step.worker),
        error_message=step.error,
    )


def _late_result(row: AttemptRow) -> LateResult | None:
    if row.late_ending is None or row.late_at is None:
        return None
    return LateResult(status=Ending(row.late_ending).word, error_message=row.late_error, recorded_at=row.late_at)


def _job_id(job: int | None) -> str | None:
    return None if job is None else encode("job", job)


def _worker_id(worker: int | None) -> str | None:
    return None if worker is None else encode("wrk", worker)
