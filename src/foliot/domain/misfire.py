"""What to do with instants that come up late: who may still want them, and what is only recorded."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from enum import IntEnum
from functools import cache, partial
from itertools import pairwise
from typing import Final

import msgspec

from foliot.domain.schedule import Recurrence, gap, next_fire

GRACE: Final = timedelta(seconds=30)
"""An instant handled within this time is on time."""
MOST_COUNTED: Final = 1_000
"""Missed instants of a cron beyond this many are not counted one by one: it would hold up the others."""
MOST_OPENED: Final = 1_000
"""Late instants that one advance opens; what is left comes up again at once."""


class Mode(IntEnum):
    """Which of a job's late instants are still run. The numbers are stored."""

    NONE = 0
    LATEST = 1
    ALL = 2


class CatchUp(msgspec.Struct, frozen=True):
    """What a job wants of the instants that came up late, none of them older than the window."""

    mode: Mode = Mode.LATEST
    window: timedelta = timedelta(hours=1)


class Reach(msgspec.Struct, frozen=True):
    """How far back the jobs of a schedule may want late instants: bounds over all of them, and where some end."""

    latest: timedelta = timedelta(hours=1)
    all: timedelta = timedelta()
    ends: Sequence[datetime] = ()


class Opening(msgspec.Struct, frozen=True):
    """An instant to fire, or a range of `missed` ones."""

    at: datetime
    through: datetime
    following: datetime | None = None
    late_through: datetime | None = None
    missed: int = 0


class Advance(msgspec.Struct, frozen=True):
    """How a schedule moves on: what it opens, up to where everything is dealt with then, and what comes next."""

    openings: tuple[Opening, ...]
    through: datetime
    next_at: datetime | None

    @property
    def missed(self) -> int:
        return sum(opening.missed for opening in self.openings)

    @property
    def fires(self) -> list[datetime]:
        return [opening.at for opening in self.openings if not opening.missed]


USUAL: Final = CatchUp()
_USUAL_REACH: Final = Reach()
_Follower = Callable[[datetime], datetime | None]
"""The next fire after an instant, reckoned once."""


def advance(recurrence: Recurrence, *, next_at: datetime, now: datetime, reach: Reach = _USUAL_REACH) -> Advance:
    """Decide about `next_at`, which has come up, and about what followed it and is late too."""
    if now - next_at <= GRACE:
        following = next_fire(recurrence, next_at)
        return Advance((Opening(next_at, next_at, following),), next_at, following)
    # What is still within its grace is left for the next time: it is on time.
    late_through = now - GRACE - datetime.resolution
    further = gap(recurrence, after=next_at, until=late_through, most=MOST_COUNTED)
    last = next_at if further is None else further.last
    follower: _Follower = cache(partial(next_fire, recurrence))
    wanted = _wanted(recurrence, follower, next_at, last, now, reach)
    if len(wanted) > MOST_OPENED:
        wanted = wanted[:MOST_OPENED]
        last = wanted[-1]
    openings = [Opening(at, at, follower(at), late_through) for at in wanted]
    openings += _missed(recurrence, follower, next_at, wanted, last)
    return Advance(tuple(sorted(openings, key=lambda each: each.at)), last, follower(last))


def _wanted(
    recurrence: Recurrence, follower: _Follower, first: datetime, last: datetime, now: datetime, reach: Reach
) -> list[datetime]:
    """The instants from `first` to `last` that some job may still want, rising; no more than one beyond the most."""
    wanted = set[datetime]()
    if reach.all:
        fire: datetime | None = first if now - first <= reach.all else follower(now - reach.all)
        while fire is not None and fire <= last and len(wanted) <= MOST_OPENED:
            wanted.add(fire)
            fire = follower(fire)
    for end in [*reach.ends, last]:
        before = min(end, last)
        if before >= first and now - before <= max(reach.latest, reach.all):
            found = None if before == last else gap(recurrence, after=first, until=before, most=1)
            wanted.add(before if before == last else first if found is None else found.last)
    return sorted(each for each in wanted if now - each <= max(reach.latest, reach.all))


def _missed(
    recurrence: Recurrence, follower: _Follower, first: datetime, wanted: Sequence[datetime], last: datetime
) -> Iterable[Opening]:
    """What lies between those that are opened, as ranges: one record says that all of them were missed."""
    just = datetime.resolution
    if not wanted or first < wanted[0]:  # the rules of its zone may have changed: it counts even if no fire any more
        until = wanted[0] - just if wanted else last
        further = gap(recurrence, after=first, until=until, most=MOST_COUNTED)
        yield Opening(first, until, missed=1 if further is None else 1 + further.count)
    for start, end in pairwise([*wanted, last + just]):
        if follower(start) == end:  # as most are that are opened one after the other, and a gap is dear to find
            continue
        if (found := gap(recurrence, after=start, until=end - just, most=MOST_COUNTED)) is not None:
            yield Opening(found.first, end - just, missed=found.count)
