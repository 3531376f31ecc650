"""How an attempt can end, and what each ending does to its run."""

from collections.abc import Sequence
from datetime import timedelta
from enum import IntEnum
from typing import Final, Self

import msgspec

from foliot.domain.errorclass import RetryRule, first_match
from foliot.domain.retry import Again, Backoff, Stop, decide, delay
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
    ENTRUSTED = 9
    """No ending, and never stored: the worker's part is over, and the attempt goes on outside."""

    @property
    def word(self) -> str:
        return self.name.lower()

    @property
    def is_result(self) -> bool:
        """Whether it tells how the handler itself came to an end."""
        return self not in {Ending.NONE, Ending.LOST, Ending.UNKNOWN, Ending.RELEASED, Ending.ENTRUSTED}


class Outcome(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What a worker says of one attempt: its ending and what follows for the run."""

    ending: Ending
    event: Event
    error: str | None = None
    delay: timedelta | None = None
    error_class: str | None = None
    result: bytes | None = None
    """What the handler returned, as JSON, if it is small enough to be kept (domain/result.py)."""

    @property
    def state(self) -> State:
        """Where the run stands afterwards."""
        return TRANSITIONS[State.RUNNING, self.event]

    @classmethod
    def succeeded(cls, result: bytes | None = None) -> Self:
        return cls(Ending.COMPLETED, Event.SUCCEEDED, result=result)

    @classmethod
    def entrusted(cls, rest: timedelta) -> Self:
        """The handler goes on by itself, and says later how it ended: within `rest`, or it has timed out."""
        return cls(Ending.ENTRUSTED, Event.ENTRUSTED, delay=rest)

    @classmethod
    def released(cls) -> Self:
        """Handed back untouched: the worker is stopping."""
        return cls(Ending.RELEASED, Event.RELEASED)

    @classmethod
    def cancelled(cls) -> Self:
        return cls(Ending.CANCELLED, Event.CANCELLED)

    @classmethod
    def snoozed(cls, delay: timedelta, reason: str = "") -> Self:
        """To come back later, by the handler's own wish: no attempt is spent."""
        return cls(Ending.SNOOZED, Event.SNOOZED, reason[-LONGEST_ERROR:] or None, delay)

    @classmethod
    def unknown(cls, error: str) -> Self:
        """Begun, and nobody can tell how far it came. Not tried again: it is to be delivered at most once."""
        return cls(Ending.UNKNOWN, Event.VANISHED, error)

    @classmethod
    def again(cls, ending: Ending, error: str, delay: timedelta, error_class: str | None = None) -> Self:
        return cls(ending, Event.RETRIED, error[-LONGEST_ERROR:], delay, error_class)

    @classmethod
    def dead(cls, ending: Ending, error: str, error_class: str | None = None) -> Self:
        return cls(ending, Event.DIED, error[-LONGEST_ERROR:], None, error_class)


SUCCEEDED: Final = Outcome.succeeded()


class Failure(msgspec.Struct, frozen=True):
    """What went wrong in one attempt, before anybody has decided what to do about it."""

    error: str
    ending: Ending = Ending.FAILED
    permanent: bool = False
    """Unless a rule speaks of it, trying again is no use."""
    retry_after: timedelta | None = None
    classes: tuple[str, ...] = ()
    """What kind of error it is, as rules name it; the first is kept for people."""


class Returned(msgspec.Struct, frozen=True):
    """Success, with a result that is small enough to be kept."""

    result: bytes


class Entrusted(msgspec.Struct, frozen=True):
    """The handler has taken the attempt over, and will say later how it ended."""

    rest: timedelta
    """What is left of its time-out."""


class Snoozed(msgspec.Struct, frozen=True):
    """The handler asks to be called again later; nothing went wrong."""

    delay: timedelta
    reason: str = ""


Answer = Failure | Snoozed | Returned | Entrusted | None
"""What an attempt came to, before anybody has decided what follows. None is success, and nothing to keep."""


def judge(
    failure: Failure,
    *,
    failures: int,
    max_retries: int,
    backoff: Backoff,
    chance: float,
    rules: Sequence[RetryRule] = (),
) -> Outcome:
    """Retry or dead letter: `failures` counts the failed attempts of the run, this one included.

    Of the rules the first that names the failure decides, also about what would be permanent without one. What was lost
    is tried again without using up a retry: how often, the store says, which knows how often it was.
    """
    kind = failure.classes[0] if failure.classes else None
    if failure.ending is Ending.RELEASED:
        return Outcome.released()
    if failure.ending is Ending.LOST:
        return Outcome.again(Ending.LOST, failure.error, delay(backoff, max(failures, 1), chance), kind)
    rule = first_match(rules, failure.classes) if rules else None
    verdict = decide(
        failures=failures,
        max_retries=max_retries if rule is None or rule.max_retries is None else rule.max_retries,
        backoff=backoff if rule is None or rule.backoff is None else rule.backoff,
        permanent=failure.permanent if rule is None else rule.never,
        retry_after=failure.retry_after,
        chance=chance,
    )
    match verdict:
        case Again(delay=wait):
            return Outcome.again(failure.ending, failure.error, wait, kind)
        case Stop():
            return Outcome.dead(failure.ending, failure.error, kind)
