"""What became of each nominal fire time of a job: the occurrence ledger, worked out from what is on record."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice, pairwise
from typing import Final, NamedTuple

import msgspec

from foliot.domain.misfire import CatchUp, Mode
from foliot.domain.moving import Taken
from foliot.domain.schedule import OnCalendar, Recurrence, destination_of, next_fire, taken_away
from foliot.domain.states import State

_DAY: Final = timedelta(days=1)
_SAMPLE: Final = 4
"""Fires from which the distance between two is guessed."""


class Fate(StrEnum):
    """How a nominal fire time ended, or where it stands."""

    FIRED = "fired"
    SKIPPED = "skipped"
    MOVED = "moved"
    """The calendar gave it another time, which is listed as well and has a fate of its own."""
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
    # What the schedule has dealt with does not come again, though the clock may have been set back since.
    has_come = at <= max(now, stretch.cursor)
    if stretch.paused and has_come:
        return Occurrence(at=at, fate=Fate.SKIPPED, reason="the job was paused")
    if not has_come:
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


class OneTime(msgspec.Struct, frozen=True, kw_only=True):
    """The instant of a one-time definition, and the run that was made for it beforehand."""

    at: datetime
    is_present: bool
    """The job has this definition; one of before has ended, or has given way to it."""
    paused: bool
    has_begun: bool
    """An attempt of the run has been made."""
    trace: Trace | None


def one_time_occurrence(one: OneTime, now: datetime) -> Occurrence:
    """Tell the fate of a one-time job's instant. Its run waits out a pause, so that nothing is skipped by one."""
    if one.trace is None:
        if one.is_present:
            return Occurrence(at=one.at, fate=Fate.UNACCOUNTED)
        return Occurrence(at=one.at, fate=Fate.SKIPPED, reason="the job was changed before it ran")
    state = one.trace.state
    if state is State.SKIPPED or (state is State.CANCELLED and not one.has_begun):
        return Occurrence(at=one.at, fate=Fate.SKIPPED, reason=one.trace.note, trace=one.trace)
    waits = state is State.SCHEDULED or (state is State.BLOCKED and (one.paused or one.at > now))
    if waits and not one.has_begun:
        reason = "the job is paused" if one.paused else None
        return Occurrence(at=one.at, fate=Fate.EXPECTED if one.at > now else Fate.DUE, reason=reason)
    return Occurrence(at=one.at, fate=Fate.FIRED, trace=one.trace)


Owned = tuple[Recurrence, Stretch]


def by_calendar(taken: Taken, schedule: int, owned: Sequence[Owned], known_from: datetime) -> Occurrence:
    """Tell the fate of an instant of a schedule that its calendar took away.

    `owned` is what the job has had, also around the time it moved to; what was before `known_from` may be forgotten.
    """
    at, moved_to = taken
    if (goal := _landing(taken, schedule, owned)) is not None:
        return Occurrence(at=at, fate=Fate.MOVED, reason=_moved(goal))
    if moved_to is None:
        return Occurrence(at=at, fate=Fate.SKIPPED, reason="the calendar is closed then")
    if moved_to <= known_from:
        return Occurrence(at=at, fate=Fate.MOVED, reason=_moved(moved_to))
    if any(each.paused and each.schedule == schedule and each.after < moved_to <= each.until for _, each in owned):
        why = "when the job is paused"
    else:
        why = "before the job had this schedule" if moved_to < at else "when the job has this schedule no more"
    return Occurrence(at=at, fate=Fate.SKIPPED, reason=f"{_moved(moved_to)}, {why}")


def _landing(taken: Taken, schedule: int, owned: Sequence[Owned]) -> datetime | None:
    """When the run took place after all: where some definition of the job sends it, and has that time itself."""
    goals = {schedule: taken.moved_to}
    for recurrence, stretch in sorted(owned, key=lambda each: each[1].schedule != schedule):
        if stretch.schedule not in goals:
            goals[stretch.schedule] = destination_of(recurrence, taken.nominal)
        goal = goals[stretch.schedule]
        if goal is not None and not stretch.paused and stretch.after < goal <= stretch.until:
            return goal
    return None


def _moved(to: datetime) -> str:
    return f"the calendar moved it to {to.isoformat().replace('+00:00', 'Z')}"


class Nominal(NamedTuple):
    """A fire time; `taken` says what the calendar made of it, if it does not fire then."""

    at: datetime
    taken: Taken | None = None


def newest_first(recurrence: Recurrence, after: datetime, until: datetime) -> Iterator[Nominal]:
    """All nominal instants in (after, until] and all to which some were moved, from the last to the first.

    Found forwards, in windows that go back and grow.
    """
    width, end = _period(recurrence, until) * 64, until
    while end > after:
        start = after if end - after <= width else end - width
        found = {each.nominal: Nominal(each.nominal, each) for each in taken_away(recurrence, start, end)}
        found |= {fire: Nominal(fire) for fire in _between(recurrence, start, end)}
        yield from sorted(found.values(), key=lambda each: each.at, reverse=True)
        end, width = start, width * 2


def _between(recurrence: Recurrence, after: datetime, until: datetime) -> Iterator[datetime]:
    while (fire := next_fire(recurrence, after)) is not None and fire <= until:
        yield fire
        after = fire


def _period(recurrence: Recurrence, near: datetime) -> timedelta:
    """About the time between two nominal instants, rather too short than too long: a window is looked at in one go."""
    # Without its calendar: between two fires there may be any number of instants that it took away.
    nominal = recurrence.recurrence if isinstance(recurrence, OnCalendar) else recurrence
    fires = islice(_between(nominal, near, datetime.max.replace(tzinfo=near.tzinfo)), _SAMPLE)
    return min((later - earlier for earlier, later in pairwise(fires)), default=_DAY)
