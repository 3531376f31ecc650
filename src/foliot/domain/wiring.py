"""Which jobs may hang together: one trigger for all of a graph, no cycle, and not too many of them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from foliot.domain.errors import Cycle, InvalidField
from foliot.domain.graph import MOST_EDGES, MOST_NODES, Edge, components, find_cycle, roots
from foliot.domain.job import Gate, Kind, Overlap

_NAMED: Final = 12
"""Jobs of a cycle that are named; of a longer one those at its ends."""
_FIELD: Final = "dependsOn"


class Member(NamedTuple):
    """A job as its graph sees it."""

    id: int
    label: str
    """Its key or, without one, its name: what its owner knows it by."""
    own_kind: Kind
    """What its own schedule makes of it."""
    schedule: int | None
    terms: Mapping[str, Any]
    """What else its owner said about when it runs: `endsAt`, `maxRuns`, `catchUp`, …"""
    overlap: Overlap = Overlap.SKIP
    gate: Gate = Gate.OPEN
    head: int | None = None
    run: int | None = None
    """Of a one-time job."""


class Place(NamedTuple):
    """What a graph makes of one of its jobs: what makes it run, on which schedule, and the graph's first root."""

    kind: Kind
    schedule: int | None = None
    head: int | None = None


def arrange(members: Mapping[int, Member], edges: Sequence[Edge]) -> dict[int, Place]:
    """Where each of these jobs belongs; Cycle or InvalidField if they cannot hang together so."""
    refuse_cycles(edges, {job: member.label for job, member in members.items()})
    places: dict[int, Place] = {}
    above: dict[int, list[Edge]] = defaultdict(list)
    for edge in edges:
        above[edge.child].append(edge)
    for group in components(members, edges):
        inner = [edge for node in group for edge in above.get(node, ())]
        if len(group) > MOST_NODES or len(inner) > MOST_EDGES:
            said = f"the graph would have {len(group):,} jobs and {len(inner):,} edges"
            raise InvalidField(_FIELD, said, f"at most {MOST_NODES:,} jobs and {MOST_EDGES:,} edges hang together")
        if len(group) > 1:
            first = [members[node] for node in roots(group, inner)]
            top = {each.id for each in first}
            places |= _together(first, [members[node] for node in sorted(group - top)])
        else:
            (alone,) = (members[node] for node in group)
            places[alone.id] = Place(alone.own_kind, alone.schedule if alone.own_kind is Kind.RECURRING else None)
    return places


def _together(first: Sequence[Member], others: Sequence[Member]) -> dict[int, Place]:
    """The jobs of one graph: roots first."""
    for each in (*first, *others):
        if each.gate is Gate.CANCELLED:
            raise InvalidField(_FIELD, f"the job {each.label!r} is cancelled", "depend on another one")
    kinds = {each.own_kind for each in first}
    if kinds == {Kind.RECURRING}:
        return _fired(first, others)
    if len(kinds) > 1:
        told = ", ".join(f"{each.label!r} is {each.own_kind.word}" for each in first[:5])
        hint = "all jobs of a graph without parents share one schedule, or run on demand, or run once"
        raise InvalidField(_FIELD, f"what starts the graph? {told}", hint)
    if others and (odd := next((each for each in others if each.own_kind is Kind.RECURRING), None)):
        raise _own_schedule(odd, first[0])
    late = next((each for each in others if each.own_kind is Kind.ONE_TIME), None)
    if kinds == {Kind.ON_DEMAND} and late is not None:
        said = f"{late.label!r} runs once, and {first[0].label!r} runs on demand: there is no run to wait for"
        raise InvalidField(_FIELD, said, "give the parent a scheduleAt, or take that of the child away")
    (kind,) = kinds
    head = min(each.id for each in first) if kind is Kind.ON_DEMAND else None
    return {each.id: Place(kind, None, head) for each in (*first, *others)}


def _fired(first: Sequence[Member], others: Sequence[Member]) -> dict[int, Place]:
    lead = min(first)
    for each in first:
        if (each.schedule, each.terms) != (lead.schedule, lead.terms):
            said = f"{each.label!r} and {lead.label!r} have no parents and different schedules"
            raise InvalidField(_FIELD, said, "a graph has one trigger: give them the same schedule")
        if each.overlap not in {Overlap.SKIP, Overlap.ALLOW}:
            hint = "a graph overlaps as a whole: use skip or allow"
            raise InvalidField(
                "overlap", f"{each.overlap.value!r} cannot be had by {each.label!r}, a graph's root", hint
            )
    for each in others:
        if each.own_kind is Kind.ONE_TIME or (each.own_kind is Kind.RECURRING and each.schedule != lead.schedule):
            raise _own_schedule(each, lead)
    return {each.id: Place(Kind.RECURRING, lead.schedule, lead.id) for each in (*first, *others)}


def _own_schedule(child: Member, root: Member) -> InvalidField:
    kinds = {Kind.RECURRING: "recurs", Kind.ONE_TIME: "runs once", Kind.ON_DEMAND: "runs on demand"}
    own = "has a schedule of its own" if child.own_kind is Kind.RECURRING else kinds[child.own_kind]
    said = f"{child.label!r} {own}, and {root.label!r}, which starts the graph, {kinds[root.own_kind]}"
    return InvalidField(_FIELD, said, "a job with parents starts when they have ended: leave its schedule out")


def refuse_cycles(edges: Sequence[Edge], labels: Mapping[int, str]) -> None:
    """Cycle if there is one, which it names."""
    if ring := find_cycle(edges):
        raise _cycle([labels[node] for node in ring])


def _cycle(labels: Sequence[str]) -> Cycle:
    shown = labels if len(labels) <= _NAMED else [*labels[: _NAMED // 2], "…", *labels[-_NAMED // 2 :]]
    return Cycle(f"jobs would wait for each other: {' → '.join(shown)}", "take one of these dependencies out")
