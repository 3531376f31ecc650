"""Which instant is the last of so many, counted from the start of a recurrence."""

from datetime import datetime
from itertools import islice
from typing import Final

from foliot.domain.daylight import USUAL
from foliot.domain.errors import InvalidField
from foliot.domain.schedule import Every, Plain, Steps, fires_from

MOST: Final = 1_000
"""Instants that are counted one by one while somebody waits for the answer."""


def nth_fire(recurrence: Plain, start: datetime, number: int, field: str) -> datetime | None:
    """Find the `number`-th fire at or after `start`; None if the calendar ends before it."""
    if isinstance(recurrence, Every | Steps) and recurrence.anchor == start and _is_even(recurrence):
        return _nth_step(recurrence, number)
    if number > MOST:
        hint = "write its last instant as endsAt, or the number as maxRuns, which counts runs from now on"
        raise InvalidField(field, f"more than {MOST:,} instants are not counted from a start", hint)
    return next(islice(fires_from(recurrence, start), number - 1, None), None)


def _is_even(recurrence: Every | Steps) -> bool:
    """Whether each step is one fire: no day has none or two of them."""
    return isinstance(recurrence, Every) or recurrence.dst == USUAL


def _nth_step(recurrence: Every | Steps, number: int) -> datetime | None:
    try:
        if isinstance(recurrence, Steps):
            return recurrence.fires(number - 1)[0]
        return None if recurrence.anchor is None else recurrence.anchor + (number - 1) * recurrence.period
    except (OverflowError, ValueError):  # the calendar ends with the year 9999
        return None
