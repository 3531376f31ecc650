"""Looks ahead on the wire: fires that are still to come."""

from typing import Final

import msgspec

from foliot.wire.timing import Instant

LOSABLE: Final = (
    "cronExpression", "every", "rrule", "when", "timezone", "dst", "scheduleAt", "endsAt", "maxRuns", "calendar",
)  # fmt: skip
"""Fields of a job that decide when it fires: what it would do without them can be looked at."""


class FireView(msgspec.Struct, omit_defaults=True):
    """One fire to come: when, what the schedule's wall clock shows then, and whether it changes on that day.

    Compared with a job's present schedule it also says its `change`: `same`, `added` or `removed`.
    """

    at: Instant
    local: str
    transition: str | None
    change: str | None = None


class Preview(msgspec.Struct, rename="camel"):
    """The next fires of a recurrence, and the edition of the time zone database that they were reckoned with."""

    items: list[FireView]
    zone_data: str
