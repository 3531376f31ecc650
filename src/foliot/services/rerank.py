"""Ranking a backlog anew after its tenant's weight has changed: a page at a time, while claims and arrivals go on."""

import asyncio
from datetime import timedelta
from typing import Final

import structlog

from foliot.domain.fairness import Priority, step
from foliot.domain.rerank import Rerank, begin, catch_up, draw_together, spread_out
from foliot.store import rerank
from foliot.store.database import Connection, Database
from foliot.store.flows import Flow
from foliot.store.recovery import is_contended
from foliot.store.rerank import Ends

log = structlog.get_logger("scheduler")

PAGE: Final = 1_000
"""Rows of a lane that one transaction looks at: well under 100 ms, also if all of them move."""
LANDING: Final = timedelta(seconds=1)
"""A rank that was given out is used within this time, or never."""
LAST_PAGE: Final = 10_000
LAST_MOVES: Final = 2_500
"""Rows of the lane, and runs of the flow, that may be left for the last page, which arrivals wait for. A flow that
takes in more than this while ranks land is followed until it takes a breath."""
_STRAGGLERS: Final = 20
_MOMENT: Final = 0.005
"""Seconds between looks for the last rank that was given out, and how many: arrivals wait meanwhile."""


class Reranker:
    """Any number of these may run: a flow is moved by whoever holds its row.

    Inside a flow the order stays what it was, whenever one looks. While a page is on the move, for some milliseconds,
    claims pass over it as they pass over what another claimer is taking. A run that is inserted later than `LANDING`
    after it was ranked keeps its place.
    """

    def __init__(self, database: Database, landing: timedelta = LANDING, page: int = PAGE) -> None:
        # Runs are moved to where V was a moment ago, and claimers look that far back for two seconds: a page that takes
        # longer than one is given up. A commit that is lost loses the page and the note of it together.
        self._line = database.line(lock_timeout="200ms", statement_timeout="1s", synchronous_commit="off")
        self._landing = landing
        self._page = page

    async def run_once(self) -> int:
        """Move one page of each flow; how many rows of lanes were dealt with."""
        done, after = 0, Flow(0, 0, 0)
        while flows := await rerank.unfinished(self._line, after, 100):
            for flow in flows:
                done += await self._try(flow)
            after = flows[-1]
        return done

    async def pause(self) -> float:
        return 0.5

    async def close(self) -> None:
        await self._line.close()

    async def _try(self, flow: Flow) -> int:
        try:
            async with self._line.borrow(atomic=True) as connection:
                return await self._move_page(connection, flow)
        except Exception as error:
            if not is_contended(error):
                raise
            return 0  # others must not wait for it

    async def _move_page(self, connection: Connection, flow: Flow) -> int:
        held = await rerank.hold(connection, flow, self._landing)
        if held is None or held.landed is None:
            return 0
        work = catch_up(held.work, held.ends.virtual)
        if not work.draws_together:
            return await self._spread_out(connection, flow, work, held.ends.virtual)
        if work.place < held.landed:
            return await self._draw_together(connection, flow, work, held.landed)
        return await self._finish(connection, flow, work, held.ends.last)

    async def _draw_together(self, connection: Connection, flow: Flow, work: Rerank, upto: int) -> int:
        page = await rerank.backlog(connection, flow, work.place, upto, self._page, falling=False)
        through = page.through if page.through is not None and page.scanned >= self._page else upto
        ranks, work = draw_together(work, page.ranks, through)
        await rerank.move(connection, flow, page, ranks)
        await rerank.note(connection, flow, work)
        return page.scanned or 1

    async def _finish(self, connection: Connection, flow: Flow, work: Rerank, last: int) -> int:
        """Move what is left and let the flow end where its backlog ends now, unless too much has come meanwhile."""
        if last - work.place > LAST_MOVES * step(work.after, Priority(flow.priority)):
            return 0
        page = await rerank.backlog(connection, flow, work.place, last, LAST_PAGE, falling=False)
        if page.scanned >= LAST_PAGE:
            return 0
        weight = await rerank.hold_weight(connection, flow.tenant)
        ends = await self._hold_landed(connection, flow, work.place)
        page = await rerank.backlog(connection, flow, work.place, ends.last, LAST_PAGE, falling=False)
        if page.scanned >= LAST_PAGE:
            return 0
        ranks, work = draw_together(work, page.ranks, max(work.place, ends.last))
        await rerank.move(connection, flow, page, ranks)
        if work.image < ends.last:
            ends = ends._replace(last=work.image)
            await rerank.end_flow(connection, flow, ends.last)
        await self._end(connection, flow, work, weight, ends)
        return 1

    async def _hold_landed(self, connection: Connection, flow: Flow, place: int) -> Ends:
        """Hold the flow, and give those who have their ranks already a moment to use them."""
        ends = await rerank.hold_flow(connection, flow)
        for _ in range(_STRAGGLERS):
            if ends.last <= place or await rerank.is_there(connection, flow.lane, ends.last):
                break
            await asyncio.sleep(_MOMENT)
        return ends

    async def _spread_out(self, connection: Connection, flow: Flow, work: Rerank, virtual: int) -> int:
        page = await rerank.backlog(connection, flow, virtual, work.place, self._page, falling=True)
        if page.through is not None:
            ranks, work = spread_out(work, virtual, page.ranks, page.through)
            await rerank.move(connection, flow, page, ranks)
        if page.scanned >= self._page:
            await rerank.note(connection, flow, work)
        else:
            weight = await rerank.hold_weight(connection, flow.tenant)
            await self._end(connection, flow, work, weight, await rerank.hold_flow(connection, flow))
        return page.scanned or 1

    async def _end(self, connection: Connection, flow: Flow, work: Rerank, weight: int, ends: Ends) -> None:
        """The backlog stands where the weight of then puts it; if that has changed since, it is moved once more."""
        again = begin(work.after, weight, ends.virtual, ends.last)
        if again is None:
            await rerank.forget(connection, flow)
            log.info("ranked anew", tenant=flow.tenant, lane=flow.lane, priority=flow.priority, weight=work.after)
            return
        await rerank.note(connection, flow, again, afresh=True)
        if not again.draws_together:
            await rerank.end_flow(connection, flow, again.image)
