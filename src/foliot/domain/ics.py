"""iCalendar files (RFC 5545): all-day events are days off, timed ones blackouts, and what cannot be read is said."""

import re
from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from foliot.domain.errors import InvalidField
from foliot.domain.eventdays import Repeat, TooLong, parse_repeat, repeat_days
from foliot.domain.ics_lines import Line, Trouble, UnreadableError, read_lines
from foliot.domain.ics_moments import Moment, days_of, duration_of, moment_of, moments_of, placed, zone_named, zone_of

LARGEST: Final = 1 << 20
MOST_EVENTS: Final = 10_000
AHEAD: Final = timedelta(days=3660)
"""How far events without an end are followed."""
BEHIND: Final = timedelta(days=366)
"""Repetitions that are longer past than this are left out: nobody asks for them any more."""
_MOST_STEPS: Final = 200_000
"""Days and weeks, those of months and years too, that the repeating events of a file are followed through together."""
_FILE: Final = ["VCALENDAR"]
_EVENT: Final = ["VCALENDAR", "VEVENT"]
_LONGEST: Final = timedelta(days=366)
_DAY: Final = timedelta(days=1)
_ESCAPED: Final = re.compile(r"\\([\\;,nN])")


class Closure(NamedTuple):
    """A day off, or a window without work, as an event says it."""

    start: Moment
    end: Moment
    """Excluded; for days off the day after the last one."""
    name: str

    @property
    def is_day_off(self) -> bool:
        return not isinstance(self.start, datetime)

    @property
    def lasts(self) -> bool:
        """Not so where the clocks skip all of it."""
        return self.start < self.end


class Imported(NamedTuple):
    closures: list[Closure]
    troubles: list[Trouble]
    events: int
    """Events from which closures were made."""
    timezone: str | None
    """The zone that the file names as its own."""


class _Event(msgspec.Struct):
    line: int
    fields: dict[str, list[Line]]

    def one(self, name: str) -> Line | None:
        return self.fields[name][0] if name in self.fields else None

    @property
    def name(self) -> str:
        summary = self.one("SUMMARY")
        text = "" if summary is None else _ESCAPED.sub(lambda m: " " if m[1] in "nN" else m[1], summary.value)
        return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())[:200]


def read_ics(text: str, today: date) -> Imported:
    """Read the events of a file; those that repeat for ever are followed for ten years from `today`.

    An event that cannot be read is left out and told by its line; a file that is no calendar is InvalidField.
    """
    if len(text.encode()) > LARGEST:
        raise InvalidField("ics", f"is larger than {LARGEST:,} bytes", "import fewer years, or make two calendars")
    troubles: list[Trouble] = []
    zone: str | None = None
    events: list[_Event] = []
    for found in _components(read_lines(text, troubles), troubles):
        if isinstance(found, str):
            zone = zone or found
        else:
            events.append(found)
    if len(events) > MOST_EVENTS:
        raise InvalidField("ics", f"has more than {MOST_EVENTS:,} events", "make two calendars of it")
    closures, read = _all_closures(events, today, troubles)
    return Imported(closures, sorted(set(troubles)), read, zone)


def _all_closures(events: list[_Event], today: date, troubles: list[Trouble]) -> tuple[list[Closure], int]:
    replaced = _replaced(events, troubles)
    steps = iter(range(_MOST_STEPS))
    closures: list[Closure] = []
    read = 0
    for event in events:
        status = event.one("STATUS")
        if status is not None and status.value.upper() == "CANCELLED":
            continue
        try:
            closures += list(_closures(event, today, replaced.get(_uid(event), set()), steps))  # all of it, or nothing
            read += 1
        except UnreadableError as error:
            troubles.append(error.trouble)
        if len(closures) > MOST_EVENTS:
            hint = "leave out what repeats daily, or make two calendars"
            raise InvalidField("ics", f"comes to more than {MOST_EVENTS:,} closures", hint)
    return closures, read


def _components(lines: Iterable[Line], troubles: list[Trouble]) -> Iterator[_Event | str]:
    """The events, without what is nested in them; and the name of the file's own zone, if it has one."""
    within: list[str] = []
    event = _Event(0, {})
    was_calendar = False
    for line in lines:
        match line.name:
            case "BEGIN":
                within.append(line.value.strip().upper())
                was_calendar = was_calendar or within == _FILE
                event = _Event(line.number, {}) if within == _EVENT else event
            case "END":
                if within == _EVENT:
                    yield event
                if not within or within.pop() != line.value.strip().upper():
                    raise InvalidField("ics", f"line {line.number} ends what was not begun", "is the file complete?")
            case "X-WR-TIMEZONE" if within == _FILE:
                yield from _own_zone(line, troubles)
            case name if within == _EVENT:
                event.fields.setdefault(name, []).append(line)
    if not was_calendar:
        raise InvalidField("ics", "is no iCalendar file", "it begins with BEGIN:VCALENDAR")
    if within:
        raise InvalidField("ics", f"ends in the middle of a {within[-1][:40]}", "is the file complete?")


def _own_zone(line: Line, troubles: list[Trouble]) -> Iterator[str]:
    if (zone := zone_named(line.value.strip())) is not None:
        yield zone.key
    else:
        troubles.append(Trouble(line.number, f"unknown time zone {line.value[:64]!r}"))


