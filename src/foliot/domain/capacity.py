"""Gates that have to do with room: seats under a limit, queues, and the workers that serve them."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

import msgspec

from foliot.domain.gates import (
    COUNTED,
    Basis,
    Code,
    Estimate,
    Gate,
    ahead_text,
    clock_text,
    closed,
    count_text,
    guess,
    later,
    passed,
)

LINES: Final = MappingProxyType({1: Code.OVERLAP, 2: Code.CONCURRENCY, 3: Code.TENANT})
IN_LINE: Final = 1
_HELD: Final = 2


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of those that a run under limits goes through, in the order of their numbers."""

    number: int
    capacity: int
    going: int
    """Seats that are held."""
    ahead: int
    """Those that wait before it; 10,001 stands for more than 10,000."""
    since: datetime | None = None
    """When the first of those that go began, as far as it is known."""
    seat: int | None = None
    """0 not its turn to stand in this line, 1 it waits there, 2 it holds a seat; none if it has yet to come in."""

    @property
    def is_full(self) -> bool:
        return self.going >= self.capacity


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """One queue and handler, with the labels that are required: whether it is paused, and the workers that live.

    These as they told by their last heartbeats.
    """

    queue: str
    group: str
    labels: tuple[str, ...] = ()
    paused_at: datetime | None = None
    queue_workers: int = 0
    """Those that serve the queue, with whatever handlers."""
    handler_workers: int = 0
    """Those that offer this handler there, and carry the labels."""
    others: int = 0
    """Those that offer it there, whatever they carry."""
    last_seen: datetime | None = None
    """When a worker that offers it was last heard of, dead or alive."""
    places: int = 0
    """How many runs these take at once; 0 if they do not say."""
    busy: int = 0
    rate: float = 0.0
    """Runs of this queue and handler that they took a second."""

    @property
    def is_full(self) -> bool:
        return 0 < self.places <= self.busy


def line_gates(lines: Sequence[Line], whose: str, path: str | None, now: datetime) -> Iterator[Gate]:
    """The three kinds of limits, also those that do not apply."""
    found = {line.number: line for line in lines}
    free = {
        1: "Its job lets fire times overlap, or it was not fired by a schedule.",
        2: "Neither its job nor its call limits how many run at once.",
        3: "Its tenant has no limit.",
    }
    for number, code in LINES.items():
        line = found.get(number)
        yield passed(code, free[number]) if line is None else _line_gate(line, code, _counted(line, whose, path), now)


def _counted(line: Line, whose: str, path: str | None) -> str:
    """`5 of 5 runs of job 'sync'`"""
    noun = "run" if line.capacity == 1 else "runs"
    kind = {1: f"scheduled {noun} of {whose}", 3: f"{noun} of its tenant"}.get(line.number, f"{noun} of {whose}")
    return f"{line.going:,} of {line.capacity:,} {kind}" + (f" with its {path}" if line.number == 2 and path else "")


_RAISE: Final = MappingProxyType(
    {
        Code.OVERLAP: "It goes when that one has ended; cancel that one, or choose another `overlap`.",
        Code.CONCURRENCY: "It goes when one of them ends; `concurrency.limit` says how many go at once.",
        Code.TENANT: "It goes when one of them ends; an operator may raise the tenant's `limits.concurrency`.",
    }
)


def _line_gate(line: Line, code: Code, counted: str, now: datetime) -> Gate:
    numbers = {"limit": line.capacity, "going": line.going, "ahead": line.ahead}
    if line.seat == _HELD:
        return passed(code, f"It holds a seat: {counted} {_are(line.going)} going.", numbers=numbers)
    since = f", the oldest since {clock_text(line.since, now)}" if line.since is not None else ""
    says = f"{counted} {_are(line.going)} going{since}. {ahead_text(line.ahead)}"
    if line.seat == IN_LINE:
        return closed(code, f"Waits for a seat: {says}", _RAISE[code], numbers=numbers, since=line.since)
    return later(code, says, numbers=numbers, since=line.since)


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def queue_gate(fleet: Fleet, now: datetime) -> Gate:
    if fleet.paused_at is None:
        return passed(Code.QUEUE, f"The queue {fleet.queue!r} is open.")
    return closed(
        Code.QUEUE,
        f"The queue {fleet.queue!r} has been paused since {clock_text(fleet.paused_at, now)}.",
        f"`foliot queue resume {fleet.queue}` lets workers take it again.",
        since=fleet.paused_at,
    )


