"""What handlers tell of their work while it goes on. Every word carries the fence; what comes back is what was ours."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from foliot.domain.report import Progress
from foliot.store.database import Database, Line

NOTHING = Progress()


class Report(NamedTuple):
    """What the attempt of a run by a claim says of itself."""

    run: int
    fence: int
    progress: Progress | None
    at: datetime
    state: bytes | None
    """A checkpoint."""
    tenant: int = 0
    """Whose run it is, where that is known."""


async def report(line: Line, worker: int, reports: Sequence[Report]) -> set[tuple[int, int]]:
    """Keep the last word of each attempt; which attempts are still ours, as (run, fence)."""
    told = [each.progress or NOTHING for each in reports]
    rows = await line.fetch(
        "report",
        worker,
        [each.run for each in reports],
        [each.fence for each in reports],
        [each.progress is not None for each in reports],
        [each.fraction for each in told],
        [each.done for each in told],
        [each.total for each in told],
        [each.message for each in told],
        [each.at for each in reports],
        [each.state for each in reports],
    )
    return {(row["run"], row["fence"]) for row in rows}


async def last_checkpoint(line: Line, worker: int, run: int, fence: int) -> bytes | None:
    """What was saved last for a run that this worker holds; nothing if it does not."""
    return await line.fetchval("last_checkpoint", worker, run, fence)  # type: ignore[no-any-return]


class Said(NamedTuple):
    """What an attempt said last."""

    fraction: float | None
    done: float | None
    total: float | None
    message: str | None
    at: datetime


async def progress_of_runs(database: Database, tenant: int, runs: Sequence[int]) -> dict[int, Said]:
    """What the last attempt that spoke said, by run."""
    rows = await database.fetch("progress_of_runs", runs, tenant) if runs else []
    return {row["run"]: Said(*tuple(row)[2:]) for row in rows}


async def progress_of_attempts(
    database: Database, tenant: int, attempts: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], Said]:
    """What these attempts, given as (run, fence), said last."""
    if not attempts:
        return {}
    runs, fences = zip(*attempts, strict=True)
    rows = await database.fetch("progress_of_attempts", runs, fences, tenant)
    return {(row["run"], row["fence"]): Said(*tuple(row)[2:]) for row in rows}


async def tenants_of(line: Line, runs: Sequence[int]) -> dict[int, int]:
    """Whose these runs are, as far as they have not ended, or are dead letters."""
    return {row["id"]: row["tenant"] for row in await line.fetch("tenants_of_runs", runs)}
