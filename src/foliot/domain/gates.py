"""The gates between a run and a worker: which are passed, and which one holds it."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

COUNTED: Final = 10_000
"""What waits is counted so far: nobody wants to know more, and a million must not be looked at."""
LONGEST_GUESS: Final = timedelta(days=366)


class Code(StrEnum):
    """What a gate is about."""

    FINISHED = "finished"
    RETRIES = "retries"
    QUARANTINE = "quarantine"
    DELIVERY = "delivery"
    CANCEL = "cancel"
    OUTSIDE = "outside"
    PAUSE = "pause"
    SCHEDULE = "schedule"
    WINDOW = "window"
    CALENDAR = "calendar"
    DAYLIGHT = "daylight"
    JITTER = "jitter"
    PARENTS = "parents"
    DUE = "due"
    BACKOFF = "backoff"
    CLOCK = "clock"
    SCHEDULER = "scheduler"
    CATCH_UP = "catchUp"
    OVERLAP = "overlap"
    CONCURRENCY = "concurrency"
    TENANT = "tenant"
    QUEUE = "queue"
    QUEUE_WORKERS = "queueWorkers"
    HANDLER_WORKERS = "handlerWorkers"
    PLACES = "places"
    TURN = "turn"


class Stand(StrEnum):
    """How a gate stands."""

    PASSED = "passed"
    BLOCKING = "blocking"
    """It is this one that is waited for."""
    CLOSED = "closed"
    """It would be waited for, too, if those before it were open."""
    LATER = "later"
    """What it says then is decided when those before it are open."""


_NOTHING: Final[Mapping[str, float]] = MappingProxyType({})


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """One gate, in a sentence and in numbers."""

    code: Code
    stand: Stand
    says: str
    hint: str = ""
    """What to do about it."""
    numbers: Mapping[str, float] = _NOTHING
    since: datetime | None = None
    until: datetime | None = None
    names: tuple[str, ...] = ()
    """Ids of the runs, jobs and workers that it speaks of."""


class Basis(StrEnum):
    """What an estimate was made from."""

    DUE = "due"
    RATE = "rate"
    DURATIONS = "durations"
    NOW = "now"
    SCHEDULE = "schedule"


class Estimate(NamedTuple):
    at: datetime
    basis: Basis


class Explanation(NamedTuple):
    """All gates: the one that blocks first, the others in the order in which they are passed.

    If none blocks there is an estimate, or a worker has the run already.
    """

    gates: tuple[Gate, ...]
    sentence: str
    estimate: Estimate | None = None
    is_running: bool = False

    @property
    def blocking(self) -> Gate | None:
        return self.gates[0] if self.gates and self.gates[0].stand is Stand.BLOCKING else None


def passed(code: Code, says: str, **more: Any) -> Gate:
    return Gate(code=code, stand=Stand.PASSED, says=says, **more)


def closed(code: Code, says: str, hint: str = "", **more: Any) -> Gate:
    return Gate(code=code, stand=Stand.CLOSED, says=says, hint=hint, **more)


def later(code: Code, says: str, **more: Any) -> Gate:
    return Gate(code=code, stand=Stand.LATER, says=says, **more)


def arranged(gates: Iterable[Gate]) -> tuple[Gate, ...]:
    """The first that is closed blocks, and comes first; the others stay in their order."""
    ordered = list(gates)
    for place, gate in enumerate(ordered):
        if gate.stand is Stand.CLOSED:
            del ordered[place]
            return (msgspec.structs.replace(gate, stand=Stand.BLOCKING), *ordered)
    return tuple(ordered)


def guess(now: datetime, wait: timedelta, basis: Basis) -> Estimate:
    """So much later, but never further away than anybody can tell."""
    return Estimate(now + min(max(wait, timedelta()), LONGEST_GUESS), basis)


def clock_text(at: datetime, now: datetime) -> str:
    """`12:03:10 UTC`, with the date if it is another day."""
    return at.strftime("%H:%M:%S UTC" if at.date() == now.date() else "%Y-%m-%d %H:%M:%S UTC")


def span_text(span: timedelta) -> str:
    """`4 s`, `12 min`, `3 h 5 min`, `9 days`: no finer than it is of use."""
    seconds = max(span, timedelta()).total_seconds()
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 and seconds % 1 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"
    return f"{round(minutes / 1_440)} days"


def count_text(count: int, word: str) -> str:
    """`1 run`, `3 runs`, `more than 10,000 runs`."""
    if count > COUNTED:
        return f"more than {COUNTED:,} {word}s"
    return f"{count:,} {word}" + ("" if count == 1 else "s")


def ahead_text(ahead: int) -> str:
    """Who is first, in a sentence of its own."""
    match ahead:
        case 0:
            return "It is the next."
        case 1:
            return "1 is ahead."
        case _ if ahead > COUNTED:
            return f"More than {COUNTED:,} are ahead."
        case _:
            return f"{ahead:,} are ahead."


def told(gate: Gate) -> str:
    """The sentence, and what to do."""
    return f"{gate.says} {gate.hint}".rstrip()