def worker_gates(fleet: Fleet, now: datetime) -> Iterator[Gate]:
    """Whether anybody is there for the queue, and for the handler."""
    seen = "" if fleet.last_seen is None else f"; the last was heard of at {clock_text(fleet.last_seen, now)}"
    on_queue = {"workers": fleet.queue_workers}
    if fleet.queue_workers:
        says = f"{count_text(fleet.queue_workers, 'live worker')} on queue {fleet.queue!r}."
        yield passed(Code.QUEUE_WORKERS, says, numbers=on_queue)
    else:
        says = f"No live worker serves queue {fleet.queue!r}{seen}."
        hint = f"Start one: `{_start(fleet)}`."
        yield closed(Code.QUEUE_WORKERS, says, hint, numbers=on_queue, since=fleet.last_seen)
    offering = {"workers": fleet.handler_workers, "onQueue": fleet.queue_workers}
    if fleet.handler_workers:
        carrying = f", carrying {', '.join(fleet.labels)}" if fleet.labels else ""
        says = f"{count_text(fleet.handler_workers, 'live worker')} with handler {fleet.group!r}{carrying}."
        yield passed(Code.HANDLER_WORKERS, says, numbers=offering)
    elif fleet.labels and fleet.others:
        says = f"{count_text(fleet.others, 'live worker')} with handler {fleet.group!r} on queue {fleet.queue!r}, none "
        says += f"of them carries {_listed(fleet.labels)}{seen}."
        hint = f"Start one that does: `{_start(fleet)}`; or take away what is not needed of `requires`."
        yield closed(Code.HANDLER_WORKERS, says, hint, numbers=offering, since=fleet.last_seen)
    else:
        others = "none of them" if fleet.queue_workers else "none"
        says = f"{count_text(fleet.queue_workers, 'live worker')} on queue {fleet.queue!r}, {others} with "
        says += f"handler {fleet.group!r}{seen}."
        yield closed(Code.HANDLER_WORKERS, says, _offer(fleet), numbers=offering, since=fleet.last_seen)


def _listed(labels: Sequence[str]) -> str:
    """`gpu`, or `all of eu, gpu`: one of them is not enough."""
    return labels[0] if len(labels) == 1 else f"all of {', '.join(labels)}"


def _start(fleet: Fleet) -> str:
    return " ".join([f"foliot worker --queue {fleet.queue}", *(f"--label {label}" for label in fleet.labels)])


def _offer(fleet: Fleet) -> str:
    kind, _, name = fleet.group.partition(":")
    labels = f" It must carry {_listed(fleet.labels)}: `{_start(fleet)}`." if fleet.labels else ""
    if kind == "fn":
        return f"Register {name!r} with a worker of that queue, or look for a misspelt name.{labels}"
    return f"Start a worker that takes {kind} handlers: `foliot worker --help`.{labels}"


def room_gates(fleet: Fleet, ahead: int | None, rank: int | None = None) -> Iterator[Gate]:
    """Whether workers have room, and whose turn it is; `ahead` is none for a run that does not stand there yet."""
    room = {"places": fleet.places, "busy": fleet.busy}
    if not fleet.is_full or not fleet.handler_workers:
        free = f"{fleet.busy:,} of {fleet.places:,} places are taken." if fleet.places else "Workers have room."
        yield passed(Code.PLACES, free, numbers=room)
    else:
        says = f"All {count_text(fleet.places, 'place')} of {count_text(fleet.handler_workers, 'worker')} are taken."
        more = f" {ahead_text(ahead)}" if ahead is not None else ""
        hint = "It starts when one is free; more workers, or more places for each, start it sooner."
        full = closed if ahead is not None else later
        yield full(Code.PLACES, says + more, hint=hint, numbers=room)
    if ahead is None:
        yield later(Code.TURN, "It has yet to join those that wait for a worker.")
    elif ahead == 0:
        yield passed(Code.TURN, "Nobody is ahead of it.", numbers=_turn(fleet, 0, rank))
    else:
        pace = f" Workers take {fleet.rate:,.3g} a second." if fleet.rate > 0 else ""
        says = f"Waits for its turn in queue {fleet.queue!r}. {ahead_text(ahead)}{pace}"
        hint = "A higher priority, or more workers, would start it sooner."
        yield closed(Code.TURN, says, hint, numbers=_turn(fleet, ahead, rank))


def _turn(fleet: Fleet, ahead: int, rank: int | None) -> dict[str, float]:
    place: dict[str, float] = {} if rank is None else {"rank": rank}
    return {**place, "ahead": ahead, "ratePerSecond": round(fleet.rate, 3)}


def start_in_line(line: Line, takes: timedelta | None, now: datetime) -> Estimate | None:
    """When a run that waits in a line holds its seat, if each of those before it takes as long as such runs do."""
    if takes is None or line.ahead > COUNTED:
        return None
    return guess(now, takes * ((line.ahead + 1) / line.capacity), Basis.DURATIONS)


def start_from_queue(fleet: Fleet, ahead: int, takes: timedelta | None, now: datetime) -> Estimate | None:
    """When a run that is ready starts: by the rate at which workers take, or by how long such runs take."""
    if ahead == 0 and not fleet.is_full:
        return Estimate(now, Basis.NOW)
    if ahead > COUNTED:
        return None
    if fleet.rate > 0:
        return guess(now, timedelta(seconds=min((ahead + 1) / fleet.rate, 1e9)), Basis.RATE)
    if takes is not None and fleet.places:
        return guess(now, takes * ((ahead + 1) / fleet.places), Basis.DURATIONS)
    return None
