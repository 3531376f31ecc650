"""Work on many runs that is asked for once: what kinds there are, where one stands, and when it will be over."""

from datetime import datetime
from enum import IntEnum

import msgspec


class OperationKind(IntEnum):
    """What an operation does. The numbers are stored."""

    BACKFILL = 1
    REPLAY = 2  # of dead letters
    DISCARD = 3
    REENCRYPT = 4  # of what a tenant has stored

    @property
    def word(self) -> str:
        return self.name.lower()


class OperationState(IntEnum):
    """Where an operation stands. The numbers are stored."""

    PENDING = 0  # nothing handed out yet
    RUNNING = 1
    COMPLETED = 2  # everything ran and succeeded, or needed no run; of a discard: everything is discarded
    CANCELLED = 3  # hands out nothing more; finished once what runs has ended
    FAILED = 4  # everything was handed out, and some of it did not succeed

    @property
    def word(self) -> str:
        return self.name.lower()


STATUSES = {state.word: state for state in OperationState}


class Progress(msgspec.Struct, frozen=True):
    """How far an operation is: `submitted` = `running` + `succeeded` + `failed` + `cancelled`."""

    total: int
    submitted: int
    succeeded: int
    failed: int
    cancelled: int
    skipped: int

    @property
    def running(self) -> int:
        """Runs that are under way: ready, running, or waiting for their retry."""
        return self.submitted - self.ended

    @property
    def ended(self) -> int:
        return self.succeeded + self.failed + self.cancelled


def estimated_end(progress: Progress, started_at: datetime | None, now: datetime) -> datetime | None:
    """When all of it will have ended if it goes on as fast as so far; none while nothing has ended."""
    remaining = progress.total - progress.skipped - progress.ended
    if started_at is None or not progress.ended or remaining <= 0 or now <= started_at:
        return None
    try:
        return now + (now - started_at) / progress.ended * remaining
    except OverflowError:  # beyond the calendar
        return None
