"""When a recurrence fires next, and what it missed."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice, takewhile
from types import MappingProxyType
from typing import Final, assert_never
from zoneinfo import ZoneInfo

import msgspec

from foliot.domain.calendar import Calendar
from foliot.domain.cron import USUAL, Cron, Dst, fires_after, next_after
from foliot.domain.duration import format_duration, parse_duration
from foliot.domain.errors import InvalidField
from foliot.domain.moving import Rule, Taken, destination, next_allowed, taken
from foliot.domain.rrule import Rrule, rule_fires_after
from foliot.domain.rule import parse_rule
from foliot.domain.steps import Step, Steps, next_step, parse_step

__all__ = [
    "Cron",
    "Every",
    "Gap",
    "OnCalendar",
    "Recurrence",
    "Rrule",
    "Steps",
    "calendar_of",
    "canonical_key",
    "destination_of",
    "fires_from",
    "gap",
    "next_fire",
    "parse_key",
    "repeating",
    "taken_away",
    "zone_of",
    "zones_of",
]

SHORTEST_PERIOD: Final = timedelta(seconds=1)
LONGEST_PERIOD: Final = timedelta(days=3_653)
"""Ten years, however many of them are leap years."""
_UNIX_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)


class Every(msgspec.Struct, frozen=True):
    """Fires at whole periods from the Unix epoch; with an anchor at the anchor, and at whole periods after it."""

    period: timedelta
    anchor: datetime | None = None

    def __post_init__(self) -> None:
        if not SHORTEST_PERIOD <= self.period <= LONGEST_PERIOD:
            raise _not_between()
        if self.anchor is not None:
            if self.anchor.tzinfo is None:
                raise InvalidField("scheduleAt", "lacks its offset from UTC", 'for example "2026-01-31T09:00:00Z"')
            msgspec.structs.force_setattr(self, "anchor", self.anchor.astimezone(UTC))


Plain = Cron | Every | Steps | Rrule


class OnCalendar(msgspec.Struct, frozen=True):
    """Another recurrence that fires only when its calendar allows; the rule says what becomes of the rest."""

    recurrence: Plain
    calendar: Calendar
    rule: Rule = "skip"


Recurrence = Plain | OnCalendar


def repeating(step: Step, timezone: str, anchor: datetime | None, dst: Dst = USUAL) -> Every | Steps:
    """What repeats by this step. Where a day always has 24 hours, days are hours, and equal schedules are shared."""
    if step.months or (step.days and timezone != "UTC"):
        if step.about > LONGEST_PERIOD:
            raise _not_between()
        return Steps(step, timezone, anchor, dst)
    return Every(timedelta(days=step.days) + step.clock, anchor)


def zone_of(recurrence: Recurrence) -> ZoneInfo:
    """The zone by whose wall clock it is read."""
    if isinstance(recurrence, OnCalendar):
        return zone_of(recurrence.recurrence)
    return ZoneInfo("UTC" if isinstance(recurrence, Every) else recurrence.timezone)


def zones_of(recurrence: Recurrence) -> frozenset[str]:
    """The zones whose rules decide when it fires, its calendar's too; none if elapsed time alone does."""
    own = {zone_of(recurrence).key}
    return frozenset(own | {recurrence.calendar.timezone} if isinstance(recurrence, OnCalendar) else own) - {"UTC"}


def _not_between() -> InvalidField:
    return InvalidField("every", "must lie between one second and ten years", 'for example "PT90S"')


class Gap(msgspec.Struct, frozen=True):
    """The fires of an interval: `count` of them, or at least so many where it is not `exact`."""

    first: datetime
    last: datetime
    count: int
    exact: bool = True


def next_fire(recurrence: Recurrence, after: datetime) -> datetime | None:
    """Find the first fire strictly after `after`, in UTC; nothing else decides it, so no restart makes it drift."""
    match recurrence:
        case Cron():
            return next_after(recurrence.expression, ZoneInfo(recurrence.timezone), after, recurrence.dst)
        case Every():
            return _next_whole_period(recurrence, after)
        case Steps():
            return next_step(recurrence, after)
        case OnCalendar():
            return _next_on_calendar(recurrence, after)
        case Rrule():
            return next(rule_fires_after(recurrence, after), None)
        case _:
            assert_never(recurrence)


def fires_from(recurrence: Plain, start: datetime) -> Iterator[datetime]:
    """Go through all fires from `start` on, one at it included, rising."""
    return _fires(recurrence, start - datetime.resolution)


def taken_away(recurrence: Recurrence, after: datetime, until: datetime) -> Iterator[Taken]:
    """Go through the nominal instants in (after, until] that its calendar skipped or moved, rising."""
    if isinstance(recurrence, OnCalendar):
        following = partial(next_fire, recurrence.recurrence)
        yield from taken(following, recurrence.calendar, recurrence.rule, after, until)


def destination_of(recurrence: Recurrence, nominal: datetime) -> datetime | None:
    """When the run of an instant takes place, if it is one of the recurrence's and takes place at all."""
    plain = recurrence.recurrence if isinstance(recurrence, OnCalendar) else recurrence
    if next_fire(plain, nominal - datetime.resolution) != nominal:
        return None
    return destination(recurrence.calendar, recurrence.rule, nominal) if isinstance(recurrence, OnCalendar) else nominal


