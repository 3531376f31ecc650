"""What is done for many remote workers at once: claims, settlements, heartbeats."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any, Final, NamedTuple

import asyncpg

from foliot.store.admission import untying
from foliot.store.database import Database, Line, Row
from foliot.store.dispatch import Called
from foliot.store.fleet import About, Standing, standing_of
from foliot.store.statements import SQL

NOBODY: Final = 0
"""No worker has this id: a claim in its name is nobody's, and taken back by the next reap."""


class NumberUsed(Exception):  # noqa: N818 - reads aloud
    """A worker has used the number of its claim before: its reply was lost, or is still on its way."""


class Want(NamedTuple):
    """One worker's wish: up to so many runs, under the number that it chose for this claim."""

    worker: int
    number: int
    most: int


class Scan(NamedTuple):
    """Where to look: lanes in order, each from its mark on and for its portion at most."""

    lanes: Sequence[int]
    marks: Sequence[int]
    portions: Sequence[int]


class Part(NamedTuple):
    """Successes of one claim: runs at their positions in it, each with the instant at which its handler began."""

    worker: int
    fence: int
    runs: Sequence[int]
    positions: Sequence[int]
    started_at: Sequence[datetime]


class Arrival(NamedTuple):
    """A worker that makes itself known, with the key that it calls with and the lanes that it serves."""

    worker: int
    name: str
    key: str
    about: About
    lanes: Sequence[int]


class Beat(NamedTuple):
    """A worker that lives, and what it has in hand: lane by lane in the order of its registration, or nothing told.

    `known` are the fences of the claims that it knows of.
    """

    worker: int
    running: Sequence[int] = ()
    rate: Sequence[float] = ()
    known: Sequence[int] = ()


class Begun(NamedTuple):
    worker: int
    run: int
    fence: int
    at: datetime


async def claim_for_many(line: Line, wants: Sequence[Want], scan: Scan, owners: Sequence[int]) -> list[Row]:
    """Pop the lowest ranks; the run at each place goes to the want whose index `owners` has there.

    Rows of one worker follow each other. `NumberUsed` if any of the numbers was used before: then nothing happened.
    """
    workers, numbers = [want.worker for want in wants], [want.number for want in wants]
    places = [owner + 1 for owner in owners]
    try:
        return await line.fetch(
            "claim_for_many", workers, numbers, scan.lanes, scan.marks, len(places), places, scan.portions
        )
    except asyncpg.UniqueViolationError:
        raise NumberUsed from None


async def fetch_again(line: Line, worker: int, number: int) -> list[Row]:
    """What the claim of that number took; nothing if it never happened, or was handed back."""
    return await line.fetch("fetch_again", worker, number)


async def strays_for_many(line: Line, known: Mapping[int, Sequence[int]]) -> list[Row]:
    """What stands in the name of each of these workers besides the claims that it knows."""
    return await line.fetch("strays_for_many", list(known), [fence for fences in known.values() for fence in fences])


async def disown(line: Line, worker: int, fence: int, claimed_at: datetime) -> bool:
    """Make a claim nobody's, so that the next reap takes it back; false if it was fetched again since `claimed_at`."""
    return bool(await line.fetch("disown", worker, fence, claimed_at))


async def settle_for_many(
    line: Line, parts: Sequence[Part], called: Called = lambda _: None
) -> set[tuple[int, int]] | None:
    """Record successes. None if all were still held; else those that were, as (run, fence).

    What workers say is not asked which runs are tied: those stay behind the first time, and are settled apart.
    """
    (row,) = await line.fetch("settle_for_many", *_terms(parts), False)
    if row["runs"] is None:
        return None
    covered = set(zip(row["runs"], row["fences"], strict=True))
    tied = {row["id"] for row in await line.fetch("tied_among", [run for part in parts for run in part.runs])}
    if tied:
        left = [_only(part, tied) for part in parts if not tied.isdisjoint(part.runs)]
        async with line.borrow(atomic=True) as connection, untying(connection, sorted(tied), for_good=True) as untied:
            row = await connection.fetchrow(SQL["settle_for_many"], *_terms(left), True)
        called(untied.lanes)
        if row["runs"] is None:
            covered |= {(run, part.fence) for part in left for run in part.runs}
        else:
            covered |= set(zip(row["runs"], row["fences"], strict=True))
    return covered


