"""The past of a job that is to be filled: its instants, and whether anything stands against it."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from foliot.domain import backfill
from foliot.domain.backfill import MOST_INSTANTS, Range
from foliot.domain.calendar import Calendar
from foliot.domain.errors import Conflict, InvalidField
from foliot.domain.ids import encode
from foliot.domain.job import Gate
from foliot.domain.schedule import next_fire, parse_key
from foliot.store import operations as store
from foliot.store.database import Connection
from foliot.store.reading import JobRow

_SLICE: Final = 500
"""Instants that are worked out before others get their turn: some 20 ms."""


async def instants(row: JobRow, range_: Range, calendars: Mapping[str, Calendar]) -> list[datetime]:
    """The instants of the range, worked out in slices: others are served in between."""
    if row.schedule_key is None:
        raise Conflict("the job has no recurrence", "only recurring jobs have a past to fill; run this one with :run")
    recurrence = parse_key(row.schedule_key, calendars)
    found: list[datetime] = []
    for at in backfill.instants(recurrence, range_):
        if len(found) == MOST_INSTANTS:
            raise backfill.refuse_too_many(recurrence, range_, found[-1])
        found.append(at)
        if len(found) % _SLICE == 0:
            await asyncio.sleep(0)
    if not found:
        following = next_fire(recurrence, range_.since)
        hint = "it never fires after from" if following is None else f"it fires at {following:%Y-%m-%dT%H:%M:%SZ}"
        raise InvalidField("until", "the schedule has no instant between from and until", hint)
    return found


async def refuse_overlap(connection: Connection, job: int, range_: Range) -> None:
    if (other := await store.overlapping_operation(connection, job, range_)) is not None:
        name = encode("op", other)
        raise Conflict(f"{name} fills some of the same instants", f"wait for its end, or cancel it: {name}:cancel")


def refuse_closed(gate: Gate) -> None:
    if gate is Gate.PAUSED:
        raise Conflict("the job is paused", "resume it first: nothing of a paused job runs")
    if gate is Gate.CANCELLED:
        raise Conflict("the job is cancelled", "create a new one")
