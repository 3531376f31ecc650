"""Calendars as the API tells of them: what they have, who follows them, and when they are closed."""

import msgspec

from foliot.wire.timing import Instant


class CalendarSummary(msgspec.Struct, kw_only=True, rename="camel"):
    """A calendar in a list: how much it has, and who follows it."""

    name: str
    timezone: str
    business_days: list[str]
    holiday_count: int
    blackout_count: int
    source: str
    version: int
    jobs: int
    pending_jobs: int
    created_at: Instant
    updated_at: Instant


class CalendarView(msgspec.Struct, kw_only=True, rename="camel"):
    """A calendar as its owner wrote it; `pendingJobs` of its `jobs` follow the version before still."""

    name: str
    timezone: str
    business_days: list[str]
    holidays: list[dict[str, str]]
    blackouts: list[dict[str, str]]
    source: str
    version: int
    jobs: int
    pending_jobs: int
    created_at: Instant
    updated_at: Instant


class UnreadView(msgspec.Struct):
    """A line of a file that could not be read, and why; its event was left out."""

    line: int
    message: str


class ImportedCalendar(msgspec.Struct, kw_only=True):
    """What became of a file: the calendar now, the events that it took over, and what could not be read."""

    calendar: CalendarView
    events: int
    unread: list[UnreadView]


class ClosedView(msgspec.Struct, rename={"from_": "from"}):
    """A time without work, `until` excluded, and the names of what closes it."""

    from_: Instant
    until: Instant
    names: list[str]


class ClosedViews(msgspec.Struct):
    """The times without work, rising."""

    items: list[ClosedView]
