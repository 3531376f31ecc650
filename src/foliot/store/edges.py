"""Which job waits for which: edges and places as they are read and written, one step at a time (see `wiring`)."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec

from foliot.domain.errors import InvalidField
from foliot.domain.graph import Edge, Need, When
from foliot.domain.ids import decode, encode
from foliot.domain.job import Draft, Gate, Kind, Overlap
from foliot.domain.states import State
from foliot.domain.wiring import Member, Place
from foliot.store import jobs
from foliot.store.database import Connection
from foliot.store.statements import SQL

_RECURRENCES: Final = frozenset({"cronExpression", "every", "rrule", "when"})
_TERMS: Final = ("scheduleAt", "endsAt", "maxRuns", "catchUp", "jitter")
_ALWAYS: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Before every instant that a schedule can have."""
_LOST: Final = {
    State.SUCCEEDED: "has succeeded, so it will not fail",
    State.CANCELLED: "was cancelled",
    State.UNKNOWN: "was lost with its worker",
    State.SKIPPED: "was skipped",
    State.DISCARDED: "failed and was discarded",
}


class Wired(NamedTuple):
    """Jobs that hang together with those that somebody makes or changes, and how."""

    members: dict[int, Member]
    edges: list[Edge]


async def lock_graphs(connection: Connection, tenant: int) -> None:
    """Whoever makes, changes or ends what depends on others does this first of all."""
    await connection.fetch(SQL["lock_graphs"], tenant)


async def read_graphs(connection: Connection, tenant: int, numbers: Iterable[int]) -> Wired:
    """These jobs, all that are in a graph with them, and the edges between those."""
    rows = await connection.fetch(SQL["members"], tenant, list(numbers))
    members = {row["id"]: _member(row) for row in rows}
    found = await connection.fetch(SQL["edges"], list(members))
    edges = [Edge(row["parent"], row["child"], When(row["condition"])) for row in found if row["parent"] in members]
    return Wired(members, edges)


def _member(row: Any) -> Member:
    timing = msgspec.json.decode(row["timing"])
    kind = Kind(row["kind"])
    own = kind if kind is Kind.ONE_TIME else Kind.RECURRING if timing.keys() & _RECURRENCES else Kind.ON_DEMAND
    return Member(
        id=row["id"],
        label=row["key"] or row["name"],
        own_kind=own,
        schedule=row["schedule"],
        terms=terms_of(timing),
        overlap=Overlap.stored(row["overlap"], exclusive=True),
        gate=Gate(row["gate"]),
        head=row["head"],
        run=row["run"],
    )


def terms_of(timing: Mapping[str, Any]) -> dict[str, Any]:
    return {name: timing[name] for name in _TERMS if name in timing}


def member_of(job: int, draft: Draft, schedule: int | None) -> Member:
    """A job that is about to be."""
    label = draft.key or draft.name
    return Member(job, label, draft.own_kind, schedule, terms_of(draft.timing), draft.overlap)


async def resolve(
    connection: Connection,
    tenant: int,
    needs: Mapping[int, Sequence[Need]],
    own: Mapping[str, int],
    places: Mapping[int, str],
) -> list[Edge]:
    """The edges that these jobs ask for: by id, by a key of the tenant's, or by the key of one that is made with them.

    `places` say where in the call each of them stands. Another tenant's job is as unknown as one that never was.
    """
    wanted = {need.job for each in needs.values() for need in each} - own.keys()
    numbers = {number: text for text in wanted if (number := _number(text)) is not None}
    rows = await connection.fetch(SQL["find_parents"], tenant, list(numbers), list(wanted - set(numbers.values())))
    found = {numbers[row["id"]]: row["id"] for row in rows if row["id"] in numbers}
    found |= {row["key"]: row["id"] for row in rows if row["key"] in wanted}
    found |= own
    edges: dict[tuple[int, int], Edge] = {}
    for child, each in needs.items():
        for index, need in enumerate(each):
            place = f"{places[child]}dependsOn[{index}]"
            if (parent := found.get(need.job)) is None:
                raise InvalidField(place, f"there is no job {need.job!r}", "name a job by its id or by its key")
            if edges.setdefault((parent, child), Edge(parent, child, need.when)).when is not need.when:
                raise InvalidField(place, f"{need.job!r} stands there twice", "name each job once")
    return list(edges.values())


def _number(text: str) -> int | None:
    try:
        return decode("job", text)
    except InvalidField:
        return None


async def write_edges(connection: Connection, edges: Sequence[Edge], after: datetime | None = None) -> None:
    """Let these hold for instants after `after`, or for all of a job that is new."""
    if not edges:
        return
    counts: dict[int, int] = {}
    places = []
    for edge in edges:
        places.append(counts.get(edge.child, 0))
        counts[edge.child] = places[-1] + 1
    await connection.execute(
        SQL["depend"],
        [edge.child for edge in edges],
        [edge.parent for edge in edges],
        [edge.when for edge in edges],
        places,
        [after or _ALWAYS] * len(edges),
    )


async def end_edges(connection: Connection, children: Sequence[int], now: datetime) -> None:
    """What these jobs waited for they do not wait for any more, at instants after `now`."""
    await connection.execute(SQL["depend_no_more"], children, now)


async def place(connection: Connection, places: Mapping[int, Place]) -> None:
    """Note where jobs belong."""
    if places:
        await connection.execute(
            SQL["place_members"],
            list(places),
            [each.head for each in places.values()],
            [each.kind for each in places.values()],
            [each.schedule for each in places.values()],
        )


async def resubscribe(
    connection: Connection, before: Mapping[int, Member], places: Mapping[int, Place], now: datetime
) -> None:
    """Give the instants after `now` of jobs whose place has changed to what they are now; their schedules are locked.

    Those that stay or become the head of a graph, or leave it, keep the bounds of what they own.
    """
    moved = [
        job for job, each in places.items() if (before[job].head, before[job].schedule) != (each.head, each.schedule)
    ]
    leading = [job for job in moved if places[job].head in {None, job} and before[job].schedule == places[job].schedule]
    led = [job for job in moved if job not in set(leading)]
    if leading:
        await connection.execute(SQL["split_subscription"], leading, now)
        await connection.execute(SQL["end_split"], leading, now)
    if led:
        await jobs.unsubscribe(connection, led, now, closed=False)
    await follow_head(connection, [job for job in led if places[job].head is not None], now)


async def follow_head(connection: Connection, members: Sequence[int], now: datetime) -> None:
    """Let jobs be fired with the first root of their graph, from now on."""
    if members:
        await connection.execute(SQL["follow_head"], members, now)


async def tie(connection: Connection, edges: Sequence[Edge], runs: Mapping[int, int | None]) -> None:
    """Let the runs of one-time jobs wait for those of their parents; `runs` by job."""
    pairs = [(runs[edge.child], runs[edge.parent], edge.when, edge.parent) for edge in edges]
    if not pairs:
        return
    children, parents, conditions, numbers = zip(*pairs, strict=True)
    rows = await connection.fetch(SQL["tie_to_parents"], children, parents, conditions)
    if rows:
        job = dict(zip(parents, numbers, strict=True))[rows[0]["parent"]]
        said = _LOST.get(State(rows[0]["fate"]), "has ended")
        raise InvalidField(
            "dependsOn", f"the run of {encode('job', job)} {said}", "what this job waits for cannot come any more"
        )
