"""Handlers under way: which there are, since when, and which of them have taken their time."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from itertools import takewhile
from typing import Final

from foliot.domain.outcome import Ending
from foliot.domain.spec import LONGEST_TIMEOUT
from foliot.store.dispatch import Claimed
from foliot.worker.executor import Assignment
from foliot.worker.verdict import Stop

BLINK: Final = timedelta(milliseconds=50)
"""Handlers that take longer are noted in the database; deadlines are looked at this often."""
_BLINK: Final = BLINK.total_seconds()


class Going:
    """One handler under way."""

    __slots__ = ("assignment", "began", "first_began", "noted", "noticed", "stopped", "stopped_at", "task")

    def __init__(self, assignment: Assignment, task: "asyncio.Task[None]", began: float, *, noted: bool) -> None:
        self.assignment = assignment
        self.task = task
        self.began = self.first_began = began
        self.noted = noted
        self.stopped: Stop | None = None
        self.stopped_at = float("inf")
        self.noticed = False
        """Whether the handler has asked, and knows that it is to end."""


class Underway:
    """A look at the deadlines costs nothing for those that have time: a hundred thousand may be under way."""

    def __init__(self) -> None:
        self._going: dict[int, Going] = {}  # by identity: a run may come back while its last try still cleans up
        # The same in order of their start: what began just now, and what has gone on for a blink, by its time-out.
        self._young: dict[int, Going] = {}
        self._old: dict[timedelta, dict[int, Going]] = {}
        self._held: dict[int, Going] = {}
        """Those whose time has not begun, though they have."""
        self.stopping: dict[int, Going] = {}
        """Those that were told to end, in that order."""
        self._left_behind: dict[int, Going] = {}
        self.idle = asyncio.Event()
        self.idle.set()
        self.busy = asyncio.Event()

    def __len__(self) -> int:
        return len(self._going)

    def __iter__(self) -> Iterator[Going]:
        return iter(self._going.values())

    def of(self, run: Claimed) -> Going | None:
        return self._going.get(id(run))

    def add(self, going: Going) -> None:
        if not self._going:
            self.idle.clear()
            self.busy.set()
        name = id(going.assignment.run)
        self._going[name] = self._young[name] = going

    def remove(self, assignment: Assignment) -> None:
        name = id(assignment.run)
        del self._going[name]
        self.stopping.pop(name, None)
        if self._young.pop(name, None) is None and self._held.pop(name, None) is None:
            self._no_longer_old(assignment)
        if not self._going:
            self.idle.set()
            self.busy.clear()

    def stop(self, going: Going, now: float, ending: Ending, why: str = "") -> None:
        """Ask a handler to end. Once only: a second cancellation would break into its clean-up."""
        if going.stopped is None:
            going.stopped, going.stopped_at = Stop(ending, why), now
            self.stopping[id(going.assignment.run)] = going
            # Not at once: a task cancelled before its first step never takes it, and nobody would hear of its end.
            asyncio.get_running_loop().call_soon(going.task.cancel)

    def told_to_stop(self, run: Claimed) -> Going | None:
        """This one if it is to end, also if it was left behind; none if it may go on."""
        return self.stopping.get(id(run)) or self._left_behind.get(id(run))

    def leave_behind(self, going: Going) -> None:
        """It goes on, and is none of ours any more."""
        name = id(going.assignment.run)
        self.remove(going.assignment)
        self._left_behind[name] = going
        going.task.add_done_callback(lambda _: self._left_behind.pop(name, None))

    def hold(self, assignment: Assignment) -> None:
        """Have the time of this one begin with `extend`; it has none before."""
        name = id(assignment.run)
        if name in self._going and name not in self._held:
            young = self._young.pop(name, None)
            self._held[name] = self._no_longer_old(assignment) if young is None else young

    def extend(self, assignment: Assignment, now: float) -> None:
        """Begin the time of this one anew, unless it has had all that there is. Who has just begun needs no more."""
        timeout, name = assignment.spec.timeout, id(assignment.run)
        if (held := self._held.pop(name, None)) is not None:
            held.began = held.first_began = now
            self._young[name] = held
            return
        old = self._old.get(timeout, {})
        going = old.get(name)
        if going is not None and now + timeout.total_seconds() <= going.first_began + LONGEST_TIMEOUT.total_seconds():
            going.began = now
            old[name] = old.pop(name)  # in order of their start

    def _no_longer_old(self, assignment: Assignment) -> Going:
        old = self._old[assignment.spec.timeout]
        going = old.pop(id(assignment.run))
        if not old:
            del self._old[assignment.spec.timeout]
        return going

    def deaf(self, now: float, patience: timedelta) -> list[Going]:
        """Those that were told to end longer ago, for good or to be tried again, and have not.

        Who is to be handed to somebody else is not among them: that one would begin while this one goes on.
        """
        latest = now - patience.total_seconds()
        late = takewhile(lambda going: going.stopped_at <= latest, self.stopping.values())
        return [going for going in late if going.stopped is not None and going.stopped.ending is not Ending.RELEASED]

    def grow_old(self, now: float) -> list[Going]:
        """From now on, deadlines are looked at of those that have gone on for a blink; which of them were not noted."""
        grown = list(takewhile(lambda going: now - going.began >= _BLINK, self._young.values()))
        for going in grown:
            name = id(going.assignment.run)
            self._old.setdefault(going.assignment.spec.timeout, {})[name] = self._young.pop(name)
        unnoted = [going for going in grown if not going.noted]
        for going in unnoted:
            going.noted = True
        return unnoted

    def overdue(self, now: float) -> list[Going]:
        """Those that have gone on for a blink and are past their deadline."""
        late = []
        for timeout, old in self._old.items():
            latest = now - timeout.total_seconds()
            for going in old.values():
                if going.began > latest:
                    break
                late.append(going)
        return late
