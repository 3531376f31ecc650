"""Schedules and firings: how far each recurrence has been fired, and what became of each instant."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from foliot.domain.fairness import Priority, step
from foliot.domain.misfire import GRACE, Advance
from foliot.domain.shards import EVERYTHING, Look
from foliot.store.database import Connection, Line
from foliot.store.flows import Flow, Ranks
from foliot.store.statements import SQL


class DueSchedule(NamedTuple):
    id: int
    key: str
    next_at: datetime
    now: datetime
    latest_within: int
    all_within: int


async def due_schedules(
    line: Line,
    limit: int,
    now: datetime | None = None,
    *,
    late: int | None = None,
    look: Look = EVERYTHING,
    since: datetime | None = None,
) -> list[DueSchedule]:
    """Schedules whose next instant has come, by the database's clock; tests may pass another.

    Those that are on time come first, then at most `late` of those that are not; none that was due before `since`.
    """
    most_late = limit if late is None else late
    rows = await line.fetch("due_schedules", now, limit, GRACE, most_late, look.numbers, look.overdue, since)
    return [DueSchedule(*row) for row in rows]


class Ahead(NamedTuple):
    through: datetime | None
    """The last instant that was read for; none if nothing comes."""
    members: int


async def read_ahead(line: Line, after: datetime | None, lead: timedelta, shards: frozenset[int] | None) -> Ahead:
    """Read the jobs of the schedules whose next instant is later than `after` and comes within `lead`."""
    (row,) = await line.fetch("read_ahead", after, lead, Look(shards).numbers)
    return Ahead(*row)


async def endings(line: Line, late: Sequence[DueSchedule], now: datetime, most: int) -> dict[int, list[datetime]]:
    """Where jobs of these schedules end between the schedule's next instant and `now`; of each at most `most`."""
    rows = await line.fetch("endings", [due.id for due in late], [due.next_at for due in late], now, most)
    found: dict[int, list[datetime]] = {}
    for row in rows:
        found.setdefault(row["schedule"], []).append(row["until"])
    return found


async def lock_to_fire(connection: Connection, schedules: Sequence[int], *, wait: bool) -> set[int]:
    """Lock schedules against edits, in a statement of its own: what follows must see an edit that was waited for."""
    name = "lock_to_fire" if wait else "lock_free_to_fire"
    return {row["id"] for row in await connection.fetch(SQL[name], sorted(set(schedules)))}


async def advance_schedules(
    connection: Connection, moves: Sequence[tuple[DueSchedule, Advance]], now: datetime | None = None
) -> set[int]:
    """Move cursors and open firings; returns the schedules that were still where we saw them."""
    openings = [(due.id, opening) for due, advance in moves for opening in advance.openings]
    rows = await connection.fetch(
        SQL["advance_schedules"],
        [due.id for due, _ in moves],
        [due.next_at for due, _ in moves],
        [advance.through for _, advance in moves],
        [advance.next_at for _, advance in moves],
        [schedule for schedule, _ in openings],
        [opening.at for _, opening in openings],
        [opening.through for _, opening in openings],
        [opening.following for _, opening in openings],
        [opening.late_through for _, opening in openings],
        [opening.missed > 0 for _, opening in openings],
        now,
    )
    return {row["id"] for row in rows}


class OpenFiring(NamedTuple):
    """A firing with jobs left to do: those after `done_through`, of which the next `members` end at `upto`."""

    schedule: int
    at: datetime
    done_through: int
    members: int
    upto: int | None
    is_last: bool
    """Nobody is left after these."""
    late: bool = False


async def open_firings(
    line: Line, limit: int, chunk: int, *, first: int | None = None, late: bool = False, look: Look = EVERYTHING
) -> list[OpenFiring]:
    """Those that are on time, or those that are late. The first chunk of one that is on time is `first` long."""
    name, more = ("late_firings", ()) if late else ("open_firings", (first or chunk,))
    return [OpenFiring(*row) for row in await line.fetch(name, limit, chunk, look.numbers, look.overdue, *more)]


class Awaited(NamedTuple):
    """Who waits for the next chunk."""

    counts: dict[Flow, int]
    weights: dict[int, int]
    flows: dict[int, Flow]
    """By spec."""
    limited: frozenset[int] = frozenset()
    """Specs whose runs are let in one after the other: they are ranked when they are."""
    graphs: bool = False
    """Whether graphs are among them, which are fired apart."""


async def firing_flows(line: Line, firings: Sequence[OpenFiring]) -> Awaited:
    """How many runs the next chunk will make per flow, the tenants' weights, and which flow each spec belongs to.

    Firings that are late and firings that are on time do not come together.
    """
    rows = await line.fetch(
        "firing_flows",
        [firing.schedule for firing in firings],
        [firing.at for firing in firings],
        [firing.done_through for firing in firings],
        [firing.upto for firing in firings],
    )
    limited = frozenset(row["spec"] for row in rows if row["limited"])
    awaited = Awaited({}, {}, {}, limited, any(row["graphs"] for row in rows))
    for row in rows:
        if row["limited"] or not row["runs"]:
            continue
        flow = awaited.flows[row["spec"]] = Flow(row["lane"], row["tenant"], row["priority"])
        awaited.counts[flow] = awaited.counts.get(flow, 0) + row["runs"]
        awaited.weights[flow.tenant] = row["weight"]
    return awaited


class Fired(NamedTuple):
    fired: int
    skipped: int
    passed_over: int = 0
    """Jobs that did not want the instant so late."""
    entering: Sequence[int] = ()
    """Runs that are to be let in, in the same transaction (`admission.enter`)."""


async def fire_chunk(connection: Connection, firings: Sequence[OpenFiring], ranks: Ranks, awaited: Awaited) -> Fired:
    """Make the runs of these firings' next jobs and move the firings on; those that others moved are left alone."""
    (row,) = await connection.fetch(SQL["fire_chunk"], *chunk_terms(firings, ranks, awaited))
    return Fired(row["fired"], row["skipped"], row["passed_over"], row["enter"] or ())


def chunk_terms(firings: Sequence[OpenFiring], ranks: Ranks, awaited: Awaited) -> Iterator[Any]:
    """What the statement is told, in order."""
    yield [firing.schedule for firing in firings]
    yield [firing.at for firing in firings]
    yield [firing.done_through for firing in firings]
    yield [firing.upto for firing in firings]
    yield [firing.is_last for firing in firings]
    yield ranks.ids[0]
    numbers = {flow: number for number, flow in enumerate(ranks.flows)}
    # Sorted: the statement bisects. What had no rank set aside is left out, and left to promote.
    flows = [(spec, flow) for spec, flow in sorted(awaited.flows.items()) if flow in numbers]
    yield [spec for spec, _ in flows]
    yield [flow.lane for _, flow in flows]
    yield [numbers[flow] for _, flow in flows]
    yield [ranks.base(flow) for _, flow in flows]
    yield [step(awaited.weights[flow.tenant], Priority(flow.priority)) for _, flow in flows]
    yield sorted(awaited.limited)


async def rest_schedules(connection: Connection, schedules: Sequence[int]) -> None:
    """Stop firing schedules that nobody will need again; the next job that wants one wakes it."""
    await connection.fetch(SQL["rest_schedules"], await lock_to_fire(connection, schedules, wait=False))


async def seconds_to_next_fire(line: Line, look: Look = EVERYTHING, since: datetime | None = None) -> float | None:
    """By the database's clock; negative if it has come, none if nothing is scheduled."""
    return await line.fetchval("next_fire", look.numbers, since)  # type: ignore[no-any-return]
