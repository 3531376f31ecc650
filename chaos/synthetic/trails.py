"""A pretended audit trail: an entry for every call that changed something, in a chain per tenant."""

import json
from collections.abc import Iterable
from typing import Any

from chaos.check.audit import FIELDS, NOTHING, link
from chaos.check.told import ALWAYS, BECAME, DENIED, LETTERS
from chaos.records import Operation, Outcome, Trail

_TOLD = ALWAYS | LETTERS | BECAME.keys() | {"cancelRun"}


def trails_of(operations: Iterable[Operation]) -> dict[str, Trail]:
    """What a product that tells everything would tell of these calls."""
    told: dict[str, Trail] = {}
    for number, each in enumerate(sorted(operations, key=lambda each: each.completed), 1):
        trail = told.setdefault(each.tenant, Trail([], 0, NOTHING))
        if each.outcome is Outcome.OK and each.kind in _TOLD:
            trail.entries.append(_entry(number, each, "done"))
        elif each.status in DENIED:
            trail.entries.append(_entry(number, each, "denied"))
    for trail in told.values():
        chain(trail)
    return told


def chain(trail: Trail) -> None:
    """Give every entry its place, in the order in which they stand."""
    trail.position, trail.hash = 0, NOTHING
    for entry in trail.entries:
        trail.position, trail.hash = trail.position + 1, link(trail.hash, entry)
        entry |= {"position": trail.position, "hash": trail.hash}


def _entry(number: int, each: Operation, outcome: str) -> dict[str, Any]:
    name, value = BECAME.get(each.kind, ("version", 1))
    said = {
        "id": number,
        "tenant": 1,
        "at": round(each.completed * 1_000_000),
        "actor": each.tenant,
        "key": each.by,
        "request": each.request,
        "action": each.kind,
        "subject": each.job or each.thing,
        "outcome": outcome,
        "after": json.dumps({"attempts": 1} if outcome == "denied" else {name: value}),
    }
    return dict.fromkeys(FIELDS) | said
