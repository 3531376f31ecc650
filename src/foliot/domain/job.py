"""What a job is: the definition that its owner wrote, made whole and checked."""

from datetime import datetime, timedelta
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any, Final

import msgspec

from foliot.domain.graph import Need
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


class Overlap(StrEnum):
    """What becomes of a fire time while a scheduled run of the job from before is still there."""

    SKIP = "skip"
    QUEUE_ONE = "queueOne"  # one waits; further ones are skipped
    QUEUE = "queue"  # all wait, in order
    ALLOW = "allow"
    CANCEL_PREVIOUS = "cancelPrevious"

    @property
    def is_exclusive(self) -> bool:
        """Kept by the unique index on a job's occurrences alone."""
        return self is Overlap.SKIP

    @property
    def number(self) -> int:
        """As stored beside `exclusive`; 0 if that says it all."""
        return _LINED_UP.get(self, 0)

    @classmethod
    def stored(cls, number: int, *, exclusive: bool) -> "Overlap":
        usual = cls.SKIP if exclusive else cls.ALLOW
        return next((each for each, stored in _LINED_UP.items() if stored == number), usual)


_LINED_UP: Final = MappingProxyType({Overlap.QUEUE_ONE: 1, Overlap.QUEUE: 2, Overlap.CANCEL_PREVIOUS: 3})


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A definition ready to be stored: every default filled in, every field checked."""

    name: str
    key: str | None
    spec: Spec
    payload: bytes
    labels: dict[str, str]
    timing: dict[str, Any]
    """The schedule in the owner's own words."""
    overlap: Overlap = Overlap.SKIP
    limit_key: int | None = None
    """Which of the runs under the spec's limit those with this payload count together with."""
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
    depends_on: tuple[Need, ...] = ()
    """What it waits for."""
    follows: Kind | None = None
    """What makes it run if it has parents: that is the graph's to say, not its own."""

    @property
    def kind(self) -> Kind:
        return self.own_kind if self.follows is None else self.follows

    @property
    def own_kind(self) -> Kind:
        """What its own schedule makes of it."""
        if self.recurrence is not None:
            return Kind.RECURRING
        return Kind.ON_DEMAND if self.run_at is None else Kind.ONE_TIME
