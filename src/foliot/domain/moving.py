"""What a calendar makes of the instants of a recurrence: which fire, which are skipped, which move to when.

A run on a day off moves by whole days and keeps its time of day: the invoice of the 1st at nine goes out at nine. What
then lies in a blackout moves to its edge: to its end, or to the last second before it.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from typing import Final, Literal, NamedTuple, assert_never

from foliot.domain.calendar import LOOKOUT, Calendar, Stretch
from foliot.domain.zone import first_change, first_showing, offset_at

Rule = Literal["skip", "next", "previous", "nearest"]
Next = Callable[[datetime], datetime | None]
"""The first nominal instant strictly after another one."""

_DAY: Final = timedelta(days=1)
_SECOND: Final = timedelta(seconds=1)
_TICK: Final = datetime.resolution
_FEW: Final = 20
"""Closed stretches that a search steps over one by one, before it looks at all of a month at once."""
_MOST_MONTHS: Final = 120
"""Months with nominal instants that a search goes through before it gives up: ten years, however many closures."""
_MOST_DAYS: Final = 4_000
"""Days off in a row, each with nominal instants, before a search gives up: ten years again."""
_MOST_JUMPS: Final = 1_500
"""Closed stretches longer than a month, from which nothing can be moved, before it gives up."""


class Taken(NamedTuple):
    """A nominal instant at which nothing fires, and when that run takes place instead, if at all."""

    nominal: datetime
    moved_to: datetime | None


def next_allowed(following: Next, calendar: Calendar, rule: Rule, after: datetime) -> datetime | None:
    """Find the first fire strictly after `after`; None if there is none as far as anybody should look."""
    match rule:
        case "skip":
            return _next_open(following, calendar, after)
        case "next" | "previous" | "nearest":
            return _Mover(following, calendar, rule).next(after)
        case _:
            assert_never(rule)


def destination(calendar: Calendar, rule: Rule, nominal: datetime) -> datetime | None:
    """When the run of a nominal instant takes place; None if it is skipped, also because it would move too far."""
    if rule == "skip":
        return nominal if calendar.is_open(nominal) else None
    day = calendar.day_of(nominal)
    if not calendar.is_day_off(day):
        return _to_edge(calendar, rule, nominal)
    target = _other_day(calendar, rule, day)
    return None if target is None else _to_edge(calendar, rule, _same_time(calendar, nominal, target))


def taken(following: Next, calendar: Calendar, rule: Rule, after: datetime, until: datetime) -> Iterator[Taken]:
    """Go through the nominal instants in (after, until] that do not fire at their own time, rising."""
    margin = timedelta() if rule in {"skip", "next"} else _SECOND - _TICK
    while after < until:
        upto = min(after + LOOKOUT, until)
        for stretch in calendar.stretches(after, upto + _SECOND):
            cursor = max(after, stretch.start - margin - _TICK)
            while (nominal := following(cursor)) is not None and nominal <= upto and nominal < stretch.end:
                moved_to = destination(calendar, rule, nominal)
                if moved_to != nominal:
                    yield Taken(nominal, moved_to)
                cursor = nominal
        after = upto


def _next_open(following: Next, calendar: Calendar, after: datetime) -> datetime | None:
    for _ in range(_FEW):
        nominal = following(after)
        if nominal is None or calendar.is_open(nominal):
            return nominal
        after = _later(calendar, nominal) - _TICK
    return _next_open_in_years(following, calendar, after)


def _next_open_in_years(following: Next, calendar: Calendar, after: datetime) -> datetime | None:
    for _ in range(_MOST_MONTHS):
        if (nominal := following(after)) is None:
            return None
        end = nominal + LOOKOUT
        closed = calendar.stretches(nominal - _DAY, end)
        while nominal < end:
            place = bisect_right(closed, nominal, key=lambda stretch: stretch.start)
            if not place or nominal >= closed[place - 1].end:
                return nominal
            after = closed[place - 1].end - _TICK
            if (nominal := following(after)) is None:
                return None
    return None


def _later(calendar: Calendar, closed: datetime) -> datetime:
    """The end of the stretch around a closed instant, or of as much of it as is looked at in one go."""
    return calendar.next_open(closed) or closed + LOOKOUT


def _to_edge(calendar: Calendar, rule: Rule, at: datetime) -> datetime | None:
    """Where a run on a day of work ends up: not inside a blackout."""
    earlier, later = _edges(calendar, rule, at)
    if rule == "next" or earlier is None:
        return later if rule != "previous" else earlier
    if rule == "previous" or later is None:
        return earlier
    return earlier if at - earlier < later - at else later


def _edges(calendar: Calendar, rule: Rule, at: datetime) -> tuple[datetime | None, datetime | None]:
    if rule == "next":
        return None, calendar.next_open(at)
    # Together with the stretch that follows it within a second, so that what moves back never overtakes what stays.
    inside = at if not calendar.is_open(at) else at + _SECOND - _TICK
    if calendar.is_open(inside):
        return at, at
    return calendar.previous_open(inside), calendar.next_open(inside)


def _other_day(calendar: Calendar, rule: Rule, day: date) -> date | None:
    """The day of work to which a day off gives its runs; of two that are as near, the later."""
    for distance in range(1, LOOKOUT.days + 1):
        later, earlier = day + distance * _DAY, day - distance * _DAY
        if rule != "previous" and not calendar.is_day_off(later):
            return later
        if rule != "next" and not calendar.is_day_off(earlier):
            return earlier
    return None


def _same_time(calendar: Calendar, at: datetime, day: date) -> datetime:
    return first_showing(calendar.zone, datetime.combine(day, at.astimezone(calendar.zone).time()))


class _Mover:
    """Finds fires that may come from either side: from nominal instants before them and after them."""

    def __init__(self, following: Next, calendar: Calendar, rule: Rule) -> None:
        self._following = following
        self._calendar = calendar
        self._rule = rule

    def next(self, after: datetime) -> datetime | None:
        """Moving to an edge keeps the order, so what comes first before it comes first after it."""
        before = self._where_it_closed(after)
        for _ in range(_MOST_JUMPS):
            shifted = self._next_shifted(before)
            if shifted is None:
                return None
            fire = _to_edge(self._calendar, self._rule, shifted)
            if fire is not None and fire > after:
                return fire
            before = max(shifted, self._beyond(shifted, fire))
        return None

    def _beyond(self, shifted: datetime, fire: datetime | None) -> datetime:
        """Up to where everything ends up like `shifted`: at a `fire` that has been, or nowhere."""
        if fire is None:
            end = self._calendar.next_open(shifted, 2 * LOOKOUT)
            return shifted + LOOKOUT if end is None else end - LOOKOUT - _TICK
        end = _later(self._calendar, shifted)
        return (fire + (end - fire) / 2 if self._rule == "nearest" else end) - _TICK

    def _where_it_closed(self, after: datetime) -> datetime:
        """The instant after which what is moved to an edge may come to lie behind `after`."""
        if self._calendar.is_open(after):
            return after
        return (self._calendar.closed_since(after) or after - LOOKOUT) - _SECOND

    def _next_shifted(self, after: datetime) -> datetime | None:
        """Find the first instant > `after` of those that run on days of work, days off having given theirs away."""
        if self._is_amid_work(today := self._calendar.day_of(after)):
            nominal = self._following(after)
            if nominal is not None and nominal < self._calendar.day(today).end:
                return nominal
        best: datetime | None = None
        cursor = self._calendar.day(self._earliest_giver(after)).start - _TICK
        for _ in range(_MOST_DAYS):
            nominal = self._following(cursor)
            if nominal is None:
                return best
            day = self._calendar.day_of(nominal)
            is_off = self._calendar.is_day_off(day)
            nearest = self._earliest_taker(day) if is_off and self._rule != "next" else day
            if best is not None and nearest > self._calendar.day_of(best):
                return best
            if is_off:
                found = self._given_by(day, after)
            elif nominal > after:
                found = nominal
            else:
                cursor = after
                continue
            best = min((each for each in (best, found) if each is not None), default=None)
            cursor = self._calendar.day(day).end - _TICK
        return best

    def _is_amid_work(self, day: date) -> bool:
        """Whether no day off is next to it: what runs on it is its own."""
        return not any(self._calendar.is_day_off(day + distance * _DAY) for distance in (-1, 0, 1))

    def _earliest_giver(self, after: datetime) -> date:
        """The first day whose runs may come to lie behind `after`."""
        day = self._calendar.day_of(after)
        for _ in range(LOOKOUT.days):
            if not self._calendar.is_day_off(day - _DAY):
                break
            day -= _DAY
        return day

    def _earliest_taker(self, day: date) -> date:
        """The day of work before a stretch of days off; no run of theirs moves further back."""
        for distance in range(1, LOOKOUT.days + 1):
            if not self._calendar.is_day_off(day - distance * _DAY):
                return day - distance * _DAY
        return day

    def _given_by(self, day: date, after: datetime) -> datetime | None:
        """The first instant > `after` that a day off gives to a day of work."""
        target = _other_day(self._calendar, self._rule, day)
        if target is None or self._calendar.day(target).end <= after:
            return None
        found = (self._given_between(part, target, after) for part in self._parts(day))
        return min((each for each in found if each is not None), default=None)

    def _parts(self, day: date) -> Iterator[Stretch]:
        """The day, cut where the clocks change: within a part, later means later on the clock."""
        start, end = self._calendar.day(day)
        zone = self._calendar.zone
        change = first_change(zone, offset_at(zone, start), start, end - _TICK)
        if change is None:
            yield Stretch(start, end)
        else:
            yield Stretch(start, change)
            yield Stretch(change, end)

    def _given_between(self, part: Stretch, target: date, after: datetime) -> datetime | None:
        zone = self._calendar.zone
        reading = after.astimezone(zone)
        cursor = part.start
        if reading.date() == target:  # what reads no later than `after` cannot come to lie behind it
            day = part.start.astimezone(zone).date()
            same = datetime.combine(day, reading.time(), tzinfo=part.start.tzinfo) - offset_at(zone, part.start)
            cursor = min(max(cursor, same), part.end)
        cursor -= _TICK
        while (nominal := self._following(cursor)) is not None and nominal < part.end:
            given = _same_time(self._calendar, nominal, target)
            if given > after:
                return given
            cursor = nominal
        return None
