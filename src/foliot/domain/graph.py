"""Graphs of jobs: which can be, what they share, and what the end of a parent means for its children."""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum, IntEnum
from typing import Final, NamedTuple

from foliot.domain.states import FINISHED, State, Status

MOST_NODES: Final = 1_000
MOST_EDGES: Final = 10_000

FAILED: Final = frozenset({State.DEAD, State.UNKNOWN, State.DISCARDED})
"""Ends of a parent that an edge of `failed` waits for. A run that somebody cancelled has not failed."""


class When(IntEnum):
    """Which end of a parent an edge waits for. The numbers are stored."""

    SUCCESS = 0
    DONE = 1
    FAILED = 2

    @property
    def word(self) -> str:
        return self.name.lower()


class Need(NamedTuple):
    """What a job waits for, as its owner wrote it: the id or the key of another, and which end of it."""

    job: str
    when: When = When.SUCCESS


class Edge(NamedTuple):
    parent: int
    child: int
    when: When = When.SUCCESS


class Verdict(Enum):
    """What becomes of a child, by what has become of its parents."""

    WAITS = "waits"
    RUNS = "runs"
    SKIPPED = "skipped"


class Past(NamedTuple):
    """What has become of a parent: how it ended first, and how it stands now; a replay makes the two differ.

    A run that waits, runs or was replayed has no end; a dead one may have another.
    """

    first: State | None = None
    last: State | None = None


NOTHING_YET: Final = Past()


def verdict(parents: Iterable[tuple[When, Past]]) -> Verdict:
    """Whether a child runs, is skipped, or waits.

    It runs when every edge of `success` and `done` is satisfied and, if it has edges of `failed`, one of those. It is
    skipped as soon as that cannot come about any more. A dead parent can still succeed, by a replay: its children wait.
    What an edge of `done` or `failed` has been told stays told, whatever a replay makes of the parent afterwards.
    """
    waits, alarms = False, list[bool | None]()
    for when, past in parents:
        match when:
            case When.SUCCESS if past.last in {None, State.DEAD}:
                waits = True
            case When.SUCCESS if past.last is not State.SUCCEEDED:
                return Verdict.SKIPPED
            case When.DONE if past.first is None:
                waits = True
            case When.FAILED:
                alarms.append(None if past.first is None else past.first in FAILED)
            case _:
                pass
    if alarms and True not in alarms:
        if None not in alarms:
            return Verdict.SKIPPED
        waits = True
    return Verdict.WAITS if waits else Verdict.RUNS


def find_cycle(edges: Iterable[Edge]) -> list[int] | None:
    """One cycle, from a node back to itself along the edges; none if there is none."""
    children: dict[int, list[int]] = defaultdict(list)
    parents: dict[int, int] = defaultdict(int)
    for edge in edges:
        children[edge.parent].append(edge.child)
        parents[edge.child] += 1
    free = deque(node for node in children if not parents[node])
    while free:
        for child in children.pop(free.popleft(), ()):
            parents[child] -= 1
            if not parents[child]:
                free.append(child)
    left = {node for node, count in parents.items() if count}
    # Whoever is left has a parent that is left too: going up, one must come round.
    up = {child: parent for parent in left for child in children.get(parent, ()) if child in left}
    if not up:
        return None
    node, seen = min(up), dict[int, int]()
    while node not in seen:
        seen[node] = len(seen)
        node = up[node]
    ring = list(seen)[seen[node] :]
    return [node, *reversed(ring)]


def components(nodes: Iterable[int], edges: Iterable[Edge]) -> list[set[int]]:
    """The nodes that hang together, in sets of their own."""
    beside: dict[int, set[int]] = {node: set() for node in nodes}
    for edge in edges:
        beside[edge.parent].add(edge.child)
        beside[edge.child].add(edge.parent)
    found: list[set[int]] = []
    while beside:
        group, front = set[int](), [next(iter(beside))]
        while front:
            node = front.pop()
            if node not in group:
                group.add(node)
                front.extend(beside.pop(node))
        found.append(group)
    return found


def roots(nodes: Iterable[int], edges: Iterable[Edge]) -> list[int]:
    """Those without parents, by number."""
    children = {edge.child for edge in edges}
    return sorted(node for node in nodes if node not in children)


def stuck(states: Mapping[int, State], edges: Sequence[Edge]) -> dict[int, list[int]]:
    """Of the nodes that are blocked, those that wait for dead ones, each with those."""
    parents: dict[int, list[Edge]] = defaultdict(list)
    for edge in edges:
        parents[edge.child].append(edge)
    blame: dict[int, list[int]] = {}
    for node in _from_above(states, edges):
        if states[node] is State.BLOCKED:
            dead = {
                each
                for edge in parents[node]
                if edge.when is not When.FAILED
                for each in (
                    [edge.parent]
                    if states[edge.parent] is State.DEAD and edge.when is When.SUCCESS
                    else blame.get(edge.parent, [])
                )
            }
            if dead:
                blame[node] = sorted(dead)
    return blame


def _from_above(nodes: Iterable[int], edges: Sequence[Edge]) -> list[int]:
    """Every node after all of its parents."""
    children: dict[int, list[int]] = defaultdict(list)
    left: dict[int, int] = dict.fromkeys(nodes, 0)
    for edge in edges:
        children[edge.parent].append(edge.child)
        left[edge.child] += 1
    order = [node for node, count in left.items() if not count]
    for node in order:
        for child in children[node]:
            left[child] -= 1
            if not left[child]:
                order.append(child)
    return order


def awaited(parents: Iterable[Edge], states: Mapping[int, State]) -> list[int]:
    """Of the parents of a node that waits, those that keep it waiting; the dead first."""
    found = [
        edge.parent
        for edge in parents
        if (states[edge.parent] is State.DEAD and edge.when is When.SUCCESS) or states[edge.parent] not in FINISHED
    ]
    return sorted(found, key=lambda node: (states[node] is not State.DEAD, node))


def status_of(states: Collection[State], stuck_nodes: int) -> Status:
    """One word for a graph: it goes on as long as anything of it may come to its end by itself."""
    left = [state for state in states if state not in FINISHED]
    if len(left) > stuck_nodes:
        begun = len(left) < len(states) or State.RUNNING in left
        return Status.RUNNING if begun else Status.PENDING
    if FAILED & set(states):
        return Status.FAILED
    return Status.CANCELLED if State.CANCELLED in states else Status.COMPLETED
