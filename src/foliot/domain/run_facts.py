"""What is known of a run at one moment: the facts that its explanation is decided from."""

from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from foliot.domain.capacity import IN_LINE, Fleet, Line
from foliot.domain.job import Gate as JobGate
from foliot.domain.states import State


class Parent(NamedTuple):
    """A run that another waits for; dead if it has failed for good."""

    run: int
    dead: bool
    name: str | None


class JobStand(NamedTuple):
    id: int
    name: str
    gate: JobGate
    paused_at: datetime | None = None


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a run at one moment."""

    now: datetime
    run: int
    state: State
    scheduled_at: datetime
    due_at: datetime
    max_retries: int
    attempt: int = 0
    """Attempts that it has used."""
    job: JobStand | None = None
    error: str | None = None
    """How it ended, or what the attempt before said."""
    error_class: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    held_since: datetime | None = None
    worker: int | None = None
    mark: int = 0
    """As `domain.suspicion` has it."""
    crashes: int = 0
    at_most_once: bool = False
    cancel_asked: datetime | None = None
    stops_by: datetime | None = None
    outside_until: datetime | None = None
    waits_for_parents: bool = False
    parents: tuple[Parent, ...] = ()
    lines: tuple[Line, ...] = ()
    path: str | None = None
    fleet: Fleet | None = None
    """None of a run whose spec is still to be stored."""
    ahead: int | None = None
    """Of a run that is ready: how many stand before it."""
    rank: int | None = None
    """Of a run that is ready: where it stands in the order that workers take from, the lowest first."""
    takes: timedelta | None = None
    """How long attempts of its kind took lately."""
    schedulers: int = 0
    scheduler_seen: datetime | None = None

    @property
    def is_early(self) -> bool:
        """Whether it waits for its time; who stands in a line was let in, whatever a clock says that was set back."""
        waits = self.state is State.SCHEDULED or (self.state is State.BLOCKED and self.line is None)
        return waits and self.due_at > self.now

    @property
    def line(self) -> Line | None:
        """The one that it stands in."""
        return next((line for line in self.lines if line.seat == IN_LINE), None)

    @property
    def whose(self) -> str:
        return "its queue and handler without a job" if self.job is None else f"job {self.job.name!r}"