def _closures(event: _Event, today: date, replaced: set[Moment], steps: Iterator[int]) -> Iterator[Closure]:
    start = event.one("DTSTART")
    if start is None:
        raise UnreadableError(event.line, "the event has no DTSTART")
    first = moment_of(start)
    length = _length(event, first)
    zone = zone_of(start)
    if (replaces := event.one("RECURRENCE-ID")) is not None:
        _replacing(replaces)
    left_out = (replaced, _excepted(event, first))  # not joined: thousands of events may share the first
    starts = [
        *_starts(event, first, today, steps),
        *(each for line in event.fields.get("RDATE", ()) for each in moments_of(line)),
    ]
    for each in dict.fromkeys(starts):
        if _is_left_out(each, zone, left_out):
            continue
        if type(each) is not type(first):
            raise UnreadableError(event.fields["RDATE"][0].number, "the RDATE is of another kind than DTSTART")
        closure = Closure(placed(each, zone), placed(each + length, zone), event.name)
        if closure.lasts:
            yield closure


def _excepted(event: _Event, first: Moment) -> set[Moment]:
    """What EXDATE names: of an all-day event the days, also where a time is told beside them."""
    lines = event.fields.get("EXDATE", ())
    return {each for line in lines for each in (moments_of(line) if isinstance(first, datetime) else days_of(line))}


def _is_left_out(start: Moment, zone: ZoneInfo | None, left_out: tuple[set[Moment], ...]) -> bool:
    """By what it is, or by its day where nothing but a day was named."""
    if not any(left_out):
        return False
    faces = {start, placed(start, zone), *([start.date()] if isinstance(start, datetime) else ())}
    return any(not faces.isdisjoint(each) for each in left_out)


def _starts(event: _Event, first: Moment, today: date, steps: Iterator[int]) -> Iterator[Moment]:
    rules = event.fields.get("RRULE", ())
    if not rules:
        yield first
        return
    if len(rules) > 1:
        raise UnreadableError(rules[1].number, "a second RRULE")
    if rule := event.one("EXRULE"):
        raise UnreadableError(rule.number, "EXRULE is not understood")
    day = first.date() if isinstance(first, datetime) else first
    try:
        repeat = parse_repeat(rules[0].value)
        for each in repeat_days(repeat, day, (today - BEHIND, today + AHEAD), steps):
            start = datetime.combine(each, first.timetz()) if isinstance(first, datetime) else each
            if _is_over(repeat, start, zone_of(event.fields["DTSTART"][0])):
                return
            if each >= today - BEHIND:
                yield start
    except (InvalidField, TooLong) as error:
        message = error.message if isinstance(error, InvalidField) else str(error)
        raise UnreadableError(rules[0].number, message) from None


def _is_over(repeat: Repeat, start: Moment, zone: ZoneInfo | None) -> bool:
    """An UNTIL with a time ends timed events: by instants if it is one, else by readings of the event's own clock."""
    until = repeat.until_time
    if until is None:
        return False
    if not isinstance(start, datetime):
        return start > until.date()
    at = start if until.tzinfo is None else placed(start, zone)
    if not isinstance(at, datetime):
        return False
    if (at.tzinfo is None) != (until.tzinfo is None):
        at, until = at.replace(tzinfo=None), until.replace(tzinfo=None)
    return at > until


def _length(event: _Event, first: Moment) -> timedelta:
    end, duration = event.one("DTEND"), event.one("DURATION")
    if end is not None:
        length = _between(first, end, event)
        if not length and not isinstance(first, datetime):  # forbidden, and meant by those who write it as that one day
            length = _DAY
        line = end.number
    elif duration is not None:
        length, line = duration_of(duration), duration.number
    else:
        length, line = (timedelta() if isinstance(first, datetime) else _DAY), event.line
    if length <= timedelta():
        raise UnreadableError(line, "the event has no length")
    if length > _LONGEST:
        raise UnreadableError(line, "the event lasts for longer than a year")
    if not isinstance(first, datetime) and length % _DAY:
        raise UnreadableError(line, "an all-day event lasts for whole days")
    return length


def _between(first: Moment, end: Line, event: _Event) -> timedelta:
    last = moment_of(end)
    if isinstance(first, datetime) and isinstance(last, datetime):
        start_zone, end_zone = zone_of(event.fields["DTSTART"][0]), zone_of(end)
        if start_zone is end_zone and (first.tzinfo is None) == (last.tzinfo is None):
            return last - first
        begins, ends = placed(first, start_zone), placed(last, end_zone)
        if isinstance(begins, datetime) and isinstance(ends, datetime) and begins.tzinfo and ends.tzinfo:
            return ends - begins
    elif not isinstance(first, datetime) and not isinstance(last, datetime):
        return last - first
    raise UnreadableError(end.number, "DTEND is of another kind than DTSTART")


def _uid(event: _Event) -> str:
    uid = event.one("UID")
    return f"#{event.line}" if uid is None else uid.value


def _replaced(events: Iterable[_Event], troubles: list[Trouble]) -> dict[str, set[Moment]]:
    """By event the repetitions that have an event of their own."""
    found: dict[str, set[Moment]] = {}
    for event in events:
        if (line := event.one("RECURRENCE-ID")) is not None:
            try:
                found.setdefault(_uid(event), set()).update(_replacing(line))
            except UnreadableError as error:
                troubles.append(error.trouble)
    return found


def _replacing(line: Line) -> list[Moment]:
    if "RANGE" in line.parameters:
        message = f"RANGE={line.parameters['RANGE'][:40]} is not understood: it changes more than one repetition"
        raise UnreadableError(line.number, message)
    return moments_of(line)
