"""Making runs ready when their time comes: one-time jobs, delayed runs, retries."""

from collections.abc import Callable
from datetime import datetime

import structlog

from foliot.domain.floor import GATHER, WHOLE_RUNS, Floor
from foliot.domain.ids import encode
from foliot.domain.shards import Look, Rounds
from foliot.kit import telemetry
from foliot.kit.clock import Steady, steady
from foliot.store.admission import answer_knocks
from foliot.store.database import Database
from foliot.store.outbox import send_out
from foliot.store.specs import SpecBook
from foliot.store.waiting import BATCH, Table, promote_due, seconds_to_next_due

log = structlog.get_logger("scheduler")


class Promoter:
    """Any number may run: each run is moved by whoever gets its row first."""

    def __init__(
        self,
        database: Database,
        shards: Callable[[], frozenset[int] | None] = lambda: None,
        clock: Steady = steady,
    ) -> None:
        """`shards`: those to look after, all if none."""
        self._rounds = Rounds(shards, clock)
        self._floors: dict[Table, Floor] = {"runs": Floor(clock, WHOLE_RUNS), "timers": Floor(clock)}
        self._line = database.line()
        # No commit is waited for. Should one be lost with the server, its runs wait and are due again, and nobody has
        # seen them: a claim is waited for, and is durable only with all that was committed before it.
        self._moves = database.line(synchronous_commit="off")
        self._specs = SpecBook(self._line)
        self._more = False

    async def run_once(self, now: datetime | None = None) -> int:
        """Promote one batch from each table and look after lines that were locked; how much there was to do."""
        self._more = False
        for run, reason in (await send_out(self._line, self._specs)).items():
            log.error("a run that was handed in cannot be run", run=encode("run", run), reason=reason)
        done = await answer_knocks(self._moves)
        if (others := self._rounds.others()) is not None and (taken := await self._promote_both(now, others)):
            done += taken
            telemetry.OVERDUE_TAKEN.inc(taken)
            self._rounds.sweep_again()
        mine = self._rounds.mine()
        return done if mine is None else done + await self._promote_both(now, mine)

    def apart(self) -> float:
        """How far from each other rounds begin that find work, in seconds: not at all while more is left to do."""
        return 0.0 if self._more else GATHER

    async def pause(self, longest: float = 0.5) -> float:
        """Seconds to the next due run, at most `longest`."""
        if (mine := self._rounds.mine()) is None:
            return longest
        since = {table: floor.since(mine) for table, floor in self._floors.items()}
        seconds = await seconds_to_next_due(self._line, mine, since)
        return longest if seconds is None else min(max(seconds, 0.0), longest)

    async def close(self) -> None:
        await self._line.close()
        await self._moves.close()

    async def _promote_both(self, now: datetime | None, look: Look) -> int:
        return await self._promote("runs", now, look) + await self._promote("timers", now, look)

    async def _promote(self, table: Table, now: datetime | None, look: Look) -> int:
        mine, floor = look.overdue is None, self._floors[table]
        since = floor.since(look) if mine else None
        moved, reached = await promote_due(self._moves, self._moves, table, now, look, since)
        if mine and reached is not None:
            floor.reach(look, reached)
        telemetry.RUNS_PROMOTED.inc(moved)
        self._more |= moved == BATCH
        return moved
