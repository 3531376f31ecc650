"""Being one of many schedulers: beats, learns who else lives, and holds the shards that fall to it."""

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import structlog

from foliot.domain.shards import assign
from foliot.kit import telemetry
from foliot.kit.clock import Steady, steady
from foliot.store import members
from foliot.store.database import Database
from foliot.store.members import BEAT, LEASE

log = structlog.get_logger("scheduler")

JUMP: Final = 5.0
"""Seconds by which the database's clock moves against ours before we call it a jump: more than anybody's network."""
FAREWELL: Final = 2.0
"""Seconds that a scheduler which ends takes to say so at most; if it cannot, its lease ends instead."""


class _Sight(NamedTuple):
    """How far the database's clock is ahead of ours: somewhere between, for an answer takes its time."""

    least: float
    most: float

    def jump_to(self, later: "_Sight") -> float:
        """Seconds that the database's clock jumped in between, at least; 0 if it need not have."""
        if later.least > self.most:
            return later.least - self.most
        return min(later.most - self.least, 0.0)


class Membership:
    """Any number may run. Ownership spares work, it protects nothing: cursors and unique keys do.

    A beat is several statements, each committed by itself, so that one that is never finished locks nobody out.
    """

    def __init__(
        self, database: Database, scheduler: int, name: str, clock: Steady = steady, lease: timedelta = LEASE
    ) -> None:
        self._line = database.line(hot=False, statement_timeout="3s")
        self._id = scheduler
        self._name = name
        self._clock = clock
        self._lease = lease
        self._mine: frozenset[int] = frozenset()
        self._until = float("-inf")
        self._members: frozenset[int] = frozenset()
        self._share: frozenset[int] = frozenset()
        self._sight: _Sight | None = None

    @property
    def shards(self) -> frozenset[int]:
        """Those to look after now: none after a lease without a beat, for by then others may have them."""
        return self._mine if self._clock() < self._until else frozenset()

    async def run_once(self) -> int:
        """Beat once; how many shards came to us."""
        sent = self._clock()
        now = await members.beat(self._line, self._id, self._name)
        self._look_at_clock(now, sent)
        if gone := await members.bury(self._line, self._lease):
            log.warning("schedulers fell silent", names=", ".join(sorted(gone)))
        self._settle_share(await members.live(self._line) | {self._id})
        moved = await members.hold(self._line, self._id, self._share)
        mine = await members.held(self._line, self._id)
        if moved.taken or mine != self._mine - moved.freed:
            log.info("looks after shards", shards=len(mine), schedulers=len(self._members))
        # What we let go is looked after until its new owner has had a beat to notice: twice is better than not at all.
        self._mine = mine | (moved.freed & self.shards)
        self._until = sent + self._lease.total_seconds()
        telemetry.SHARDS_HELD.set(len(mine))
        telemetry.SHARDS_TAKEN.inc(len(moved.taken))
        return len(moved.taken)

    async def pause(self) -> float:
        return BEAT.total_seconds()

    async def close(self) -> None:
        """Let go of everything at once, if the database can be reached."""
        self._until = float("-inf")
        with suppress(Exception):  # our lease ends anyway
            async with asyncio.timeout(FAREWELL):
                await members.leave(self._line, self._id)
        await self._line.close()

    def _settle_share(self, live: frozenset[int]) -> None:
        if live != self._members:
            self._members = live
            self._share = assign(live)[self._id]

    def _look_at_clock(self, now: datetime, sent: float) -> None:
        sight = _Sight(now.timestamp() - self._clock(), now.timestamp() - sent)
        jump = 0.0 if self._sight is None else self._sight.jump_to(sight)
        self._sight = sight
        if abs(jump) > JUMP:
            telemetry.CLOCK_JUMPS.inc()
            log.error(
                "the database's clock jumped: what lies between is late, or waits until the clock has caught up",
                seconds=round(jump, 1),
                now=now.isoformat(),
            )
