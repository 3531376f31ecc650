"""Ending runs before their time: what waits ends at once, what a worker holds is asked to stop."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from foliot.domain.errors import Conflict
from foliot.kit.signals import FLEET, RECALL, recall_channel
from foliot.store.admission import untying
from foliot.store.database import Connection, Row
from foliot.store.outside import cancel_outside
from foliot.store.statements import SQL

_LOOKS: Final = 10
"""A run that changes its place with every look, ten times in a row, is not met twice in a lifetime."""
_MANY: Final = 20
"""Workers that are told one by one; more are told all together."""


class Stopped(NamedTuple):
    """What became of runs that were to stop. The rest had come to its end before."""

    ended: Sequence[int]
    asked: Sequence[int]
    channels: frozenset[str]
    """Where to give a hint once this is committed, so that workers hear of it at once."""
    lanes: Sequence[int]
    """In which something became ready that had waited for one of these."""


async def stop(connection: Connection, ids: Sequence[int], why: str) -> Stopped:
    """Have these runs come to their end, in the caller's transaction.

    What waits is cancelled when that commits. What a worker holds is asked to stop: it ends as cancelled within
    `fleet.STOPPED_WITHIN`, unless its success is recorded first, and is not run again in any case.
    """
    ended: list[int] = []
    asked: list[Row] = []
    lanes: list[int] = []
    left = sorted(set(ids))
    await connection.fetch(SQL["lock_owners"], left)
    for _ in range(_LOOKS):
        ended += await _ids(connection, "end_waiting_timers", left, why)
        async with _untying(connection, left, lanes):
            popped = await _ids(connection, "pop_ready", left)
            ended += await _ids(connection, "end_waiting_runs", left, why, popped)
            ended += await cancel_outside(connection, left, why)
        asked += await connection.fetch(SQL["ask_to_stop"], left)
        done = {*ended, *(row["id"] for row in asked)}
        left = await _ids(connection, "still_there", [run for run in left if run not in done])
        if not left:
            return Stopped(ended, [row["id"] for row in asked], _channels(asked), lanes)
    raise Conflict("the run changes its state at this very moment", "repeat the call")


async def stop_held(connection: Connection, job: int) -> frozenset[str]:
    """End what goes on outside of a job that is locked, and ask for the end of what workers hold; nothing else is left.

    Returns the channels on which to give a hint.
    """
    left = await _ids(connection, "held_runs_of_job", job)
    if not left:
        return frozenset()
    async with _untying(connection, left, []):
        await cancel_outside(connection, left, "the job was cancelled")
    return _channels(await connection.fetch(SQL["ask_to_stop"], left))


async def recall_held(connection: Connection, job: int) -> frozenset[str]:
    """Have workers hand back what they hold of a job that was just paused, unless it has begun; channels as above."""
    return _channels(await connection.fetch(SQL["recall_runs_of_job"], job))


async def still_theirs(connection: Connection, tenant: int, runs: Sequence[int]) -> list[int]:
    """Those of these runs that are the tenant's and have not ended."""
    return await _ids(connection, "still_theirs", tenant, runs)


async def is_in_outbox(connection: Connection, tenant: int, run: int) -> bool:
    """Whether it came out of somebody's transaction just now, and has no place yet."""
    return await connection.fetchval(SQL["is_in_outbox"], tenant, run)  # type: ignore[no-any-return]


@asynccontextmanager
async def _untying(connection: Connection, ids: Sequence[int], lanes: list[int]) -> AsyncIterator[None]:
    """What happens meanwhile lets those go on that wait for these; `lanes` hears in which they are."""
    tied = await _ids(connection, "tied_among", ids)
    if not tied:
        yield
        return
    async with untying(connection, tied, for_good=True) as untied:
        yield
    lanes += untied.lanes


async def _ids(connection: Connection, name: str, *arguments: object) -> list[int]:
    return [row[0] for row in await connection.fetch(SQL[name], *arguments)]


def _channels(told: Iterable[Row]) -> frozenset[str]:
    remote = {RECALL for row in told if row["is_remote"]}
    near = {recall_channel(row["worker"]) for row in told if not row["is_remote"]}
    return frozenset({FLEET} if len(near) > _MANY else near | remote)
