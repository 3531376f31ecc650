"""How an attempt ended: what its answer, or its end before it could give one, means for its run."""

import asyncio
from typing import NamedTuple

import msgspec

from foliot.domain.errorclass import TIMEOUT, classes_of
from foliot.domain.outcome import Ending, Failure, Outcome, Snoozed, judge
from foliot.kit.chance import Chance
from foliot.worker.executor import Assignment


class Stop(NamedTuple):
    """Why a handler was told to end."""

    ending: Ending
    why: str = ""

    @property
    def reason(self) -> str:
        """The same for people."""
        return self.why or "its time is up"


def not_done(assignment: Assignment, answer: Failure | Snoozed, stopped: Stop | None, chance: Chance) -> Outcome:
    """The handler came to its end and says that the run has not: it failed, or is to come back later."""
    # Told to stop, a handler may well come to its end by an error of its own: that is not why it ended.
    if stopped is not None:
        return interrupted(assignment, stopped, chance)
    match answer:
        case Failure(ending=Ending.LOST | Ending.RELEASED) if assignment.spec.is_at_most_once:
            return Outcome.unknown(f"begun, and {_storable(answer.error)}")
        case Failure():
            return _judge(assignment, answer, chance)
        case Snoozed() if assignment.spec.is_at_most_once:
            said = "asked to be called again, and is delivered at most once"
            return _judge(assignment, Failure(said, classes=("Snooze",)), chance)
        case Snoozed(delay=delay, reason=reason):
            return Outcome.snoozed(delay, _storable(reason))


def interrupted(assignment: Assignment, stopped: Stop | None, chance: Chance, said: str = "") -> Outcome:
    """The handler was cancelled: by its worker if that has `stopped` it, else by its own hand; `said` it last."""
    match stopped:
        case Stop(ending=Ending.TIMED_OUT):
            limit = assignment.spec.timeout.total_seconds()
            error = f"timed out after {limit:g} s" + (f"\n{said}" if said else "")
            late = Failure(error, ending=Ending.TIMED_OUT, classes=(TIMEOUT,))
            return _judge(assignment, late, chance)
        case Stop(ending=Ending.CANCELLED):
            return Outcome.cancelled()
        case None:
            classes = classes_of(asyncio.CancelledError)
            return _judge(assignment, Failure("the handler cancelled itself", classes=classes), chance)
        case _ if assignment.spec.is_at_most_once:
            return Outcome.unknown(f"stopped before it ended: {stopped.why}")
        case _:
            return Outcome.released()


def _judge(assignment: Assignment, failure: Failure, chance: Chance) -> Outcome:
    run, spec = assignment.run, assignment.spec
    classes = tuple(map(_storable, failure.classes))
    return judge(
        msgspec.structs.replace(
            failure,
            error=_storable(failure.error),
            classes=classes,
            permanent=failure.permanent or spec.is_at_most_once,
        ),
        failures=run.failures + 1,
        max_retries=spec.max_retries,
        backoff=spec.backoff,
        chance=chance(),
        rules=spec.rules,
    )


def _storable(text: str) -> str:
    """The text as the database can keep it: PostgreSQL has no NUL in text, UTF-8 no half surrogate pairs."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
