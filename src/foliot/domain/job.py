"""What a job is: the definition that its owner wrote, made whole and checked."""

from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any, Final

import msgspec

from foliot.domain.misfire import USUAL, CatchUp
from foliot.domain.schedule import Recurrence
from foliot.domain.spec import Spec

LONGEST_NAME: Final = 200
MOST_LABELS: Final = 64


class Kind(IntEnum):
    """What makes a job run. The numbers are stored."""

    ON_DEMAND = 0
    ONE_TIME = 1
    RECURRING = 2

    @property
    def word(self) -> str:
        return self.name.lower()


class Gate(IntEnum):
    """Whether a job may run at all. The numbers are stored."""

    OPEN = 0
    PAUSED = 1
    CANCELLED = 2


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A definition ready to be stored: every default filled in, every field checked."""

    name: str
    key: str | None
    spec: Spec
    payload: bytes
    labels: dict[str, str]
    exclusive: bool
    """Whether an occurrence is skipped while the previous run is still going (overlap: skip)."""
    timing: dict[str, Any]
    """The schedule in the owner's own words."""
    recurrence: Recurrence | None = None
    run_at: datetime | None = None
    """The instant of a one-time job."""
    not_before: datetime | None = None
    ends_at: datetime | None = None
    max_runs: int | None = None
    """How many runs the schedule may make of it, since this number was set."""
    catch_up: CatchUp = USUAL
    jitter: timedelta = timedelta()
    calendar: int | None = None
    """The tenant's calendar that the recurrence follows."""

    @property
    def kind(self) -> Kind:
        if self.recurrence is not None:
            return Kind.RECURRING
        return Kind.ON_DEMAND if self.run_at is None else Kind.ONE_TIME
