"""Where polls of remote workers wait, and in which order they are served."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from foliot.domain.marks import Marks
from foliot.domain.rate import Rate
from foliot.store.database import Row
from foliot.store.gateway import Scan, Want

MOST_POPPED: Final = 2_000
"""Runs in one statement, of all workers together."""
SHORTEST_REST: Final = 0.001
BUSY_REST: Final = 0.004
"""Between two claims that found less than was wanted, the longer the more comes: five runs in one answer cost little
more than one, in the database, here, and at the worker."""
BUSY: Final = 10_000
"""Runs a second at which the rest is that long."""
LONGEST_REST: Final = 0.5
TOGETHER: Final = 0.01
"""Seconds' worth of runs, as they come of late, that go to one worker before the next gets any. With single runs in
turns, 500 workers that wait would make an answer of each."""


class Poll:
    """One worker that waits for work. `done` gives the rows that it got; none if it waited for nothing."""

    def __init__(self, want: Want, portions: Mapping[int, int]) -> None:
        """`portions`: lanes in the order in which they are wanted, and how many runs each may give."""
        self.want = want
        self.portions = portions
        self.lanes = frozenset(portions)
        self.done: asyncio.Future[list[Row]] = asyncio.get_running_loop().create_future()
        self.was_tried = False
        """Whether a claim found nothing for it: even who does not want to wait gets one try."""
        self.is_leaving = False
        self.has_news = False

    def answer(self, rows: list[Row]) -> None:
        if not self.done.done():
            self.done.set_result(rows)

    def fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)
            self.done.exception()  # who hung up does not ask for it


class Desk:
    """Polls for one set of lanes, in the order of their arrival, and from where these lanes are scanned."""

    def __init__(self, lanes: frozenset[int]) -> None:
        self.marks = Marks(sorted(lanes))
        self.waiting: dict[Poll, None] = {}
        self.due = float("-inf")
        self._rest = SHORTEST_REST
        self._rate = Rate()
        self._reach = 1

    def take(self) -> list[Poll]:
        """Those who came first, until enough is wanted for one statement."""
        taken: list[Poll] = []
        wanted = 0
        for poll in self.waiting:
            if wanted >= MOST_POPPED:
                break
            taken.append(poll)
            wanted += poll.want.most
        for poll in taken:
            del self.waiting[poll]
        self._reach = len(taken)
        return taken

    def is_free(self, now: float) -> bool:
        """Whether who comes now is served by the next claim, which is not put off."""
        return self.due <= now and len(self.waiting) < self._reach

    def put_back(self, polls: Sequence[Poll]) -> None:
        """They got nothing, and keep their place before those who came since, unless they want to leave."""
        self.waiting = {**{poll: None for poll in polls if not poll.is_leaving}, **self.waiting}
        for poll in polls:
            poll.was_tried = True
            if poll.is_leaving:
                poll.answer([])

    def served(self, now: float, *, found: int, wanted: int) -> None:
        """Next in turn, or to rest if there was less than wanted: the longer the longer nothing comes."""
        self._rate.saw(now, found)
        busy = min(1.0, self._rate.a_second(now) / BUSY) * BUSY_REST
        self._rest = max(SHORTEST_REST, busy) if found else min(2 * self._rest, LONGEST_REST)
        self.due = now if found >= wanted else now + self._rest

    def together(self, now: float) -> int:
        """How many runs a poll gets at once, before it is the next one's turn."""
        return max(1, int(self._rate.a_second(now) * TOGETHER))

    def scan(self, polls: Sequence[Poll], now: float) -> Scan:
        """Lanes in the order that the first in line asked for: each worker begins with another one each time."""
        lanes = list(polls[0].portions)
        portions = [min(sum(poll.portions[lane] for poll in polls), MOST_POPPED) for lane in lanes]
        return Scan(lanes, self.marks.next_scan(now, lanes), portions)
