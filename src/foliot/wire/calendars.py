"""Calendars on the wire: what an owner writes, what comes back, and how a job names the one that it follows."""

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from foliot.domain.calendar import WEEKDAYS, Calendar, Named, Weekly, Window
from foliot.domain.errors import FoliotError, InvalidField
from foliot.domain.ics import Closure
from foliot.domain.job import Draft
from foliot.domain.moving import Rule
from foliot.domain.schedule import OnCalendar, Recurrence
from foliot.wire.codec import CONTROL, rfc3339

NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_MOMENT: Final = re.compile(r"(MON|TUE|WED|THU|FRI|SAT|SUN) ([01][0-9]|2[0-4]):([0-5][0-9])", re.IGNORECASE)
_DAY_MINUTES: Final = 1440
MOST_WEEKLY: Final = 200
"""Windows that come back every week. A search for an opening may go through all of them, for months of weeks."""
_WEEKLY: Final = 'for example "SAT 22:00/SUN 06:00"'

Label = Annotated[str, Meta(max_length=200)]


class CalendarUse(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The calendar that a job follows, and what becomes of runs that it does not allow."""

    name: str
    rule: Rule = "skip"


class Calendars(NamedTuple):
    """Calendars by name, as far as they have been asked for; for those that there are not, what to do instead."""

    found: Mapping[str, Named] = MappingProxyType({})
    missing: Mapping[str, str] = MappingProxyType({})

    @property
    def by_digest(self) -> dict[str, Calendar]:
        return {each.calendar.digest: each.calendar for each in self.found.values()}


NO_CALENDARS: Final = Calendars()


class UnknownCalendars(FoliotError):  # noqa: N818 - reads aloud
    """Names that nobody has asked for yet: only the store can tell whether they exist."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(names)
        super().__init__(f"calendars to be looked up: {', '.join(sorted(self.names))}")


def use_of(written: str | CalendarUse) -> CalendarUse:
    return CalendarUse(written) if isinstance(written, str) else written


def words_of(use: CalendarUse) -> str | dict[str, str]:
    """The same on the wire, as short as can be."""
    return use.name if use.rule == "skip" else {"name": use.name, "rule": use.rule}


def following(draft: Draft, written: str | CalendarUse, calendars: Calendars) -> Draft:
    """The same job, following that calendar."""
    use = use_of(written)
    if draft.recurrence is None:
        raise InvalidField("calendar", "only a recurring job can follow one", "leave it out, or add a schedule")
    named = _named(use.name, calendars)
    recurrence = _on_calendar(draft.recurrence, named, use.rule)
    timing = {**draft.timing, "calendar": words_of(use)}
    return msgspec.structs.replace(draft, recurrence=recurrence, calendar=named.id, timing=timing)


def recurrence_following(recurrence: Recurrence, use: CalendarUse, calendars: Calendars) -> OnCalendar:
    return _on_calendar(recurrence, _named(use.name, calendars), use.rule)


def _named(name: str, calendars: Calendars) -> Named:
    if name in calendars.found:
        return calendars.found[name]
    if name in calendars.missing:
        raise InvalidField("calendar", f"there is no calendar {name[:63]!r}", calendars.missing[name])
    raise UnknownCalendars({name})


def _on_calendar(recurrence: Recurrence, named: Named, rule: Rule) -> OnCalendar:
    if isinstance(recurrence, OnCalendar):
        raise InvalidField("calendar", "stands twice", "a job follows one calendar")
    return OnCalendar(recurrence, named.calendar, rule)


class HolidayBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    date: date
    name: Label = ""


class BlackoutBody(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"from_": "from"}, omit_defaults=True
):
    """A window without work: once, by the calendar's wall clock or as instants, or every week."""

    from_: datetime | None = None
    until: datetime | None = None
    weekly: str | None = None
    name: Label = ""

    @property
    def window(self) -> Window | Weekly:
        if self.weekly is not None:
            if self.from_ is not None or self.until is not None:
                raise InvalidField("weekly", "stands beside from or until", "a window comes once, or every week")
            return parse_weekly(self.weekly)
        if self.from_ is None or self.until is None:
            raise InvalidField("from", "a window has from and until, or weekly", _WEEKLY)
        return Window(self.from_, self.until)


class CalendarBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A calendar as its owner writes it."""

    timezone: str
    business_days: tuple[str, ...] = WEEKDAYS
    holidays: list[date | HolidayBody] = []
    blackouts: list[BlackoutBody] = []


def parse_weekly(text: str) -> Weekly:
    """Read `SAT 22:00/SUN 06:00`."""
    first, slash, last = text.strip().partition("/")
    start, end = _minutes(first), _minutes(last)
    if not slash or start is None or end is None or start == 7 * _DAY_MINUTES:
        raise InvalidField("weekly", f"cannot be read: {text[:40]!r}", _WEEKLY)
    return Weekly(start, (end - start) % (7 * _DAY_MINUTES))


def format_weekly(weekly: Weekly) -> str:
    ends = (weekly.start, (weekly.start + weekly.length) % (7 * _DAY_MINUTES))
    return "/".join(
        f"{WEEKDAYS[day]} {minute // 60:02}:{minute % 60:02}" for day, minute in (divmod(each, 1440) for each in ends)
    )


def calendar_of_body(body: CalendarBody) -> tuple[Calendar, dict[str, Any]]:
    """What it means, and what its owner wrote, in order; or InvalidField that names the part that is wrong."""
    holidays = {each.date: each.name for each in map(_holiday, reversed(body.holidays))}
    blackouts: dict[Window | Weekly, str] = {}
    for index, each in enumerate(body.blackouts):
        try:
            blackouts.setdefault(each.window, each.name)
        except InvalidField as error:
            raise error.within(f"blackouts[{index}]") from None
    days = [_business_day(text) for text in body.business_days]
    return build(body.timezone, days, holidays, blackouts)


def build(
    timezone: str, business_days: Iterable[int], holidays: Mapping[date, str], blackouts: Mapping[Window | Weekly, str]
) -> tuple[Calendar, dict[str, Any]]:
    for name in (*holidays.values(), *blackouts.values()):
        if CONTROL.search(name):
            raise InvalidField("name", "contains control characters", "leave out line breaks, tabs and the like")
    if sum(isinstance(each, Weekly) for each in blackouts) > MOST_WEEKLY:
        hint = "join those that touch: a week has 168 hours"
        raise InvalidField("blackouts", f"more than {MOST_WEEKLY} of them come back every week", hint)
    calendar = Calendar(
        timezone,
        tuple(business_days),
        tuple(holidays),
        tuple(each for each in blackouts if isinstance(each, Window)),
        tuple(each for each in blackouts if isinstance(each, Weekly)),
    )
    document = {
        "timezone": timezone,
        "businessDays": [WEEKDAYS[day] for day in calendar.business_days],
        "holidays": [_labelled({"date": day.isoformat()}, holidays[day]) for day in calendar.holidays],
        "blackouts": [
            *(_labelled(_once(each), blackouts[each]) for each in calendar.blackouts),
            *(_labelled({"weekly": format_weekly(each)}, blackouts[each]) for each in calendar.weekly),
        ],
    }
    return calendar, document


def with_closures(body: CalendarBody, closures: Iterable[Closure], *, add: bool) -> tuple[Calendar, dict[str, Any]]:
    """A calendar with the events of a file: beside its own, or instead of all but the weekly windows."""
    holidays = {each.date: each.name for each in map(_holiday, body.holidays)} if add else {}
    blackouts = {each.window: each.name for each in body.blackouts if add or each.weekly is not None}
    for start, end, name in closures:
        if isinstance(start, datetime) and isinstance(end, datetime):
            blackouts.setdefault(Window(start, end), name)
        else:
            for number in range(start.toordinal(), end.toordinal()):
                holidays.setdefault(date.fromordinal(number), name)
    return build(body.timezone, map(_business_day, body.business_days), holidays, blackouts)


def _holiday(written: date | HolidayBody) -> HolidayBody:
    return written if isinstance(written, HolidayBody) else HolidayBody(written)


def _business_day(text: str) -> int:
    if text.upper() not in WEEKDAYS:
        raise InvalidField("businessDays", f"{text[:20]!r} is no weekday", f"some of {', '.join(WEEKDAYS)}")
    return WEEKDAYS.index(text.upper())


def _minutes(text: str) -> int | None:
    match = _MOMENT.fullmatch(text.strip())
    if match is None or (match[2] == "24" and match[3] != "00"):
        return None
    return WEEKDAYS.index(match[1].upper()) * _DAY_MINUTES + int(match[2]) * 60 + int(match[3])


def _once(window: Window) -> dict[str, str]:
    bounds = {"from": window.start, "until": window.end}
    return {name: rfc3339(at) if at.tzinfo is not None else at.isoformat() for name, at in bounds.items()}


def _labelled(words: dict[str, str], name: str) -> dict[str, str]:
    return {**words, "name": name} if name else words
