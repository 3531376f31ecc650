"""What a job may have looked like at each moment, as far as its owner can know.

An acknowledged operation took effect at some moment between call and answer; one that nobody answered may take effect
at any moment after its call, or never. So there are several possible worlds: each is a definition, a gate, and the
operations that have yet to take effect in it. Where all worlds agree, something must (or must not) happen; where they
do not, it may.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from enum import IntEnum, StrEnum
from typing import Any, Final

import msgspec

from chaos.oracle import Body, Definition, body_of, definition_of, patched
from chaos.policy import FIELDS, LEFT_OUT, LETS_GO, policy_of
from chaos.records import Operation, Outcome

MANY: Final = 3
MOST_WORLDS: Final = 4_096
"""Beyond this the job is not judged: its owner made more unanswered calls than anybody can reason about."""

_SHOWN: Final = (  # of what decides when it runs, and with what
    "payload", "cronExpression", "rrule", "when", "timezone", "dst", "every", "scheduleAt", "endsAt", "overlap",
    "catchUp", "jitter", "maxRuns", "calendar", "concurrency",
)  # fmt: skip


class Gate(StrEnum):
    OPEN = "open"
    PAUSED = "paused"
    CANCELLED = "cancelled"


_CANCELS: Final = frozenset({"cancelJob", "deleteJob"})
_GATES: Final = {"pauseJob": Gate.PAUSED, "resumeJob": Gate.OPEN} | dict.fromkeys(_CANCELS, Gate.CANCELLED)
CHANGES: Final = frozenset({"changeJob", *_GATES})
"""What can be done to a job once it is there."""


class Standing(msgspec.Struct, frozen=True):
    """A definition in force, and whether its gate is open."""

    body: Body
    gate: Gate = Gate.OPEN

    @property
    def definition(self) -> Definition:
        return definition_of(self.body)


Pending = frozenset[tuple[int, int]]
"""Operations that have yet to take effect, and how many alike; MANY stands for any number."""


class _World(msgspec.Struct, frozen=True):
    standing: Standing | None
    pending: Pending = frozenset()


class Timeline:
    """The possible standings of one job over time; None stands for "not created"."""

    def __init__(self, operations: Iterable[Operation], linger: float = 60.0) -> None:
        """`operations` on this job, its creation among them; those that failed for certain are left out.

        `linger`: seconds after a call was given up in which it may still take effect.
        """
        self._operations = {each.number: each for each in operations if each.outcome is not Outcome.FAIL}
        self._linger = linger
        self._alike = _alike(self._operations.values())
        self.moments: list[float] = [0.0]
        self.possible: list[frozenset[Standing | None]] = [frozenset([None])]
        self.lies: list[Operation] = []
        """Operations whose answer describes none of the possible worlds."""
        self.judged = True
        self._follow()
        self.definitions = {each.definition for standings in self.possible for each in standings if each is not None}

    def between(self, start: float, end: float) -> set[Standing | None]:
        """Everything that the job may have been at some moment of [start, end]."""
        first = bisect_right(self.moments, start) - 1
        last = bisect_right(self.moments, end)
        return set().union(*self.possible[max(first, 0) : last])

    def span(self) -> tuple[float, float]:
        """From when on, and until when, it may have been there and not cancelled, which is for good."""
        until = math.inf
        for moment, standings in zip(reversed(self.moments), reversed(self.possible), strict=True):
            if any(each is not None and each.gate is not Gate.CANCELLED for each in standings):
                break
            until = moment
        return next(iter(self.moments[1:]), math.inf), until

    @property
    def last(self) -> frozenset[Standing | None]:
        return self.possible[-1]

    def _follow(self) -> None:
        worlds = {_World(None)}
        for moment, event, number in sorted(self._events()):
            match event:
                case _Event.CALLED:
                    worlds = self._grown({_World(each.standing, _more(each.pending, number)) for each in worlds})
                case _Event.ANSWERED:
                    worlds = self._acknowledged(worlds, self._operations[number])
                case _Event.OVER:
                    worlds = {_World(each.standing, _without(each.pending, number)) for each in worlds}
            if len(worlds) > MOST_WORLDS:
                self.judged = False
                return
            self.moments.append(moment)
            self.possible.append(frozenset(each.standing for each in worlds))

    def _events(self) -> Iterator[tuple[float, "_Event", int]]:
        over: dict[int, float] = {}
        for each in self._operations.values():
            name = self._alike[each.number]
            yield each.invoked, _Event.CALLED, name
            if each.outcome is Outcome.OK:
                yield each.completed, _Event.ANSWERED, name
            else:
                over[name] = max(over.get(name, 0.0), each.completed + self._linger)
        yield from ((moment, _Event.OVER, name) for name, moment in over.items())

    def _grown(self, worlds: set[_World]) -> set[_World]:
        """With all worlds that come about when pending operations take effect, in any order."""
        fresh = worlds
        while fresh and len(worlds) <= MOST_WORLDS:
            fresh = {after for world in fresh for after in self._successors(world)} - worlds
            worlds = worlds | fresh
        return worlds

    def _successors(self, world: _World) -> Iterator[_World]:
        for number, _ in world.pending:
            operation = self._operations[number]
            after = _applied(world.standing, operation)
            # The answer was read in the transaction of the change: it describes the job just after it.
            if after is None or not _may_answer(operation, after):
                continue
            # Nothing is gained by using up a call without an answer for what changes nothing.
            if operation.outcome is Outcome.OK or after != world.standing:
                yield _World(after, _fewer(world.pending, number))

    def _acknowledged(self, worlds: set[_World], operation: Operation) -> set[_World]:
        left = {each for each in worlds if all(number != operation.number for number, _ in each.pending)}
        if left:
            return left
        # The product says that it did what by our reading it could not: believe it from here on, it has been noted.
        self.lies.append(operation)
        applied = ((_applied(each.standing, operation), each) for each in worlds)
        return {_World(after or each.standing, _without(each.pending, operation.number)) for after, each in applied}


class _Event(IntEnum):
    CALLED = 0
    ANSWERED = 1
    OVER = 2


def _alike(operations: Iterable[Operation]) -> dict[int, int]:
    """Calls without an answer that ask for the same go by the number of the first of them."""
    first: dict[tuple[str, bytes], int] = {}
    return {
        each.number: each.number
        if each.outcome is Outcome.OK
        else first.setdefault((each.kind, msgspec.json.encode(each.body)), each.number)
        for each in operations
    }


def _more(pending: Pending, number: int) -> Pending:
    count = dict(pending).get(number, 0)
    return _without(pending, number) | {(number, min(count + 1, MANY))}


def _fewer(pending: Pending, number: int) -> Pending:
    count = dict(pending)[number]
    left = _without(pending, number)
    return pending if count == MANY else left | {(number, count - 1)} if count > 1 else left


def _without(pending: Pending, number: int) -> Pending:
    return frozenset(each for each in pending if each[0] != number)


def _applied(standing: Standing | None, operation: Operation) -> Standing | None:
    """The job after the operation; None if it would have been refused."""
    if operation.kind == "createJob":
        return Standing(body_of(operation.body or {})) if standing is None else None
    if standing is None or (standing.gate is Gate.CANCELLED and operation.kind not in _CANCELS):
        return None
    if operation.kind == "changeJob":
        return Standing(patched(standing.body, operation.body or {}), standing.gate)
    return Standing(standing.body, _GATES[operation.kind])


def _may_answer(operation: Operation, standing: Standing) -> bool:
    """Whether the answer may describe this standing; an answer of another shape says nothing."""
    answer = operation.answer
    return not answer or "scheduleType" not in answer or agrees(answer, standing)


def agrees(view: dict[str, Any], standing: Standing) -> bool:
    """Whether the product's view of a job may be that of this standing."""
    status = view.get("status")
    if (status == "cancelled") != (standing.gate is Gate.CANCELLED):
        return False
    if status in {"paused", "pending"} and (status == "paused") != (standing.gate is Gate.PAUSED):
        return False
    shown = definition_of(body_of({name: view[name] for name in _SHOWN if name in view}))
    return shown == standing.definition and _is_run_like(view, standing)


def _is_run_like(view: dict[str, Any], standing: Standing) -> bool:
    """Whether what it says of how the job is run is what its owner wrote: all that it shows, and what it leaves out."""
    shown = FIELDS & view.keys()
    said, meant = policy_of(body_of({name: view[name] for name in shown})), policy_of(standing.body)
    gone = LETS_GO if standing.gate is Gate.CANCELLED else frozenset()
    return all(said[name] == meant[name] for name in (shown | LEFT_OUT) - gone)
