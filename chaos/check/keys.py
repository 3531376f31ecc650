"""S23: a key opens what it was made for, to its owner, until it is revoked or has expired, and nothing afterwards."""

import math
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from chaos.check.case import Case
from chaos.check.finding import Finding
from chaos.oracle import seconds
from chaos.records import Operation, Outcome

REFUSED = 401
_BEYOND = frozenset({"createKey", "rotateKey", "revokeKey"})
"""What nobody may do with the keys that are handed out: editors make none, and what admins ask for is not theirs."""


class Life(NamedTuple):
    """What the holder of a key can know of it."""

    given: float
    """From here on it must open doors."""
    doubtful: float
    """From here on it may be refused: somebody has asked for its end."""
    over: float
    """From here on it must be refused."""


def keys_wrong(case: Case) -> Iterator[Finding]:
    lives = lives_of(case)
    for each in shown(case):
        life, tell = lives.get(each.by or ""), partial(_about, each)
        if life is None:
            if each.outcome is Outcome.OK:
                yield tell("foreign", f"{each.by} has done {each.kind} to what belongs to {each.tenant}")
        elif each.outcome is Outcome.OK and each.invoked > life.over:
            yield tell("revoked", f"{each.by} was let in {each.invoked - life.over:.3f} s after its end had to hold")
        elif each.outcome is Outcome.OK and each.kind in _BEYOND:
            yield tell("beyond", f"{each.by} has done {each.kind}, which is beyond its role")
        elif each.status == REFUSED and life.given < each.invoked and each.completed < life.doubtful:
            yield tell("locked out", f"{each.by} was refused, and nobody had revoked it")


def shown(case: Case) -> Iterator[Operation]:
    """Calls with other keys than the tenant's first."""
    return (each for each in case.evidence.operations if each.by is not None)


def lives_of(case: Case) -> dict[str, Life]:
    found: dict[str, Life] = {}
    for each in case.evidence.operations:
        answer = each.answer or {}
        if each.kind in {"createKey", "rotateKey"} and each.outcome is Outcome.OK:
            made = answer if each.kind == "createKey" else answer["key"]
            found.setdefault(made["keyId"], Life(each.completed, math.inf, math.inf))
    for each in case.evidence.operations:
        if each.kind in {"rotateKey", "revokeKey"} and each.outcome is not Outcome.FAIL and each.thing in found:
            life = found[each.thing]
            doubtful, over = min(life.doubtful, each.invoked), min(life.over, _ends(case, each))
            found[each.thing] = life._replace(doubtful=doubtful, over=over)
    return found


def _ends(case: Case, each: Operation) -> float:
    """When the key that it acted on must not be believed by anybody any more, as far as its answer tells."""
    if each.outcome is not Outcome.OK:
        return math.inf
    if each.kind == "revokeKey":
        return each.completed + case.bounds.revoked
    expires = (each.answer or {})["former"]["expiresAt"]
    return math.inf if expires is None else seconds(expires) + case.bounds.clock


def key_uses(case: Case) -> dict[str, int]:
    """How often each kind of key was tried."""
    lives, uses = lives_of(case), list(shown(case))
    rotated = {each.thing for each in case.evidence.operations if each.kind == "rotateKey"}
    late = [each for each in uses if each.by in lives and each.invoked > lives[each.by].over]
    refused = [each for each in late if each.status == REFUSED]
    return {
        "keys used": sum(each.outcome is Outcome.OK for each in uses),
        "revoked keys refused": sum(each.by not in rotated for each in refused),
        "replaced keys refused": sum(each.by in rotated for each in refused),
        "keys of others refused": sum(each.by not in lives and each.outcome is Outcome.FAIL for each in uses),
        "keys refused beyond their role": sum(each.status == 403 and each.kind in _BEYOND for each in uses),
    }


def _about(each: Operation, rule: str, message: str) -> Finding:
    return Finding(
        check="S23", rule=rule, message=f"{message} (operation {each.number})", job=each.job, at=each.invoked
    )
