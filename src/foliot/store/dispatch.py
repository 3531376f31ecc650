"""From ready to settled: claims, fences, outcomes."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import asyncpg
import msgspec

from foliot.domain.outcome import Ending, Outcome
from foliot.domain.suspicion import deaths
from foliot.store.admission import untying
from foliot.store.database import Line
from foliot.store.statements import SQL

LARGEST_CLAIM = 800
"""Runs in one claim: the array must fit on a page, because settle looks into it by position."""


class Claimed(msgspec.Struct, frozen=True, gc=False):
    """One run that a worker holds, as long as its claim stands."""

    fence: int
    position: int
    id: int
    rank: int
    tenant: int
    spec: int
    job: int | None
    attempt: int
    deaths: int
    scheduled_at: datetime
    target: bytes | None
    payload: bytes
    forgiven: int | None = None
    """Attempts before the last replay."""
    tied: bool | None = None
    """Whether it has ties: others wait for its end, so it is not to be ended without them (see `admission`)."""

    @property
    def failures(self) -> int:
        """Attempts that count against the retries: none from before a replay, and none that a worker's death ended."""
        return self.attempt - deaths(self.deaths) - (self.forgiven or 0)


class Settlement(msgspec.Struct, frozen=True, gc=False):
    """One attempt that ended: whose it was, when it began and how it ended."""

    run: Claimed
    started_at: datetime | None
    outcome: Outcome


async def claim(
    line: Line,
    worker: int,
    number: int,
    lanes: Sequence[int],
    marks: Sequence[int],
    most: int,
    portions: Sequence[int] | None = None,
    patience: timedelta = timedelta(),
) -> list[Claimed]:
    """Take up to `most` runs of these lanes, lowest rank first, of each lane up to its portion (all, if none is given).

    If there is nothing yet, wait for something to come, within `patience`.

    `number` names the claim, should the reply be lost.

    The same number never claims twice: if a lost claim turns out to have happened after all, what it took is returned.
    """
    try:
        most = min(most, LARGEST_CLAIM)
        asked = (worker, number, lanes, marks, most, portions or [most] * len(lanes))
        rows = await (line.fetch("claim_when_ready", *asked, patience) if patience else line.fetch("claim", *asked))
    except asyncpg.UniqueViolationError:
        return await reclaim(line, worker, number)
    return [Claimed(*row) for row in rows]


async def wait_for_work(line: Line, lanes: Sequence[int], marks: Sequence[int], patience: timedelta) -> None:
    """Return when there is something to claim, or within `patience`; takes nothing."""
    await line.fetch("claim_when_ready", 0, 0, lanes, marks, 0, [0] * len(lanes), patience)


async def reclaim(line: Line, worker: int, number: int) -> list[Claimed]:
    """What the claim of that number took; nothing if it never happened."""
    return [Claimed(*row) for row in await line.fetch("reclaim", worker, number)]


async def strays(line: Line, worker: int, known: Sequence[int]) -> list[Claimed]:
    """What stands in the worker's name besides the claims that it knows. None of its claims may be under way."""
    return [Claimed(*row) for row in await line.fetch("strays", worker, known)]


Called = Callable[[Sequence[int]], None]
"""Told of the lanes in which runs became ready that had waited for others."""


async def settle(line: Line, worker: int, batch: Sequence[Settlement], called: Called = lambda _: None) -> int:
    """Record successes; how many were still ours."""
    return await _end(line, worker, batch, _SUCCESSES, called)


async def conclude(line: Line, worker: int, batch: Sequence[Settlement], called: Called = lambda _: None) -> int:
    """Record every other ending; how many were still ours. Those that go on outside are handed over."""
    entrusted = [each for each in batch if each.outcome.ending is Ending.ENTRUSTED]
    ended = [each for each in batch if each.outcome.ending is not Ending.ENTRUSTED] if entrusted else batch
    ours = await line.fetchval("entrust", worker, *_entrusted(entrusted)) if entrusted else 0
    return ours + await _end(line, worker, ended, _OTHERS, called) if ended else ours


async def conclude_outside(
    line: Line, worker: int, batch: Sequence[Settlement], called: Called = lambda _: None
) -> int:
    """Record how attempts ended that went on outside, since this worker entrusted them; how many still did."""
    done, lanes = await _conclude_tied(line, worker, batch, outside=True)
    called(lanes)
    return done


class _Kind(NamedTuple):
    statement: str
    terms: Callable[[Sequence[Settlement]], Sequence[Any]]
    end_tied: Callable[[Line, int, Sequence[Settlement]], Awaitable[tuple[int, Sequence[int]]]]
    """How many were ours, and in which lanes something became ready."""


