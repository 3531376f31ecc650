"""How an attempt ended: what its answer, or its end before it could give one, means for its run."""

import asyncio
from typing import NamedTuple

from foliot.domain.errorclass import TIMEOUT, classes_of
from foliot.domain.outcome import Answer, Ending, Entrusted, Failure, Outcome, Returned
from foliot.domain.verdict import outcome_of
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


def ended(assignment: Assignment, answer: Answer, stopped: Stop | None, chance: Chance) -> Outcome:
    """The handler came to its end, or goes on outside, and said so."""
    # Told to stop, a handler may well come to its end by an error of its own: that is not why it ended.
    if stopped is not None and not _stands(answer, stopped):
        return interrupted(assignment, stopped, chance)
    return outcome_of(answer, assignment.spec, assignment.run.failures, chance())


def _stands(answer: Answer, stopped: Stop) -> bool:
    """What is done is done; and what goes on outside need not be handed back because its worker has to end."""
    match answer:
        case None | Returned():
            return True
        case Entrusted():
            return stopped.ending is Ending.RELEASED
        case _:
            return False


def interrupted(assignment: Assignment, stopped: Stop | None, chance: Chance, said: str = "") -> Outcome:
    """The handler was cancelled: by its worker if that has `stopped` it, else by its own hand; `said` it last."""
    match stopped:
        case Stop(ending=Ending.TIMED_OUT):
            limit = assignment.spec.timeout.total_seconds()
            error = f"timed out after {limit:g} s" + (f"\n{said}" if said else "")
            late = Failure(error, ending=Ending.TIMED_OUT, classes=(TIMEOUT,))
            return outcome_of(late, assignment.spec, assignment.run.failures, chance())
        case Stop(ending=Ending.CANCELLED):
            return Outcome.cancelled()
        case None:
            classes = classes_of(asyncio.CancelledError)
            failure = Failure("the handler cancelled itself", classes=classes)
            return outcome_of(failure, assignment.spec, assignment.run.failures, chance())
        case _ if assignment.spec.is_at_most_once:
            return Outcome.unknown(f"stopped before it ended: {stopped.why}")
        case _:
            return Outcome.released()