def gap(recurrence: Recurrence, after: datetime, until: datetime, most: int = 100_000) -> Gap | None:
    """Sum up the fires in (after, until], if any; of a cron `most` are counted at most, first and last are exact."""
    first = next_fire(recurrence, after)
    if first is None or first > until:
        return None
    match recurrence:
        case Cron() | Steps() | Rrule() | OnCalendar():
            return _counted_one_by_one(recurrence, first, until, most)
        case Every():
            further = (until - first) // recurrence.period
            return Gap(first, first + further * recurrence.period, further + 1)
        case _:
            assert_never(recurrence)


def canonical_key(recurrence: Recurrence) -> str:
    """One text for each schedule: jobs with the same text share its fire cursor."""
    match recurrence:
        case Cron():
            return f"cron|{recurrence.expression}|{recurrence.timezone}{_rules(recurrence.dst)}"
        case Every():
            anchor = recurrence.anchor.isoformat().replace("+00:00", "Z") if recurrence.anchor else "-"
            return f"every|{format_duration(recurrence.period)}|{anchor}"
        case Steps():
            anchor = recurrence.anchor.isoformat().replace("+00:00", "Z") if recurrence.anchor else "-"
            return f"steps|{recurrence.step}|{recurrence.timezone}|{anchor}{_rules(recurrence.dst)}"
        case OnCalendar():
            inner = canonical_key(recurrence.recurrence)
            return f"{inner}|calendar|{recurrence.calendar.digest}|{recurrence.rule}"
        case Rrule():
            phase = recurrence.phase
            return f"rrule|{recurrence.rule}|{phase}|{recurrence.timezone}{_rules(recurrence.dst)}"
        case _:
            assert_never(recurrence)


def calendar_of(key: str) -> str | None:
    """The digest of the calendar that the recurrence of this key follows."""
    match key.rsplit("|", 3):
        case [_, "calendar", digest, _]:
            return digest
        case _:
            return None


def parse_key(key: str, calendars: Mapping[str, Calendar] = MappingProxyType({})) -> Recurrence:
    """Read the recurrence whose canonical key this is; `calendars` by digest has the one that it names."""
    match key.rsplit("|", 3):
        case [inner, "calendar", digest, rule]:
            return OnCalendar(_parse_plain(inner), calendars[digest], msgspec.convert(rule, Rule))
        case _:
            return _parse_plain(key)


def _parse_plain(key: str) -> Plain:
    match key.split("|"):
        case ["cron", expression, timezone, *rules]:
            return Cron(expression, timezone, _dst(rules))
        case ["every", period, anchor]:
            return Every(parse_duration(period, "every"), _anchor(anchor))
        case ["steps", step, timezone, anchor, *rules]:
            return Steps(parse_step(step, "every"), timezone, _anchor(anchor), _dst(rules))
        case ["rrule", rule, phase, timezone, *rules]:
            return Rrule(parse_rule(rule), timezone, _dst(rules), int(phase))
        case _:
            raise ValueError(f"not the key of a schedule: {key!r}")


def _rules(dst: Dst) -> str:
    return "" if dst == USUAL else f"|{dst.gap}|{dst.fold}"


def _dst(rules: list[str]) -> Dst:
    return msgspec.convert(dict(zip(("gap", "fold"), rules, strict=True)), Dst) if rules else USUAL


def _anchor(text: str) -> datetime | None:
    return None if text == "-" else datetime.fromisoformat(text)


def _fires(recurrence: Recurrence, after: datetime) -> Iterator[datetime]:
    if isinstance(recurrence, Cron):
        yield from fires_after(recurrence.expression, ZoneInfo(recurrence.timezone), after, recurrence.dst)
        return
    if isinstance(recurrence, Rrule):
        yield from rule_fires_after(recurrence, after)
        return
    while (fire := next_fire(recurrence, after)) is not None:
        yield fire
        after = fire


def _next_on_calendar(recurrence: OnCalendar, after: datetime) -> datetime | None:
    following = partial(next_fire, recurrence.recurrence)
    try:
        return next_allowed(following, recurrence.calendar, recurrence.rule, after)
    except OverflowError:  # it looks a month further than the instant itself
        return None


def _next_whole_period(every: Every, after: datetime) -> datetime | None:
    if every.anchor is not None and after < every.anchor:
        return every.anchor
    start = every.anchor or _UNIX_EPOCH
    try:
        return start + ((after - start) // every.period + 1) * every.period
    except OverflowError:  # the calendar ends with the year 9999
        return None


def _counted_one_by_one(
    recurrence: Cron | Steps | Rrule | OnCalendar, first: datetime, until: datetime, most: int
) -> Gap:
    further = takewhile(lambda fire: fire <= until, _fires(recurrence, first))
    count, last = 1, first
    for fire in islice(further, most - 1):
        count, last = count + 1, fire
    if next(further, None) is None:
        return Gap(first, last, count)
    return Gap(first, _last_fire(recurrence, last, until), count, exact=False)


def _last_fire(recurrence: Recurrence, known: datetime, until: datetime) -> datetime:
    """Find the greatest fire <= `until`, `known` being one, by bisection: a later start has no earlier next fire."""
    beyond = until  # no fire lies in (beyond, until]
    while beyond - known >= _SECOND:
        middle = known + (beyond - known) // 2
        fire = next_fire(recurrence, middle)
        if fire is None or fire > until:
            beyond = middle
        else:
            known = fire
    return known