def _only(part: Part, runs: set[int]) -> Part:
    chosen = [place for place, run in enumerate(part.runs) if run in runs]
    return part._replace(
        runs=[part.runs[place] for place in chosen],
        positions=[part.positions[place] for place in chosen],
        started_at=[part.started_at[place] for place in chosen],
    )


def _terms(parts: Sequence[Part]) -> tuple[Sequence[Any], ...]:
    firsts, lasts = _places(len(part.runs) for part in parts)
    return (
        [part.fence for part in parts],
        [part.worker for part in parts],
        firsts,
        lasts,
        [run for part in parts for run in part.runs],
        [position for part in parts for position in part.positions],
        [at for part in parts for at in part.started_at],
    )


async def forget_for_many(line: Line, claims: Iterable[tuple[int, int]]) -> None:
    """Remove claims, given as (worker, fence), that cover no run any more."""
    pairs = sorted(claims, key=lambda claim: claim[1])
    await line.fetch("forget_for_many", [fence for _, fence in pairs], [worker for worker, _ in pairs])


async def note_started_for_many(line: Line, begun: Iterable[Begun]) -> set[tuple[int, int]]:
    """Write down that these have begun; which of them are still held by their workers, as (run, fence)."""
    rows = sorted(begun, key=lambda each: each.run)  # rows of `run` are locked by id, here as everywhere
    held = await line.fetch("note_started_for_many", *(list(column) for column in zip(*rows, strict=True)))
    return {(row["id"], row["fence"]) for row in held}


async def beat_for_many(line: Line, beats: Sequence[Beat]) -> dict[int, Standing]:
    """Renew the leases of these workers, each named once; how those stand that are not declared dead."""
    firsts, lasts = _places(len(beat.running) for beat in beats)
    rows = await line.fetch(
        "beat_for_many",
        [beat.worker for beat in beats],
        firsts,
        lasts,
        [number for beat in beats for number in beat.running],
        [number for beat in beats for number in beat.rate],
        *_places(len(beat.known) for beat in beats),
        [fence for beat in beats for fence in beat.known],
    )
    return {row["id"]: standing_of(row, is_astray=row["is_astray"]) for row in rows}


async def news_of(line: Line, workers: Sequence[int]) -> tuple[list[int], frozenset[int], int]:
    """Those of these workers that are to leave, are taken for dead, or hold what is to stop.

    And all paused lanes, and the newest of those that require labels.
    """
    (row,) = await line.fetch("news_of", workers)
    return row["changed"], frozenset(row["paused"]), row["newest"]


async def introduce(line: Line, arrivals: Sequence[Arrival]) -> None:
    """Make workers known, each as that of its key. What is known already does not change."""
    columns = zip(*((each.worker, each.name, each.key, *each.about) for each in arrivals), strict=True)
    lanes = [lane for each in arrivals for lane in each.lanes]
    places = _places(len(each.lanes) for each in arrivals)
    await line.fetch("introduce_workers", *map(list, columns), *places, lanes)


async def keys_of(line: Line, workers: Sequence[int]) -> dict[int, str]:
    """The keys that registered these workers; nothing for those that do not exist or are not remote ones."""
    return {row["id"]: row["key"] for row in await line.fetch("worker_keys", workers)}


async def queues_of(database: Database, lanes: Sequence[int]) -> dict[int, str]:
    return {row["id"]: row["queue"] for row in await database.fetch("lane_queues", lanes)}


async def spec_bodies(line: Line, ids: Sequence[int]) -> list[tuple[int, int, bytes, str, bytes]]:
    """Each spec, with its lane, its body, its tenant, and the key for its calls."""
    return [tuple(row) for row in await line.fetch("fetch_specs", ids)]


def _places(sizes: Iterable[int]) -> tuple[list[int], list[int]]:
    """The first and the last places of parts of these sizes that stand behind each other, counted from 1."""
    lasts = list(accumulate(sizes))
    return [1, *(last + 1 for last in lasts[:-1])], lasts
