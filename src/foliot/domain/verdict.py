"""What an attempt's answer means for its run, by the terms of its spec."""

import msgspec

from foliot.domain.outcome import SUCCEEDED, Answer, Ending, Entrusted, Failure, Outcome, Returned, Snoozed, judge
from foliot.domain.spec import Spec


def outcome_of(answer: Answer, spec: Spec, failures: int, chance: float) -> Outcome:
    """What follows for a run of this spec, of which `failures` attempts have failed before."""
    if isinstance(answer, Snoozed) and spec.is_at_most_once:
        answer = Failure("asked to be called again, and is delivered at most once", classes=("Snooze",))
    match answer:
        case None:
            return SUCCEEDED
        case Returned(result=result):
            return Outcome.succeeded(result)
        case Entrusted(rest=rest):
            return Outcome.entrusted(rest)
        case Failure(ending=Ending.LOST | Ending.RELEASED) if spec.is_at_most_once:
            return Outcome.unknown(f"begun, and {storable(answer.error)}")
        case Snoozed(delay=delay, reason=reason):
            return Outcome.snoozed(delay, storable(reason))
        case Failure():
            return _judged(answer, spec, failures, chance)


def _judged(failure: Failure, spec: Spec, failures: int, chance: float) -> Outcome:
    return judge(
        msgspec.structs.replace(
            failure,
            error=storable(failure.error),
            classes=tuple(map(storable, failure.classes)),
            permanent=failure.permanent or spec.is_at_most_once,
        ),
        failures=failures + 1,
        max_retries=spec.max_retries,
        backoff=spec.backoff,
        chance=chance,
        rules=spec.rules,
    )


def storable(text: str) -> str:
    """The text as the database can keep it: PostgreSQL has no NUL in text, UTF-8 no half surrogate pairs."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
