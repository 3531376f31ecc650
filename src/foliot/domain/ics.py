"""iCalendar files (RFC 5545): all-day events are days off, timed ones blackouts, and what cannot be read is said."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from foliot.domain.errors import InvalidField
from foliot.domain.eventdays import Repeat, TooLong, parse_repeat, repeat_days
from foliot.domain.zone import check_zone, first_showing

LARGEST: Final = 1 << 20
MOST_EVENTS: Final = 10_000
AHEAD: Final = timedelta(days=3660)
"""How far events without an end are followed."""
BEHIND: Final = timedelta(days=366)
"""Repetitions that are longer past than this are left out: nobody asks for them any more."""
_MOST_STEPS: Final = 200_000
"""Days, weeks, months and years that the repeating events of a file are followed through, all together."""
_FILE: Final = ["VCALENDAR"]
_EVENT: Final = ["VCALENDAR", "VEVENT"]
_LONGEST: Final = timedelta(days=366)
_DAY: Final = timedelta(days=1)
_PARAMETER: Final = re.compile(r';([A-Za-z-]+)=("[^"]*"|[^;:,"]*)')
_NAME: Final = re.compile(r"[A-Za-z0-9-]+")
_DURATION: Final = re.compile(
    r"\+?P(?=.)(?:(\d{1,4})W)?(?:(\d{1,5})D)?(?:T(?=.)(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,6})S)?)?", re.ASCII
)
_ESCAPED: Final = re.compile(r"\\([\\;,nN])")

Day = date
Moment = date | datetime
"""An all-day event's day; a timed event's reading of a wall clock, or instant."""


class Closure(NamedTuple):
    """A day off, or a window without work, as an event says it."""

    start: Moment
    end: Moment
    """Excluded; for days off the day after the last one."""
    name: str

    @property
    def is_day_off(self) -> bool:
        return not isinstance(self.start, datetime)


class Trouble(NamedTuple):
    """What could not be read."""

    line: int
    message: str


class Imported(NamedTuple):
    closures: list[Closure]
    troubles: list[Trouble]
    events: int
    """Events from which closures were made."""
    timezone: str | None
    """The zone that the file names as its own."""


class _Line(msgspec.Struct, frozen=True):
    number: int
    name: str
    parameters: dict[str, str]
    value: str


class _UnreadableError(Exception):
    def __init__(self, line: int, message: str) -> None:
        super().__init__()
        self.trouble = Trouble(line, message)


class _Event(msgspec.Struct):
    line: int
    fields: dict[str, list[_Line]]

    def one(self, name: str) -> _Line | None:
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
    for found in _components(_lines(text, troubles), troubles):
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
        except _UnreadableError as error:
            troubles.append(error.trouble)
        if len(closures) > MOST_EVENTS:
            hint = "leave out what repeats daily, or make two calendars"
            raise InvalidField("ics", f"comes to more than {MOST_EVENTS:,} closures", hint)
    return closures, read


def _lines(text: str, troubles: list[Trouble]) -> Iterator[_Line]:
    """Logical lines: a line that begins with a blank goes on with the one before."""
    first, parts = 0, list[str]()
    for number, line in enumerate([*re.split(r"\r\n|\n|\r", text.removeprefix("\ufeff")), ""], start=1):
        if line[:1] in {" ", "\t"} and parts:
            parts.append(line[1:])
            continue
        if parts and (whole := "".join(parts)).strip():
            if read := _line(first, whole):
                yield read
            else:
                troubles.append(Trouble(first, f"is not NAME:VALUE: {whole[:40]!r}"))
        first, parts = number, [line]


def _line(number: int, whole: str) -> _Line | None:
    name = _NAME.match(whole)
    if name is None:
        return None
    place, parameters = name.end(), dict[str, str]()
    while match := _PARAMETER.match(whole, place):
        parameters[match[1].upper()] = match[2].strip('"')
        place = match.end()
        while more := re.compile(r',("[^"]*"|[^;:,"]*)').match(whole, place):  # further values of one parameter
            place = more.end()
    return _Line(number, name[0].upper(), parameters, whole[place + 1 :]) if whole[place : place + 1] == ":" else None


def _components(lines: Iterable[_Line], troubles: list[Trouble]) -> Iterator[_Event | str]:
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


def _own_zone(line: _Line, troubles: list[Trouble]) -> Iterator[str]:
    if (zone := _zone_named(line.value.strip())) is not None:
        yield zone.key
    else:
        troubles.append(Trouble(line.number, f"unknown time zone {line.value[:64]!r}"))


def _closures(event: _Event, today: date, replaced: set[Moment], steps: Iterator[int]) -> Iterator[Closure]:
    start = event.one("DTSTART")
    if start is None:
        raise _UnreadableError(event.line, "the event has no DTSTART")
    first = _moment(start)
    length = _length(event, first)
    zone = _zone(start)
    left_out = replaced | {each for line in event.fields.get("EXDATE", ()) for each in _moments(line)}
    starts = [
        *_starts(event, first, today, steps),
        *(each for line in event.fields.get("RDATE", ()) for each in _moments(line)),
    ]
    for each in dict.fromkeys(starts):
        if each in left_out or _placed(each, zone) in left_out:
            continue
        if type(each) is not type(first):
            raise _UnreadableError(event.fields["RDATE"][0].number, "the RDATE is of another kind than DTSTART")
        yield Closure(_placed(each, zone), _placed(each + length, zone), event.name)


def _starts(event: _Event, first: Moment, today: date, steps: Iterator[int]) -> Iterator[Moment]:
    rules = event.fields.get("RRULE", ())
    if not rules:
        yield first
        return
    if len(rules) > 1:
        raise _UnreadableError(rules[1].number, "a second RRULE")
    if rule := event.one("EXRULE"):
        raise _UnreadableError(rule.number, "EXRULE is not understood")
    day = first.date() if isinstance(first, datetime) else first
    try:
        repeat = parse_repeat(rules[0].value)
        for each in repeat_days(repeat, day, (today - BEHIND, today + AHEAD), steps):
            start = datetime.combine(each, first.timetz()) if isinstance(first, datetime) else each
            if _is_over(repeat, start, _zone(event.fields["DTSTART"][0])):
                return
            if each >= today - BEHIND:
                yield start
    except (InvalidField, TooLong) as error:
        message = error.message if isinstance(error, InvalidField) else str(error)
        raise _UnreadableError(rules[0].number, message) from None


def _is_over(repeat: Repeat, start: Moment, zone: ZoneInfo | None) -> bool:
    """An UNTIL that is an instant ends timed events by their instants; all else is a matter of days."""
    until = repeat.until_instant
    if until is None or not isinstance(start, datetime):
        return False
    at = _placed(start, zone)
    if not isinstance(at, datetime):
        return False
    return at > until if at.tzinfo is not None else at > until.replace(tzinfo=None)


def _length(event: _Event, first: Moment) -> timedelta:
    end, duration = event.one("DTEND"), event.one("DURATION")
    if end is not None:
        length = _between(first, end, event)
        line = end.number
    elif duration is not None:
        length, line = _duration(duration), duration.number
    else:
        length, line = (timedelta() if isinstance(first, datetime) else _DAY), event.line
    if length <= timedelta():
        raise _UnreadableError(line, "the event has no length")
    if length > _LONGEST:
        raise _UnreadableError(line, "the event lasts for longer than a year")
    if not isinstance(first, datetime) and length % _DAY:
        raise _UnreadableError(line, "an all-day event lasts for whole days")
    return length


def _between(first: Moment, end: _Line, event: _Event) -> timedelta:
    last = _moment(end)
    if isinstance(first, datetime) and isinstance(last, datetime):
        start_zone, end_zone = _zone(event.fields["DTSTART"][0]), _zone(end)
        if start_zone is end_zone and (first.tzinfo is None) == (last.tzinfo is None):
            return last - first
        begins, ends = _placed(first, start_zone), _placed(last, end_zone)
        if isinstance(begins, datetime) and isinstance(ends, datetime) and begins.tzinfo and ends.tzinfo:
            return ends - begins
    elif not isinstance(first, datetime) and not isinstance(last, datetime):
        return last - first
    raise _UnreadableError(end.number, "DTEND is of another kind than DTSTART")


def _duration(line: _Line) -> timedelta:
    match = _DURATION.fullmatch(line.value.strip().upper())
    if match is None:
        raise _UnreadableError(line.number, f"no duration: {line.value[:40]!r}")
    weeks, days, hours, minutes, seconds = (int(number or 0) for number in match.groups())
    return timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)


def _moments(line: _Line) -> list[Moment]:
    """All values of a line, as instants where its zone makes them so."""
    values = (msgspec.structs.replace(line, value=value) for value in line.value.split(","))
    return [_placed(_moment(value), _zone(line)) for value in values]


def _moment(line: _Line) -> Moment:
    """A day, a reading, or an instant in UTC."""
    text = line.value.strip().upper()
    kind = line.parameters.get("VALUE", "DATE-TIME" if "T" in text else "DATE").upper()
    try:
        if kind == "DATE" and re.fullmatch(r"[0-9]{8}", text):
            return date(int(text[:4]), int(text[4:6]), int(text[6:]))
        if kind == "DATE-TIME" and re.fullmatch(r"[0-9]{8}T[0-9]{6}Z?", text):
            # The 60th second is a leap second; clocks that have none show the 59th for longer.
            clock = time(int(text[9:11]), int(text[11:13]), min(int(text[13:15]), 59))
            day = date(int(text[:4]), int(text[4:6]), int(text[6:8]))
            return datetime.combine(day, clock, tzinfo=UTC if text.endswith("Z") else None)
    except ValueError:
        pass
    raise _UnreadableError(line.number, f"no date that exists: {line.value[:40]!r}")


def _zone(line: _Line) -> ZoneInfo | None:
    name = line.parameters.get("TZID")
    if name is None:
        return None
    zone = _zone_named(name)
    if zone is None:
        raise _UnreadableError(line.number, f"unknown time zone {name[:64]!r}")
    return zone


def _zone_named(name: str) -> ZoneInfo | None:
    """IANA names, also behind a prefix such as `/freeassociation.sourceforge.net/Europe/Berlin`."""
    parts = name.strip("/").split("/")
    for some in range(len(parts)):
        try:
            return check_zone("/".join(parts[some:]))
        except InvalidField:
            continue
    return None


def _placed(moment: Moment, zone: ZoneInfo | None) -> Moment:
    """A reading in a zone of its own is an instant; without one it is read by the calendar's clock."""
    if isinstance(moment, datetime) and moment.tzinfo is None and zone is not None:
        return first_showing(zone, moment)
    return moment


def _uid(event: _Event) -> str:
    uid = event.one("UID")
    return f"#{event.line}" if uid is None else uid.value


def _replaced(events: Iterable[_Event], troubles: list[Trouble]) -> dict[str, set[Moment]]:
    """By event the repetitions that have an event of their own."""
    found: dict[str, set[Moment]] = {}
    for event in events:
        if (line := event.one("RECURRENCE-ID")) is not None:
            try:
                found.setdefault(_uid(event), set()).update(_moments(line))
            except _UnreadableError as error:
                troubles.append(error.trouble)
    return found
