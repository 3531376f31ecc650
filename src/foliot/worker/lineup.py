"""Who is next among those that were claimed and have not begun."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Final

import msgspec

from foliot.domain.spec import Spec
from foliot.store.dispatch import Claimed
from foliot.worker.executor import Executor

MOST_ALONE: Final = 16
"""Runs that are under way each in a process of its own because they are suspects: each is as big as the application.
When there were four, four that went on for long kept the others waiting for up to 43 s after their worker's death."""
_RANK: Final = attrgetter("run.rank")


class Waiting(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A run that has not begun, with all that it takes to begin it."""

    run: Claimed
    spec: Spec
    name: str
    """Its job's or its handler's."""
    executor: Executor
    lane: int = 0


def alone_at_once(concurrency: int) -> int:
    """How many suspects run at once where so many handlers may: half of them are for everybody else."""
    return max(1, min(MOST_ALONE, concurrency // 2))


class Lineup:
    """Lanes have their turns in the order in which their runs came; within a lane the lowest rank is next.

    So a run that was handed in after the others were claimed, and ranks before them, does not wait for them. Suspects
    come first, but only a few of them are under way at once: the others wait in a line apart, and nobody behind them.
    """

    def __init__(self, alone_at_once: int = MOST_ALONE) -> None:
        self._alone_at_once = alone_at_once
        self._turns: deque[int] = deque()
        self._lanes: defaultdict[int, deque[Waiting]] = defaultdict(deque)
        self._unsorted: set[int] = set()
        self._suspects: deque[Waiting] = deque()
        self._alone: set[int] = set()

    def __len__(self) -> int:
        return len(self._turns) + len(self._suspects)

    @property
    def in_turn(self) -> int:
        """How many wait for a handler to be free, and not until other suspects have come to their end."""
        return len(self._turns) + min(len(self._suspects), self._alone_at_once - len(self._alone))

    def __iter__(self) -> Iterator[Waiting]:
        yield from self._suspects
        yield from (waiting for lane in self._lanes.values() for waiting in lane)

    def add(self, batch: Iterable[Waiting]) -> None:
        for waiting in batch:
            line = self._lanes[waiting.lane]
            if line and waiting.run.rank < line[-1].run.rank:
                self._unsorted.add(waiting.lane)
            line.append(waiting)
            self._turns.append(waiting.lane)

    def add_suspect(self, waiting: Waiting) -> None:
        self._suspects.append(waiting)

    def first(self) -> Waiting | None:
        """The next one, if there is one; it goes on waiting."""
        if self._suspects and len(self._alone) < self._alone_at_once:
            return self._suspects[0]
        return self._line(self._turns[0])[0] if self._turns else None

    def take(self) -> Waiting | None:
        """The next one, if there is one; it waits no longer. Once it is not under way any more, it is `gone`."""
        if self._suspects and len(self._alone) < self._alone_at_once:
            suspect = self._suspects.popleft()
            self._alone.add(id(suspect.run))
            return suspect
        return self._line(self._turns.popleft()).popleft() if self._turns else None

    def gone(self, run: Claimed) -> None:
        """It has come to its end, or has been given up."""
        self._alone.discard(id(run))

    def remove(self, which: Callable[[Claimed], bool]) -> list[Waiting]:
        """Take these out, whenever their turn would have come."""
        suspects, others = list(self._suspects), [self._line(lane).popleft() for lane in self._turns]
        self._suspects.clear()
        self._turns.clear()
        self._suspects.extend(waiting for waiting in suspects if not which(waiting.run))
        self.add(waiting for waiting in others if not which(waiting.run))
        return [waiting for waiting in (*suspects, *others) if which(waiting.run)]

    def _line(self, lane: int) -> deque[Waiting]:
        if lane in self._unsorted:
            self._unsorted.discard(lane)
            # Two rising sequences, as a rule: the sort only merges them.
            self._lanes[lane] = deque(sorted(self._lanes[lane], key=_RANK))
        return self._lanes[lane]
