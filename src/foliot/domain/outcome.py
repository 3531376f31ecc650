"""How an attempt can end, and what each ending does to its run."""

from datetime import timedelta
from enum import IntEnum
from typing import Final, Self

import msgspec

from foliot.domain.retry import Again, Backoff, Stop, decide
from foliot.domain.states import TRANSITIONS, Event, State

LONGEST_ERROR: Final = 8_192
"""Characters of an error that are kept; the end of a traceback says more than its beginning."""


class Ending(IntEnum):
    """How one attempt ended. The numbers are stored, so they never change meaning; 0 means no attempt was made."""

    NONE = 0
    COMPLETED = 1
    FAILED = 2
    TIMED_OUT = 3
    CANCELLED = 4
    LOST = 5
    UNKNOWN = 6
    SNOOZED = 7
    RELEASED = 8

    @property
    def word(self) -> str:
        return self.name.lower()

    @property
    def is_result(self) -> bool:
        """Whether it tells how the handler itself came to an end."""
        return self not in {Ending.NONE, Ending.LOST, Ending.UNKNOWN, Ending.RELEASED}


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What a worker says of one attempt: its ending and what follows for the run."""

    ending: Ending
    event: Event
    error: str | None = None
    delay: timedelta | None = None

    @property
    def state(self) -> State:
        """Where the run stands afterwards."""
        return TRANSITIONS[State.RUNNING, self.event]

    @classmethod
    def succeeded(cls) -> Self:
        return cls(Ending.COMPLETED, Event.SUCCEEDED)

    @classmethod
    def released(cls) -> Self:
        """Handed back untouched: the worker is stopping."""
        return cls(Ending.RELEASED, Event.RELEASED)

    @classmethod
    def cancelled(cls) -> Self:
        return cls(Ending.CANCELLED, Event.CANCELLED)

    @classmethod
    def unknown(cls, error: str) -> Self:
        """Begun, and nobody can tell how far it came. Not tried again: it is to be delivered at most once."""
        return cls(Ending.UNKNOWN, Event.VANISHED, error)

    @classmethod
    def again(cls, ending: Ending, error: str, delay: timedelta) -> Self:
        return cls(ending, Event.RETRIED, error[-LONGEST_ERROR:], delay)

    @classmethod
    def dead(cls, ending: Ending, error: str) -> Self:
        return cls(ending, Event.DIED, error[-LONGEST_ERROR:])


SUCCEEDED: Final = Outcome.succeeded()


class Failure(msgspec.Struct, frozen=True):
    """What went wrong in one attempt, before anybody has decided what to do about it."""

    error: str
    ending: Ending = Ending.FAILED
    permanent: bool = False
    retry_after: timedelta | None = None


def judge(failure: Failure, *, failures: int, max_retries: int, backoff: Backoff, chance: float) -> Outcome:
    """Retry or dead letter: `failures` counts the failed attempts of the run, this one included."""
    verdict = decide(
        failures=failures,
        max_retries=max_retries,
        backoff=backoff,
        permanent=failure.permanent,
        retry_after=failure.retry_after,
        chance=chance,
    )
    match verdict:
        case Again(delay=delay):
            return Outcome.again(failure.ending, failure.error, delay)
        case Stop():
            return Outcome.dead(failure.ending, failure.error)
