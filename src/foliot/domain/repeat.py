"""Repeating intervals of ISO 8601, `R5/2026-01-01T00:00:00Z/PT1H`: how often, from when on, and by which step."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from foliot.domain.errors import InvalidField
from foliot.domain.steps import parse_step, steps_before
from foliot.domain.zone import check_zone

_HEAD: Final = re.compile(r"R(\d{0,9})", re.ASCII)
_EXAMPLE: Final = 'for example "R/2026-01-31T09:00:00Z/PT1H", or "R5/…" for five times'


class Repeat(NamedTuple):
    """The same in three fields of a job."""

    step: str
    start: datetime | None
    number: int | None
    """Of fires in all, the first one at `start` included; none is for ever."""


def is_repeat(written: object) -> bool:
    return isinstance(written, str) and written.strip().upper().startswith("R")


def parse_repeat(written: str, timezone: str = "UTC", field: str = "every") -> Repeat:
    """Read `R[n]/start/step`, `R[n]/start/end`, where the step is the time between, `Rn/step/end` or `R[n]/step`.

    The zone is that of days and months which are counted back from an end.
    """
    head, *rest = (part.strip() for part in written.strip().upper().split("/"))
    match = _HEAD.fullmatch(head)
    if match is None or len(rest) not in (1, 2):
        raise InvalidField(field, f"not a repeating interval: {written[:60]!r}", _EXAMPLE)
    count = int(match[1]) if match[1] else None
    if count == 0:
        raise InvalidField(field, "R0 never fires", "the number says how often it fires in all; none is for ever")
    if rest[0].startswith("P") and len(rest) == 2:
        return Repeat(rest[0], _start_before(_instant(rest[1], field), rest[0], count, timezone, field), count)
    start = _instant(rest[0], field) if len(rest) == 2 else None
    if start is None or rest[-1].startswith("P"):
        parse_step(rest[-1], field)
        return Repeat(rest[-1], start, count)
    return Repeat(_between(start, _instant(rest[-1], field), field), start, count)


def _start_before(end: datetime, written: str, count: int | None, timezone: str, field: str) -> datetime:
    """Where so many steps begin, the last of which ends at `end`."""
    step, zone = parse_step(written, field), check_zone(timezone)
    if count is None:
        hint = f"write how many there are, as in R5/{written}/…, or R/start/{written} and the end as endsAt"
        raise InvalidField(field, "goes back from its end for ever", hint)
    try:
        return steps_before(end, step, count, zone)
    except (OverflowError, ValueError):  # years are counted from 1
        raise InvalidField(field, "begins before the calendar does", "a smaller number, or R/start/step") from None


def _between(start: datetime, end: datetime, field: str) -> str:
    """Elapsed time, never days of a calendar."""
    seconds = (end - start) / timedelta(seconds=1)
    if seconds <= 0:
        raise InvalidField(field, "ends before it begins", _EXAMPLE)
    return f"PT{seconds:.6f}S"


def _instant(text: str, field: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidField(field, f"not an instant: {text[:40]!r}", _EXAMPLE) from None
    if instant.tzinfo is None:
        raise InvalidField(field, f"{text} lacks its offset from UTC", f"write {text[:19]}Z, or +01:00 at its end")
    return instant.astimezone(UTC)
