"""One worker's claim: it waits, takes what comes, and keeps nothing of which it cannot be told."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from foliot.domain.errors import InvalidField, Unauthorised
from foliot.domain.outcome import Outcome
from foliot.kit.joined import Joined
from foliot.kit.signals import READY
from foliot.services.gateway.claims import Claims
from foliot.services.gateway.desks import Poll
from foliot.services.gateway.telling import NEWS, NOTHING, Teller
from foliot.store.database import Line, Row
from foliot.store.dispatch import Claimed, Settlement, conclude, forget
from foliot.store.gateway import NOBODY, Want, disown, fetch_again, strays_for_many
from foliot.wire.work import ClaimAnswer, ClaimBody, same_length

Gone = Callable[[], Awaitable[None]]
"""Returns when the worker has hung up."""
Good = Callable[[], Awaitable[bool]]
"""Whether the worker's key still opens doors."""


class _Known(NamedTuple):
    worker: int
    fences: list[int]


class Taking:
    def __init__(
        self, claims: Claims, teller: Teller, line: Line, settle_line: Line, hint: Callable[[str], None]
    ) -> None:
        self._claims = claims
        self._teller = teller
        self._line = line
        self._settle_line = settle_line
        self._hint = hint
        self._strays = Joined(self._find_strays, most=100)

    async def run(self) -> None:
        """Look for what workers know nothing of, until cancelled."""
        await self._strays.run()

    async def take(self, worker: int, body: ClaimBody, gone: Gone, is_good: Good) -> ClaimAnswer:
        """Wait for work. What a worker cannot be told of is handed back: it has hung up, or its key has ended."""
        if not body.most or not body.lanes:
            return NOTHING
        want = Want(worker, body.number, body.most)
        if self._claims.has_answered(want):
            again = await fetch_again(self._line, want.worker, want.number)
            await self._teller.learn(again)
            return self._teller.tell(again)
        poll = self._claims.ask(want, _portions(body))
        rows = await self._wait(poll, body.wait, gone, is_good)
        return NEWS if poll.has_news and not rows else self._teller.tell(rows)

    async def take_at_once(self, worker: int, body: ClaimBody, gone: Gone, is_good: Good) -> ClaimAnswer:
        """Nothing, unless the next claim serves this worker: nobody is overtaken, and the answer is not delayed."""
        is_free = self._claims.is_free(frozenset(body.lanes))
        return await self.take(worker, body, gone, is_good) if is_free else NOTHING

    async def strays(self, worker: int, known: list[int]) -> ClaimAnswer:
        """What stands in the worker's name besides the claims that it knows."""
        return self._teller.tell(await self._strays(_Known(worker, known)))

    async def _wait(self, poll: Poll, seconds: float, gone: Gone, is_good: Good) -> list[Row]:
        patience = asyncio.get_running_loop().call_later(seconds, self._claims.hurry, poll)
        hung_up = asyncio.ensure_future(gone())
        hung_up.add_done_callback(lambda _: self._claims.withdraw(poll))
        try:
            rows = await poll.done
            if rows and hung_up.done():
                await self._hand_back(rows)
                return []
            if rows and not await is_good():  # it was, when the call came: that may be long ago
                await self._hand_back(rows)
                raise Unauthorised("the key of this worker has ended", "start it with one that is valid")
            return rows
        finally:
            self._claims.withdraw(poll)
            patience.cancel()
            hung_up.cancel()

    async def _hand_back(self, rows: list[Row]) -> None:
        first = rows[0]
        if await disown(self._line, first["worker"], first["fence"], first["claimed_at"]):
            # Not by a reap, which takes it that a worker died with them in its hands.
            runs = [Claimed(*tuple(row)[2:]) for row in rows]
            await conclude(self._settle_line, NOBODY, [Settlement(run, None, Outcome.released()) for run in runs])
            await forget(self._settle_line, NOBODY, [first["fence"]])
            self._hint(READY)

    async def _find_strays(self, asked: Sequence[_Known]) -> list[list[Row]]:
        known: dict[int, list[int]] = {}
        for each in asked:
            known.setdefault(each.worker, []).extend(each.fences)
        rows = await strays_for_many(self._line, known)
        await self._teller.learn(rows)
        return [[row for row in rows if row["worker"] == each.worker] for each in asked]


def _portions(body: ClaimBody) -> dict[int, int]:
    if body.portions and not same_length(body, "lanes", "portions"):
        raise InvalidField("portions", "are not as many as lanes", "one for each lane, or none at all")
    return dict(zip(body.lanes, body.portions or [body.most] * len(body.lanes), strict=True))
