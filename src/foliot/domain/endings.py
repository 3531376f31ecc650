"""How a run that is over came to its end, told by the gate at which it did."""

from datetime import datetime
from typing import Final

from foliot.domain.gates import Code, Gate, clock_text, closed, count_text
from foliot.domain.states import State

QUARANTINED: Final = "quarantined"
"""The class of error of a run that killed its own process too often."""
_LOST: Final = "lost"
_REASONS: Final = (
    ("the job was paused", Code.PAUSE),
    ("another run waits already", Code.OVERLAP),
    ("the previous run", Code.OVERLAP),
    ("the job has had all its runs", Code.WINDOW),
)
"""How the reasons for a skip begin that stand in history. All others speak of parents."""


def ended_gate(
    state: State, *, error: str | None, error_class: str | None, at: datetime, attempts: int, now: datetime
) -> Gate:
    """The gate that a finished run does not pass any more, and what can be done about it."""
    when, because = clock_text(at, now), _because(error)
    tried = {"attempts": attempts}
    match state:
        case State.SUCCEEDED:
            return closed(
                Code.FINISHED, f"It succeeded at {when}: nothing more happens to it.", numbers=tried, since=at
            )
        case State.DISCARDED:
            says = f"It failed for good and was discarded at {when}{because}."
            return closed(Code.FINISHED, says, "Submit it anew to run it again.", numbers=tried, since=at)
        case State.DEAD:
            return _dead(error_class, f"{when}{because}", attempts, at)
        case State.UNKNOWN:
            says = f"Its worker was lost at {when}, and it is delivered at most once: nobody knows how it ended."
            hint = "Find out what its handler did, and submit it anew if it is to run again."
            return closed(Code.DELIVERY, says, hint, numbers=tried, since=at)
        case State.CANCELLED:
            return closed(Code.CANCEL, f"It was cancelled at {when}{because}.", "Submit it anew to run it.", since=at)
        case _:
            return _never_ran(state, when, error, at)


def _never_ran(state: State, when: str, error: str | None, at: datetime) -> Gate:
    is_missed = state is State.MISSED
    code = Code.WINDOW if is_missed else _gate_of(error or "")
    says = "Its time passed while nobody could run it" if is_missed else f"It was skipped at {when}"
    return closed(code, f"{says}{_because(error)}.", "`foliot job backfill` runs such fire times.", since=at)


def _dead(error_class: str | None, how: str, attempts: int, at: datetime) -> Gate:
    numbers = {"attempts": attempts}
    if error_class in {QUARANTINED, _LOST}:
        says = f"It is in quarantine since {how}."
        hint = "Mend what kills its process, then replay it: `foliot run retry`."
        return closed(Code.QUARANTINE, says, hint, numbers=numbers, since=at)
    says = f"It has used its attempts ({count_text(attempts, 'attempt')}) and died at {how}."
    hint = "Mend the cause, then replay it with `foliot run retry`, or give it up with `foliot dead discard`."
    return closed(Code.RETRIES, says, hint, numbers=numbers, since=at)


def _gate_of(reason: str) -> Code:
    return next((code for start, code in _REASONS if reason.startswith(start)), Code.PARENTS)


def _because(error: str | None) -> str:
    """The last line of a traceback says what happened."""
    lines = (error or "").strip().splitlines()
    return f": {lines[-1].strip()[:300].rstrip('.')}" if lines else ""