async def _end(line: Line, worker: int, batch: Sequence[Settlement], kind: _Kind, called: Called) -> int:
    """Tied runs let those go on that wait for them, in the same transaction; ordinary ones know nothing of that."""
    free = [each for each in batch if not each.run.tied]
    tied = [each for each in batch if each.run.tied] if len(free) < len(batch) else []
    done = await line.fetchval(kind.statement, worker, *kind.terms(free), False) if free else 0
    if done < len(free):
        rows = await line.fetch("tied_among", [each.run.id for each in free])
        since = {row["id"] for row in rows}
        tied += [each for each in free if each.run.id in since]
    if tied:
        ours, lanes = await kind.end_tied(line, worker, tied)
        called(lanes)
        done += ours
    return done


async def _settle_tied(line: Line, worker: int, batch: Sequence[Settlement]) -> tuple[int, Sequence[int]]:
    (row,) = await line.fetch("settle_tied", worker, *_successes(batch))
    return row["done"], row["lanes"]


async def _conclude_tied(
    line: Line, worker: int, batch: Sequence[Settlement], *, outside: bool = False
) -> tuple[int, Sequence[int]]:
    ids = [each.run.id for each in batch]
    async with line.borrow(atomic=True) as connection, untying(connection, ids, for_good=False) as untied:
        done = await connection.fetchval(SQL["conclude"], worker, *_other_endings(batch, outside=outside), True)
    return done, untied.lanes


def _successes(batch: Sequence[Settlement]) -> Sequence[Any]:
    fences = [each.run.fence for each in batch]
    return (
        [each.run.id for each in batch],
        fences,
        [each.run.position for each in batch],
        [each.started_at for each in batch],
        list(set(fences)),
    )


def _entrusted(batch: Sequence[Settlement]) -> Sequence[Any]:
    return (*_successes(batch), [each.outcome.delay for each in batch])


def _other_endings(batch: Sequence[Settlement], *, outside: bool = False) -> Sequence[Any]:
    fences = [each.run.fence for each in batch]
    return (
        [each.run.id for each in batch],
        fences,
        [each.run.position for each in batch],
        [each.started_at for each in batch],
        [each.outcome.ending for each in batch],
        [each.outcome.state for each in batch],
        [each.outcome.delay for each in batch],
        [each.outcome.error for each in batch],
        list(set(fences)),
        [each.outcome.error_class for each in batch],
        [each.outcome.result for each in batch],
        outside,
    )


_SUCCESSES: Final = _Kind("settle", _successes, _settle_tied)
_OTHERS: Final = _Kind("conclude", _other_endings, _conclude_tied)


async def settled(line: Line, worker: int, batch: Sequence[Settlement]) -> set[tuple[int, int]]:
    """Those of `batch` that are on record as settled by this worker, as (run, fence)."""
    runs = [each.run for each in batch]
    rows = await line.fetch(
        "settled",
        worker,
        [run.id for run in runs],
        [run.fence for run in runs],
        [run.tenant for run in runs],
        [each.outcome.ending for each in batch],
    )
    return {(row["run"], row["fence"]) for row in rows}


async def keep_late_results(line: Line, worker: int, lost: Sequence[Settlement], *, is_trusted: bool = True) -> None:
    """Write down what became of runs that are not ours any more, for people to see. May be repeated.

    Whoever is not trusted is believed only of runs of lanes that it serves, and not whose they are.
    """
    runs = [each.run for each in lost]
    await line.fetch(
        "keep_late_results" if is_trusted else "keep_told_results",
        worker,
        [run.id for run in runs],
        [run.fence for run in runs],
        [run.tenant for run in runs],
        [run.job for run in runs],
        [run.attempt + 1 for run in runs],
        [run.scheduled_at for run in runs],
        [each.started_at for each in lost],
        [each.outcome.ending for each in lost],
        [each.outcome.error for each in lost],
    )


async def note_started(line: Line, worker: int, begun: Sequence[tuple[Claimed, datetime]]) -> set[tuple[int, int]]:
    """Write down that these have begun, or are about to; which of them are still ours, as (run, fence)."""
    runs = [run for run, _ in begun]
    rows = await line.fetch(
        "note_started",
        worker,
        [run.id for run in runs],
        [run.fence for run in runs],
        [run.position for run in runs],
        [at for _, at in begun],
    )
    return {(row["id"], row["fence"]) for row in rows}


async def forget(line: Line, worker: int, fences: Sequence[int]) -> None:
    """Remove claims of which every run has been settled."""
    await line.fetch("forget", worker, fences)


async def publish(line: Line, highest: dict[int, int]) -> None:
    """Tell enqueuers how far each lane has been claimed."""
    lanes = sorted(highest)
    await line.fetch("publish", lanes, [highest[lane] for lane in lanes])
