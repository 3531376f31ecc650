"""When the schedules that functions declare fire, on the clock of a test."""

from datetime import datetime, timedelta

import msgspec

from foliot.domain.job import Draft, Overlap
from foliot.domain.schedule import next_fire
from foliot.sdk.calls import put_job
from foliot.sdk.worker import Task
from foliot.testing.runs import InlineRun
from foliot.wire.calendars import UnknownCalendars
from foliot.wire.jobs import JobBody, draft_of


class Fires:
    """The fire times of one function, one after the other."""

    def __init__(self, job: int, task: Task, draft: Draft, now: datetime) -> None:
        self.job, self.task, self.draft = job, task, draft
        self.last: InlineRun | None = None
        self._fired = 0
        # `not_before` may be a fire time itself, and next_fire looks strictly after.
        self._after = now if draft.not_before is None else max(now, draft.not_before - timedelta(microseconds=1))
        self.next = self._following()

    @property
    def is_skipped(self) -> bool:
        """Whether a run that is not over keeps the next one from being made."""
        return self.draft.overlap is Overlap.SKIP and self.last is not None and not self.last.is_over

    def fired(self, run: InlineRun | None) -> None:
        """The next one has fired; `run` was made, unless it was skipped."""
        if run is not None:
            self.last = run
            self._fired += 1
        if self.next is not None:
            self._after = self.next
        self.next = self._following()

    def _following(self) -> datetime | None:
        draft = self.draft
        if draft.recurrence is None or (draft.max_runs is not None and self._fired >= draft.max_runs):
            return None
        following = next_fire(draft.recurrence, self._after)
        return None if following is None or (draft.ends_at is not None and following > draft.ends_at) else following


def fires_of(job: int, task: Task, now: datetime) -> Fires | None:
    """Of a function that declares a schedule; none of one that follows a calendar, which only Foliot knows."""
    body = put_job(task.key, task.name, task.name, task.fields).body or b""
    try:
        return Fires(job, task, draft_of(msgspec.json.decode(body, type=JobBody), tenant=0), now)
    except UnknownCalendars:
        return None
