"""Waiting polls of remote workers: those that want the same lanes are served by one claim for all of them."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from itertools import groupby
from operator import itemgetter
from typing import Final

from foliot.domain.errors import Unavailable
from foliot.domain.sharing import share
from foliot.kit import telemetry
from foliot.kit.clock import Steady
from foliot.kit.loop import any_of
from foliot.services.gateway.desks import MOST_POPPED, Desk, Poll
from foliot.store.database import Line, Row
from foliot.store.dispatch import publish
from foliot.store.gateway import NumberUsed, Want, claim_for_many, fetch_again

MOST_WAITING: Final = 5_000
"""Polls that may wait in one process; more are turned away, to come back a little later or elsewhere."""
MOST_DESKS: Final = 1_000
MOST_REMEMBERED: Final = 100_000
PUBLISH_EVERY: Final = 0.2

Learned = Callable[[list[Row]], Awaitable[dict[int, int]]]
"""Makes sure that the specs and names of these runs are known; tells the lane of each of their specs."""


class Claims:
    def __init__(self, line: Line, learn: Learned, clock: Steady, claimed: Callable[[int], None]) -> None:
        """`claimed`: told how many runs each claim brought."""
        self._line = line
        self._learn = learn
        self._clock = clock
        self._claimed = claimed
        self._desks: dict[frozenset[int], Desk] = {}
        self._polls: dict[int, Poll] = {}
        self._answered: dict[int, int] = {}
        self._serving: Desk | None = None
        self._stir = asyncio.Event()
        self._fresh: dict[int, int] = {}
        self._publish_at = float("-inf")
        self._is_open = True

    def ask(self, want: Want, portions: Mapping[int, int]) -> Poll:
        """Wait in line. A worker has one place: what it asked before was given up, or it would not ask again."""
        poll = Poll(want, portions)
        if not self._is_open:
            poll.answer([])
            return poll
        if former := self._polls.get(want.worker):
            self.withdraw(former)
        if len(self._polls) >= MOST_WAITING:
            hint = "it comes back by itself; start another API process for so many"
            raise Unavailable("too many workers wait for work here", hint)
        self._polls[want.worker] = poll
        poll.done.add_done_callback(lambda _: self._leave(poll))
        self._desk(poll.lanes).waiting[poll] = None
        self._stir.set()
        telemetry.GATEWAY_WAITING.set(len(self._polls))
        return poll

    def has_answered(self, want: Want) -> bool:
        """Whether this is the last claim of its worker that was answered with runs here, asked for once more."""
        return self._answered.get(want.worker) == want.number

    def is_free(self, lanes: frozenset[int]) -> bool:
        """Whether who asks for these lanes now is served by the next claim, which is not put off."""
        desk = self._desks.get(lanes)
        return desk is None or desk.is_free(self._clock())

    def withdraw(self, poll: Poll) -> None:
        """Have it answered: at once with nothing, or by the end of the claim that is under way for it."""
        desk = self._desks.get(poll.lanes)
        if desk is None or poll not in desk.waiting:
            poll.is_leaving = True
        else:
            del desk.waiting[poll]
            poll.answer([])

    def hurry(self, poll: Poll) -> None:
        """Have it wait no longer than for one try."""
        if poll.was_tried:
            self.withdraw(poll)
        else:
            poll.is_leaving = True

    @property
    def workers(self) -> list[int]:
        """Those who wait here."""
        return [*self._polls]

    def tell(self, workers: Iterable[int]) -> None:
        """Answer these at once, if they still wait: there are news for them."""
        for worker in workers:
            if poll := self._polls.get(worker):
                poll.has_news = True
                self.withdraw(poll)

    def wake(self) -> None:
        """There may be work for anybody."""
        for desk in self._desks.values():
            desk.due = float("-inf")
        self._stir.set()

    def dismiss(self) -> None:
        """Answer everybody who waits, now and from now on: this process is about to end."""
        self._is_open = False
        for poll in [*self._polls.values()]:
            self.withdraw(poll)

    async def run(self) -> None:
        """Claim for whoever waits, until cancelled."""
        try:
            while True:
                self._stir.clear()
                await self._publish()
                desk = min((desk for desk in self._desks.values() if desk.waiting), key=_due, default=None)
                now = self._clock()
                if desk is not None and desk.due <= now:
                    self._serving = desk
                    await self._serve(desk)
                else:
                    until = [*([desk.due] if desk else []), *([self._publish_at] if self._fresh else [])]
                    within = timedelta(seconds=max(min(until) - now, 0)) if until else None
                    await any_of(self._stir, within=within)
        finally:
            self.dismiss()

    def _answer(self, poll: Poll, rows: list[Row]) -> None:
        if len(self._answered) > MOST_REMEMBERED:
            self._answered.clear()
        self._answered[poll.want.worker] = poll.want.number
        poll.answer(rows)

    def _leave(self, poll: Poll) -> None:
        if self._polls.get(poll.want.worker) is poll:
            del self._polls[poll.want.worker]
            telemetry.GATEWAY_WAITING.set(len(self._polls))

    def _desk(self, lanes: frozenset[int]) -> Desk:
        if lanes not in self._desks:
            if len(self._desks) >= MOST_DESKS:
                self._desks = {key: each for key, each in self._desks.items() if each.waiting or each is self._serving}
            self._desks[lanes] = Desk(lanes)
        return self._desks[lanes]

    async def _serve(self, desk: Desk) -> None:
        polls = desk.take()
        owners = share([poll.want.most for poll in polls], MOST_POPPED, desk.together(self._clock()))
        try:
            rows = await self._claim(desk, polls, owners)
            lanes = await self._learn(rows) if rows else {}
        except NumberUsed:
            await self._serve_apart(desk, polls)
            return
        except Exception as error:  # noqa: BLE001 - every worker gets it as the answer to its own call
            for poll in polls:
                poll.fail(error)
            return
        self._saw(desk, rows, lanes)
        got = {worker: list(mine) for worker, mine in groupby(rows, itemgetter("worker"))}
        for poll in polls:
            if mine := got.get(poll.want.worker):
                self._answer(poll, mine)
        desk.put_back([poll for poll in polls if poll.want.worker not in got])
        desk.served(self._clock(), found=len(rows), wanted=len(owners))
        self._claimed(len(rows))

    async def _claim(self, desk: Desk, polls: list[Poll], owners: list[int]) -> list[Row]:
        telemetry.GATEWAY_CLAIMS.inc()
        began = self._clock()
        rows = await claim_for_many(self._line, [poll.want for poll in polls], desk.scan(polls, began), owners)
        if rows:
            telemetry.CLAIM_SECONDS.observe(self._clock() - began)
        return rows

    async def _serve_apart(self, desk: Desk, polls: list[Poll]) -> None:
        """One of them was answered before, and the answer was lost: it gets the same again, the others their own."""
        for poll in polls:
            try:
                rows = await self._claim_or_fetch_again(desk, poll)
                self._saw(desk, rows, await self._learn(rows))
            except Exception as error:  # noqa: BLE001 - as above
                poll.fail(error)
            else:
                self._answer(poll, rows)

    async def _claim_or_fetch_again(self, desk: Desk, poll: Poll) -> list[Row]:
        try:
            return await self._claim(desk, [poll], [0] * poll.want.most)
        except NumberUsed:
            return await fetch_again(self._line, poll.want.worker, poll.want.number)

    def _saw(self, desk: Desk, rows: list[Row], lanes: dict[int, int]) -> None:
        seen: defaultdict[int, list[int]] = defaultdict(list)
        for row in rows:
            seen[lanes[row["spec"]]].append(row["rank"])
        now = self._clock()
        for lane, ranks in seen.items():
            desk.marks.saw(lane, ranks, now)
        for lane, highest in desk.marks.to_publish(now).items():
            self._fresh[lane] = max(highest, self._fresh.get(lane, 0))

    async def _publish(self) -> None:
        now = self._clock()
        if self._fresh and now >= self._publish_at:
            self._publish_at = now + PUBLISH_EVERY
            with suppress(Exception):  # told again with the next one; a claim that fails says why
                await publish(self._line, self._fresh)
                self._fresh = {}


def _due(desk: Desk) -> float:
    return desk.due
