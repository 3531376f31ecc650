"""What is known of a job at one moment: the facts that its explanation is decided from."""

from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from foliot.domain.capacity import Fleet, Line
from foliot.domain.jitter import place_in
from foliot.domain.job import Gate, Overlap
from foliot.domain.misfire import USUAL, CatchUp
from foliot.domain.schedule import Recurrence, next_fire


class Other(NamedTuple):
    """Another job of the graph."""

    id: int
    name: str


class Previous(NamedTuple):
    """The scheduled run from before that is still there."""

    run: int
    scheduled_at: datetime
    started_at: datetime | None


class JobFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a job at one moment. One-time jobs are explained by their run."""

    now: datetime
    job: int
    name: str
    gate: Gate
    fleet: Fleet
    paused_at: datetime | None = None
    recurrence: Recurrence | None = None
    next_at: datetime | None = None
    """The next instant of its schedule, whoever owns it; past if nobody has fired it."""
    after: datetime | None = None
    """The instants behind it are this definition's; none if it owns no instants to come."""
    until: datetime | None = None
    not_before: datetime | None = None
    ends_at: datetime | None = None
    max_runs: int | None = None
    runs_left: int | None = None
    catch_up: CatchUp = USUAL
    phase: timedelta = timedelta()
    calendar: str | None = None
    overlap: Overlap = Overlap.SKIP
    previous: Previous | None = None
    parents: tuple[Other, ...] = ()
    held_roots: tuple[Other, ...] = ()
    """Paused roots of its graph: while they are, it does not fire."""
    lines: tuple[Line, ...] = ()
    path: str | None = None
    schedulers: int = 0
    scheduler_seen: datetime | None = None
    clock_behind: timedelta = timedelta()

    @property
    def following(self) -> datetime | None:
        """Its next fire time, past if it is overdue; none if there is none."""
        if self.recurrence is None or self.after is None or self.next_at is None:
            return None
        fire = self.next_at if self.next_at > self.after else next_fire(self.recurrence, self.after)
        return None if fire is not None and self.until is not None and fire > self.until else fire

    @property
    def wait(self) -> timedelta:
        """How long after that it starts."""
        if not self.phase or self.recurrence is None or (fire := self.following) is None:
            return self.phase
        further = next_fire(self.recurrence, fire)
        return place_in(self.phase, None if further is None else further - fire)
