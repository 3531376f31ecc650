"""Dead letters: looked through, brought back, given up."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from foliot.domain.letters import MOST_ATTEMPTS, Selection
from foliot.domain.spec import Spec
from foliot.store.admission import enter, untying
from foliot.store.database import Connection, Database, Line, Row
from foliot.store.flows import Flow
from foliot.store.statements import SQL

FOREVER: Final = datetime.max.replace(tzinfo=UTC)


class LetterRow(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    job: int | None
    spec: Spec
    scheduled_at: datetime
    died_at: datetime
    attempt: int
    error: str | None
    error_class: str | None
    target: bytes | None
    payload: bytes | None = None


def _letter(row: Row) -> LetterRow:
    return LetterRow(spec=Spec.parse(row["spec_body"]), **{k: v for k, v in row.items() if k != "spec_body"})


def encoded(selection: Selection) -> str:
    return msgspec.json.encode(selection).decode()


async def list_letters(
    database: Database, tenant: int, selection: Selection, *, below: int, limit: int
) -> list[LetterRow]:
    """Newest runs first, ids below `below`."""
    rows = await database.fetch_anew("list_letters", tenant, below, encoded(selection), limit)
    return [_letter(row) for row in rows]


async def find_letter(database: Database, tenant: int, run: int) -> LetterRow | None:
    row = await database.fetchrow("find_letter", tenant, run)
    return None if row is None else _letter(row)


class Rankable(NamedTuple):
    """A dead letter, with what is needed to rank it when it comes back."""

    id: int
    lane: int
    tenant: int
    priority: int
    weight: int

    @property
    def flow(self) -> Flow:
        return Flow(self.lane, self.tenant, self.priority)


async def letters_to_rank(database: Database, tenant: int, runs: Sequence[int]) -> list[Rankable]:
    return [Rankable(*row) for row in await database.fetch("letters_to_rank", tenant, runs)]


class Replayed(NamedTuple):
    """What became of one dead letter: replayed, or refused because it is worn out or its job is over."""

    id: int
    done: bool
    is_worn_out: bool
    enters: bool = False
    """Whether it had to wait for its turn, or for nobody's."""


async def replay(
    connection: Connection, tenant: int, ranks: Mapping[int, int], note: str, until: datetime = FOREVER
) -> list[Replayed]:
    """Bring back these dead letters, given with their ranks, if they died `until` then. What is none is not told of."""
    numbers, places = list(ranks), list(ranks.values())
    await connection.fetch(SQL["lock_letter_owners"], numbers)
    async with _waited_for(connection, numbers):
        rows = await connection.fetch(SQL["replay"], tenant, numbers, places, until, note, MOST_ATTEMPTS)
        told = [Replayed(*row) for row in rows]
        await enter(connection, [each.id for each in told if each.enters])
    return told


async def discard(
    connection: Connection, tenant: int, runs: Sequence[int], note: str, until: datetime = FOREVER
) -> list[int]:
    """Give up those of these dead letters that died `until` then; which they were."""
    async with _waited_for(connection, runs):
        return [row["id"] for row in await connection.fetch(SQL["discard"], tenant, runs, until, note)]


@asynccontextmanager
async def _waited_for(connection: Connection, runs: Sequence[int]) -> AsyncIterator[None]:
    """Those of these that are in a graph have ties, though they are dead: what becomes of them is told there."""
    tied = await connection.fetchval(SQL["tied_letters"], runs)
    if not tied:
        yield
        return
    async with untying(connection, tied, for_good=True):
        yield


async def expire(line: Line, keep: timedelta, most: int = 1_000) -> int:
    """Give up some of the dead letters that are older than `keep`; how many."""
    gone = 0
    for row in await line.fetch("old_letters", keep, most):
        note = f"nobody replayed it within {keep.days} days"
        async with line.borrow(atomic=True) as connection:
            gone += len(await discard(connection, row["tenant"], row["ids"], note))
    return gone


async def per_queue(database: Database) -> dict[str, int]:
    return {row["queue"]: row["letters"] for row in await database.fetch("letters_per_queue")}
