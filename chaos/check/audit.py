"""S25: the audit trail is one unbroken chain per tenant, tells of all that it has to (told.py), and of nothing else.

The chain is computed here once more, and not by Foliot's own code.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Final

from chaos.check.case import Case
from chaos.check.finding import Finding
from chaos.check.told import denied_untold, untold
from chaos.records import Operation, Outcome, Trail

FIELDS: Final = (
    "id", "tenant", "at", "actor", "key", "ip", "request", "action", "subject", "outcome", "before", "after",
)  # fmt: skip
"""What an entry says; where it stands in the chain is told by its position and its hash."""
NOTHING: Final = "00" * 32


def audit_wrong(case: Case) -> Iterator[Finding]:
    trails = case.evidence.dump.audit
    if not trails:
        return  # it was not read
    for tenant, trail in trails.items():
        yield from broken(tenant, trail)
    entries = [each for trail in trails.values() for each in trail.entries]
    yield from untold(case, entries)
    yield from denied_untold(case, entries)
    yield from _invented(case, [each for each in entries if each["outcome"] == "done"])


def broken(tenant: str, trail: Trail) -> Iterator[Finding]:
    """Everything has its place, follows from what stands before it, and the head of the chain is its last entry."""
    sealed = sorted((each for each in trail.entries if each["position"] is not None), key=lambda each: each["position"])
    if waiting := len(trail.entries) - len(sealed):
        yield _about("unsealed", f"{waiting} entries of {tenant!r} were never sealed")
    place, before = 0, NOTHING
    for each in sealed:
        if each["position"] != place + 1:
            yield _about("gap", f"after position {place} of {tenant!r} comes {each['position']}")
            return
        place, before = place + 1, link(before, each)
        if each["hash"] != before:
            yield _about("broken", f"the entry at position {place} of {tenant!r} does not follow from those before it")
            return
    if (place, before) != (trail.position, trail.hash or NOTHING):
        yield _about(
            "head", f"the chain of {tenant!r} says that it has {trail.position} entries, and {place} are there"
        )


def link(before: str, entry: dict[str, Any]) -> str:
    """The hash that stands for an entry and all before it."""
    content = json.dumps(
        {name: entry[name] for name in FIELDS}, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return hashlib.sha256(bytes.fromhex(before) + content.encode()).hexdigest()


def _invented(case: Case, done: list[dict[str, Any]]) -> Iterator[Finding]:
    refused = {each.request: each for each in case.evidence.operations if each.outcome is Outcome.FAIL}
    for entry in done:
        if (each := refused.get(entry["request"])) is not None:
            yield _about("invented", f"tells of {each.kind} (operation {each.number}), which was refused", each)


def told(case: Case) -> dict[str, int]:
    entries = [each for trail in case.evidence.dump.audit.values() for each in trail.entries]
    return {
        "audit entries in their chains": sum(each["position"] is not None for each in entries),
        "denied calls in the audit trail": sum(each["outcome"] == "denied" for each in entries),
    }


def _about(rule: str, message: str, each: Operation | None = None) -> Finding:
    if each is None:
        return Finding(check="S25", rule=rule, message=message)
    return Finding(check="S25", rule=rule, message=message, job=each.job, at=each.completed)
