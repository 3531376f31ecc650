"""How fairly tenants were served while there was more to do than could be done: by what each got for its weight."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from chaos.check.case import Case
from chaos.check.waits import Wait
from chaos.records import Operation, Outcome

SLOT: Final = 10.0
"""Seconds over which shares are compared."""
_BACKLOG: Final = 1.0
"""A tenant has a backlog in a slot if nine of ten runs that began in it had waited longer than this, in seconds: some
are of handlers that hardly anybody wants, and never wait."""
_ENOUGH: Final = 20
"""Starts of a tenant in a slot, without which that says nothing; and runs that still wait when it is over: without them
the tenant got all that it wanted."""
_DEFAULT: Final = 1
_RERANKED: Final = 5.0
"""Seconds that a scheduler may take until what waits is ranked by its tenant's new weight."""


def fair_shares(case: Case, waits: Sequence[Wait]) -> list[float]:
    """Jain's index of every slot in which several tenants had a backlog, and kept their weights."""
    saturated = {slot: dict(_weighed(case, slot, tenants)) for slot, tenants in _saturated(case, waits)}
    compared = {slot: weights for slot, weights in saturated.items() if len(weights) > 1}
    settled = _settled(case) if compared else {}
    return [
        _jain([settled[slot][tenant] / weight for tenant, weight in weights.items()])
        for slot, weights in compared.items()
    ]


def _saturated(case: Case, waits: Sequence[Wait]) -> Iterator[tuple[int, list[str]]]:
    """Slots, and who had a backlog in them; whoever may only have so many at once waits for its own.

    All workers are well in them: one that comes back begins with what it meets, and shares are of what all of them do.
    """
    crowds = case.evidence.settings.get("crowds", {})
    begun: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    left: Counter[tuple[int, str]] = Counter()
    for at, late, tenant in waits:
        if tenant not in crowds:
            slot = int(at / SLOT)
            begun[slot][tenant].append(late)
            left.update((before, tenant) for before in range(int((at - late) / SLOT), slot))
    for slot, by_tenant in begun.items():
        tenants = [name for name, late in by_tenant.items() if _is_backlog(late, left[slot, name])]
        if tenants and not case.faults.cost_a_worker(slot * SLOT, (slot + 1) * SLOT):
            yield slot, tenants


def _is_backlog(late: list[float], left: int) -> bool:
    return len(late) >= _ENOUGH <= left and sorted(late)[len(late) // 10] > _BACKLOG


def _weighed(case: Case, slot: int, tenants: Sequence[str]) -> Iterator[tuple[str, int]]:
    for tenant in tenants:
        weight = _weight(case, _weighings(case, tenant), slot * SLOT, (slot + 1) * SLOT)
        if weight is not None:
            yield tenant, weight


def _weighings(case: Case, tenant: str) -> list[Operation]:
    return [each for each in case.evidence.operations if each.kind == "weighTenant" and each.tenant == tenant]


def _weight(case: Case, weighings: Sequence[Operation], start: float, end: float) -> int | None:
    """What a tenant weighed all the time; None if that was changed, or nobody knows."""
    weight: int | None = _DEFAULT
    for each in weighings:
        if each.invoked >= end or each.outcome is Outcome.FAIL:
            continue
        known = each.outcome is Outcome.OK and _in_force(case, each.completed) <= start
        weight = (each.body or {})["weight"] if known else None
    return weight


def _in_force(case: Case, weighed: float) -> float:
    """When what waits has been ranked by a new weight: not while every scheduler stands still."""
    ranked = weighed + _RERANKED
    for began, ended in case.faults.unattended:
        if began <= ranked and weighed <= ended:
            ranked = max(ranked, ended + _RERANKED)
    return ranked


def _settled(case: Case) -> dict[int, dict[str, int]]:
    """Handlers that came to a good end, by slot and tenant."""
    found: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for run in case.runs.values():
        for end in run.ends:
            if not end.failed:
                found[int(end.at / SLOT)][end.tenant] += 1
    return found


def _jain(shares: Sequence[float]) -> float:
    squares = sum(each**2 for each in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0
