"""Looking for runs that nobody has let in though it was their turn: there should be none, ever."""

from typing import Final

import structlog

from foliot.kit import telemetry
from foliot.store.admission import FIRST, call_left_behind, clear_vacant, free_stranded, tidy_lines
from foliot.store.database import Database
from foliot.store.graphs import let_left_behind_go

log = structlog.get_logger("sweeper")

PAGE: Final = 5_000
"""Lines, runs with seats, runs, and runs of graphs, that one look takes in: some 50 ms."""
BETWEEN: Final = 1.0
REST: Final = 20.0
"""Seconds between two pages, and between two rounds."""


class Sweeper:
    """Goes round all lines. What it finds it sets right, and counts: a count above 0 is a fault of Foliot's."""

    def __init__(self, database: Database, page: int = PAGE) -> None:
        self._line = database.line()
        self._page = page
        self._lines = FIRST
        self._seats = FIRST
        self._runs = FIRST
        self._nodes = FIRST

    async def run_once(self) -> int:
        """Look at one page; how many runs and lines had been left behind."""
        await tidy_lines(self._line, self._lines, self._page)
        lines = await call_left_behind(self._line, self._lines, self._page)
        seats = await clear_vacant(self._line, self._seats, self._page)
        runs = await free_stranded(self._line, self._runs, self._page)
        nodes = await let_left_behind_go(self._line, self._nodes, self._page)
        self._lines, self._seats, self._runs, self._nodes = (
            lines.reached, seats.reached, runs.reached, nodes.reached
        )  # fmt: skip
        if found := lines.found + seats.found + runs.found + nodes.found:
            said = "runs were left behind although it was their turn"
            log.error(said, lines=lines.found, seats=seats.found, runs=runs.found, graphs=nodes.found)
            telemetry.LEFT_BEHIND.inc(found)
        return found

    async def pause(self) -> float:
        return REST if self._lines == self._seats == self._runs == self._nodes == FIRST else BETWEEN

    async def close(self) -> None:
        await self._line.close()
