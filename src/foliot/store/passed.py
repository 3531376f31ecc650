"""Ready runs that claimers have gone past: where they lie, and how they come back to where claimers look."""

from collections.abc import Sequence
from typing import NamedTuple

from foliot.store.database import Line
from foliot.store.rerank import shift
from foliot.store.statements import SQL


class Passed(NamedTuple):
    lane: int
    rank: int
    run: int
    job: int | None


class Slice(NamedTuple):
    """Some pages of the table `ready`."""

    pages: int
    """That there are in all."""
    passed: list[Passed]


async def heads(line: Line) -> dict[int, int]:
    """How far each lane has been claimed."""
    return dict(await line.fetch("heads"))


async def passed_over(line: Line, heads: dict[int, int], first: int, pages: int) -> Slice:
    """Those that stand below their lane's head and in these pages, which cost the same however many there are dead."""
    lanes = sorted(heads)
    rows = await line.fetch("passed_over", first, pages, lanes, [heads[lane] for lane in lanes])
    return Slice(rows[0]["pages"], [Passed(*row[1:]) for row in rows if row["run"] is not None])


async def lift(line: Line, lane: int, passed: Sequence[Passed], below: int) -> int:
    """Let these runs of a lane, in the order of their ranks, be the last ones before its head, but for `below` of them.

    None is lowered, and none changes places with another. How many moved; what a claimer has hold of does not, nor what
    stands there already.
    """
    async with line.borrow(atomic=True) as connection:
        head = await connection.fetchval(SQL["head"], lane)
        first = head - below - len(passed)
        ranks = [max(each.rank, place) for place, each in enumerate(passed, first)]
        jobs = {each.job for each in passed if each.job is not None}
        return await shift(connection, lane, [each.run for each in passed], [each.rank for each in passed], ranks, jobs)
