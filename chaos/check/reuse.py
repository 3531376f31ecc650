"""S33: an idempotency key stands for one request, and whoever uses it for another is told so."""

from collections.abc import Iterator

from chaos.check.case import Case
from chaos.check.finding import Finding
from chaos.records import Operation, Outcome

REFUSED = 422


def reused_keys(case: Case) -> Iterator[Finding]:
    for each in others(case):
        if each.outcome is Outcome.OK:
            yield _about(each, "taken", "was taken under a key that stands for another request")
        elif each.outcome is Outcome.FAIL and each.status not in {0, REFUSED}:
            yield _about(each, "misled", f"was answered {each.status}, which does not say that its key is another's")


def others(case: Case) -> Iterator[Operation]:
    """Calls under a key that had been used for another request, and had been answered."""
    for call in case.calls:
        if len(call.operations) > 1 and (first := call.answered) is not None:
            for each in call.operations:
                if each.invoked >= first.completed and (each.kind, each.body) != (first.kind, first.body):
                    yield each


def reuses(case: Case) -> dict[str, int]:
    return {"keys refused for another request": sum(each.status == REFUSED for each in others(case))}


def _about(each: Operation, rule: str, message: str) -> Finding:
    told = f"{each.kind} (operation {each.number}) {message}: {each.key!r}"
    return Finding(check="S33", rule=rule, message=told, job=each.job, at=each.invoked)
