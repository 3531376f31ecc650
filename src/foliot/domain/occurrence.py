"""What became of each nominal fire time of a job: the occurrence ledger, worked out from what is on record."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

import msgspec

from foliot.domain.misfire import CatchUp, Mode
from foliot.domain.schedule import Recurrence, next_fire
from foliot.domain.states import State

_DAY: Final = timedelta(days=1)


class Fate(StrEnum):
    """How a nominal fire time ended, or where it stands."""

    FIRED = "fired"
    SKIPPED = "skipped"
    MISSED = "missed"
    DUE = "due"
    """It has come, and whoever fires has yet to deal with it."""
    EXPECTED = "expected"
    UNACCOUNTED = "unaccounted"
    """Nothing tells of it: must never be seen, which is why there is a word for it."""


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """The instants in (after, until] that one definition of a job owned, or that fell into a pause."""

    schedule: int
    after: datetime
    until: datetime
    cursor: datetime
    """Up to here the schedule has dealt with its instants."""
    paused: bool
    catch_up: CatchUp


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """The run that an instant made, or the record that it made none."""

    run: int
    due_at: datetime
    state: State
    note: str | None


class Firing(msgspec.Struct, frozen=True, kw_only=True):
    """What the schedule's own record says about an instant."""

    opened_at: datetime
    is_open: bool
    missed: bool
    """Nobody was asked: no job could want it any more."""
    late: bool


class Occurrence(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime
    fate: Fate
    reason: str | None = None
    trace: Trace | None = None
    filled_back: int | None = None
    """The run that a back-fill made for it since."""


def occurrence(at: datetime, stretch: Stretch, trace: Trace | None, firing: Firing | None, now: datetime) -> Occurrence:
    """Tell one instant's fate. What was read first must have been read first: cursor, then firing, then trace."""
    if trace is not None:
        fate = Fate.SKIPPED if trace.state is State.SKIPPED else Fate.FIRED
        return Occurrence(at=at, fate=fate, reason=trace.note if fate is Fate.SKIPPED else None, trace=trace)
    if stretch.paused and at <= now:
        return Occurrence(at=at, fate=Fate.SKIPPED, reason="the job was paused")
    if at > now:
        reason = "the job is paused" if stretch.paused else None
        return Occurrence(at=at, fate=Fate.EXPECTED, reason=reason)
    if at > stretch.cursor or (firing is not None and firing.is_open):
        return Occurrence(at=at, fate=Fate.DUE)
    if firing is not None and (firing.missed or firing.late):
        return Occurrence(at=at, fate=Fate.MISSED, reason=_why(at, stretch.catch_up, firing))
    return Occurrence(at=at, fate=Fate.UNACCOUNTED)


def _why(at: datetime, catch_up: CatchUp, firing: Firing) -> str:
    if catch_up.mode is Mode.NONE:
        return "it came up late, and the job catches up with nothing"
    if firing.opened_at - at > catch_up.window:
        return "it came up later than the job's window allows"
    return "it came up late, and a later one took its place"


def newest_first(recurrence: Recurrence, after: datetime, until: datetime) -> Iterator[datetime]:
    """All fires in (after, until], from the last to the first: found forwards, in windows that go back and grow."""
    width, end = _period(recurrence, until) * 64, until
    while end > after:
        start = after if end - after <= width else end - width
        yield from reversed(list(_between(recurrence, start, end)))
        end, width = start, width * 2


def _between(recurrence: Recurrence, after: datetime, until: datetime) -> Iterator[datetime]:
    while (fire := next_fire(recurrence, after)) is not None and fire <= until:
        yield fire
        after = fire


def _period(recurrence: Recurrence, near: datetime) -> timedelta:
    """About the time between two fires."""
    first = next_fire(recurrence, near)
    second = None if first is None else next_fire(recurrence, first)
    return _DAY if first is None or second is None else second - first
