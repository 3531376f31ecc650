"""Whether an instant that did not run had a reason that the rules know."""

from typing import TYPE_CHECKING

from chaos.check.case import Case
from chaos.check.facts import Run
from chaos.check.halts import FIRES, done_by
from chaos.oracle import MICRO
from chaos.records import Outcome

if TYPE_CHECKING:
    from chaos.check.occurrences import Occurrences

_SKIPS = frozenset({"skip", "queueOne"})
_CLOSES = frozenset({"pauseJob", "cancelJob", "deleteJob"})


def missed_wrongly(case: Case, found: "Occurrences", instant: int) -> str | None:
    """An instant is missed only when nobody could fire it within its grace, and of several the latest is not."""
    at, bounds = instant / MICRO, case.bounds
    if done_by(case.faults, bounds, at, FIRES) <= at + bounds.grace:
        return "is recorded as missed, and there was a scheduler that could fire it in time"
    opened = found.opened(instant)
    if opened is not None and opened - at < bounds.grace - bounds.clock:
        return f"is recorded as missed, and came up after {opened - at:.3f} s, which is in time"
    if _is_latest(case, found, instant):
        return "is the latest of those that were missed, and was not caught up"
    return None


def _is_latest(case: Case, found: "Occurrences", instant: int) -> bool:
    """Whether a job that wants the latest of those that are late was denied it; S15 asks what became of other modes."""
    at, bounds = instant / MICRO, case.bounds
    following, owner = found.after(instant), found.sole(instant)
    if owner is None or owner.catch_up != "latest":
        return False
    if following is None or found.missed(following) or found.owners[following] != owner:
        return False
    if found.disturbed(instant, following, bounds.uncertainty) or found.budget.may_be_used_up(case, instant):
        return False
    runs = found.records.get(following)
    made = None if not runs else runs[0].moment("createdAt")
    # The latest of those that are late is fired: so what follows a miss was itself handled late.
    return made is not None and made - following / MICRO < bounds.grace - 1 and made - at < owner.window / MICRO


def skipped_wrongly(case: Case, found: "Occurrences", run: Run) -> str | None:
    """An instant is skipped when the run before was still going, or because the gate closed in the meantime."""
    instant = run.instant or 0
    at, bounds = instant / MICRO, case.bounds
    decided = run.moment("finishedAt") or at
    if any(
        each.kind in _CLOSES and each.outcome is not Outcome.FAIL and each.invoked <= decided + bounds.uncertainty
        for each in found.job.operations
        if each.outcome is Outcome.UNKNOWN or each.completed >= at - bounds.uncertainty
    ):
        return None
    if found.budget.may_be_used_up(case, instant, decided):
        return None
    if all(each.overlap not in _SKIPS for each in found.job.definitions):
        return "is recorded as skipped, and overlap is allowed"
    if found.going(decided + bounds.clock) < max(at, decided - 1) - bounds.clock:
        return "is recorded as skipped, and no other run was going"
    if all(each.overlap == "queueOne" for each in found.job.definitions) and found.there(decided, bounds.straggler) < 2:
        return "is recorded as skipped, and no other run was waiting"
    return None
