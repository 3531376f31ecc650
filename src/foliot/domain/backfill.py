"""Which instants of a past range a back-fill runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from enum import StrEnum
from itertools import takewhile
from typing import Any, Final, assert_never
from zoneinfo import ZoneInfo

import msgspec

from foliot.domain.cron import Cron, fires_after
from foliot.domain.errors import InvalidField
from foliot.domain.schedule import Recurrence, gap, next_fire
from foliot.domain.states import State

MOST_INSTANTS: Final = 100_000
"""Of one back-fill, those that need no run included."""
MOST_AT_ONCE: Final = 1_000
"""Runs of one back-fill that are under way at the same time."""


class Reprocess(StrEnum):
    """What to do about instants that have been dealt with before."""

    NONE = "none"
    FAILED = "failed"
    ALL = "all"

    def wants(self, last: State | None) -> bool:
        """Whether an instant whose last run ended so (none: it never had one) is to be run."""
        match self:
            case Reprocess.NONE:
                return last is None
            case Reprocess.FAILED:
                return last is not State.SUCCEEDED
            case Reprocess.ALL:
                return True
            case _:
                assert_never(self)


class Range(msgspec.Struct, frozen=True):
    """From `since` to `until`, both included."""

    since: datetime
    until: datetime

    def check(self, now: datetime) -> None:
        """InvalidField unless it is a range that lies in the past."""
        if self.since > self.until:
            raise InvalidField("from", "is later than until", "a range begins before it ends")
        if self.until > now:
            hint = f"the schedule itself runs what is to come; it is {now:%Y-%m-%dT%H:%M:%SZ} now"
            raise InvalidField("until", "lies in the future", hint)


class Order(StrEnum):
    """Which instants go first."""

    OLDEST = "oldest"
    NEWEST = "newest"


class Backfill(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asks to be made up for."""

    range: Range
    name: str
    concurrency: int
    """Runs that are under way at the same time."""
    order: Order
    reprocess: Reprocess

    @property
    def arguments(self) -> dict[str, Any]:
        """The same in the words of the wire."""
        return {
            "from": self.range.since,
            "until": self.range.until,
            "concurrency": self.concurrency,
            "order": self.order,
            "reprocess": self.reprocess,
        }


def instants(recurrence: Recurrence, range_: Range) -> Iterator[datetime]:
    """The fires of the range, oldest first."""
    return takewhile(lambda fire: fire <= range_.until, _fires(recurrence, range_.since))


def refuse_too_many(recurrence: Recurrence, range_: Range, last: datetime) -> InvalidField:
    """What to say of a range with more instants than one back-fill takes, of which `last` is the last it would."""
    found = gap(recurrence, range_.since - datetime.resolution, range_.until, most=1)
    count = f"{found.count:,}" if found is not None and found.exact else f"more than {MOST_INSTANTS:,}"
    hint = f"one takes {MOST_INSTANTS:,}: end it at {last:%Y-%m-%dT%H:%M:%SZ} and make another for the rest"
    return InvalidField("until", f"the range has {count} instants", hint)


class Choice(msgspec.Struct, frozen=True):
    """Of a range's instants, those to run (oldest first), and how many need no run."""

    chosen: Sequence[datetime]
    done: int
    """They have been dealt with before."""
    under_way: int
    """They are queued or running, or their schedule has yet to fire them."""

    @property
    def skipped(self) -> int:
        return self.done + self.under_way

    @property
    def total(self) -> int:
        return len(self.chosen) + self.skipped


def choose(
    found: Iterable[datetime],
    reprocess: Reprocess,
    *,
    under_way: AbstractSet[datetime],
    to_come: Sequence[tuple[datetime, datetime]],
    ended: Mapping[datetime, State],
) -> Choice:
    """Decide about each instant. `to_come` are the intervals (after, until] that the schedule has yet to fire."""
    chosen: list[datetime] = []
    done = busy = 0
    for at in found:
        if at in under_way or any(after < at <= until for after, until in to_come):
            busy += 1
        elif reprocess.wants(ended.get(at)):
            chosen.append(at)
        else:
            done += 1
    return Choice(chosen, done, busy)


def _fires(recurrence: Recurrence, since: datetime) -> Iterator[datetime]:
    after = since - datetime.resolution
    if isinstance(recurrence, Cron):  # in one go: asked for one by one, each costs several times as much
        yield from fires_after(recurrence.expression, ZoneInfo(recurrence.timezone), after, recurrence.dst)
        return
    while (fire := next_fire(recurrence, after)) is not None:
        yield fire
        after = fire
