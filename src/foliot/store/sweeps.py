"""Operations on dead letters: how far they have walked, and what they were allowed so far."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from foliot.domain.letters import Selection, Sweep
from foliot.domain.operation import OperationKind
from foliot.store.database import Connection, Line
from foliot.store.jobs import draw_ids
from foliot.store.letters import Rankable, encoded
from foliot.store.statements import SQL


class Counted(NamedTuple):
    total: int
    refused: int
    """Of these: their jobs are cancelled."""


async def count_letters(connection: Connection, tenant: int, selection: Selection, until: datetime) -> Counted:
    return Counted(*await connection.fetchrow(SQL["count_letters"], tenant, encoded(selection), until))


async def insert_sweep(connection: Connection, tenant: int, asked: Sweep, total: int, now: datetime) -> int:
    """Write down what is to be done with the dead letters of until `now`; the new operation's id."""
    (id_,) = await draw_ids(connection, 1)
    await connection.execute(
        SQL["insert_sweep"],
        id_,
        tenant,
        asked.kind,
        asked.selection.job,
        asked.name,
        msgspec.json.encode(asked.arguments).decode(),
        encoded(asked.selection),
        asked.per_second,
        asked.concurrency,
        total,
        now,
    )
    return id_


class HungrySweep(NamedTuple):
    """A sweep that could have `room` more runs under way, if its pace allows."""

    id: int
    tenant: int
    weight: int
    kind: OperationKind
    selection: str
    created_at: datetime
    done_through: int
    per_second: float | None
    paced_until: datetime | None
    room: int
    now: datetime


async def hungry_sweeps(line: Line, operations: Sequence[int], now: datetime | None) -> list[HungrySweep]:
    rows = await line.fetch("hungry_sweeps", operations, now)
    return [HungrySweep(**{**row, "kind": OperationKind(row["kind"])}) for row in rows]


async def next_letters(line: Line, sweep: HungrySweep, limit: int) -> list[Rankable]:
    """The dead letters that come next."""
    rows = await line.fetch(
        "next_letters", sweep.tenant, sweep.done_through, sweep.created_at, sweep.selection, limit, sweep.weight
    )
    return [Rankable(*row) for row in rows]


async def lock_sweep(connection: Connection, sweep: HungrySweep) -> bool:
    """False if it is over, or served by another one."""
    return bool(await connection.fetch(SQL["lock_sweep"], sweep.id, sweep.done_through))


class Step(NamedTuple):
    """What one transaction did for a sweep."""

    done: Sequence[int]
    """Runs that were replayed, or discarded."""
    refused: int
    is_last: bool
    """There are no more of them."""
    done_through: int
    paced_until: datetime | None


async def move_sweep(connection: Connection, sweep: HungrySweep, step: Step) -> None:
    """Note what was done. Replayed runs are followed to their end; what is discarded has come to its own."""
    followed = list(step.done) if sweep.kind is OperationKind.REPLAY else []
    await connection.execute(
        SQL["move_sweep"],
        sweep.id,
        followed,
        len(step.done),
        len(step.done) - len(followed),
        step.refused,
        step.is_last,
        step.done_through,
        step.paced_until,
    )
