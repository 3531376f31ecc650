"""How many may go now, if so many may go a second."""

from datetime import datetime, timedelta
from typing import Final

BURST: Final = timedelta(seconds=1)
"""What was not used for longer than this is lost: after a pause nothing is made up for."""
_TICK: Final = 1e-6
"""Seconds: instants are rounded to it."""


def allowance(per_second: float, used_until: datetime | None, now: datetime) -> int:
    """How many may go now, if all that was allowed up to `used_until` has gone; none of it at the beginning: one."""
    return int(((now - _since(per_second, used_until, now)).total_seconds() + _TICK) * per_second)


def used(per_second: float, used_until: datetime | None, now: datetime, count: int) -> datetime:
    """Up to when all that was allowed has gone, after `count` went now."""
    return _since(per_second, used_until, now) + timedelta(seconds=count / per_second)


def _since(per_second: float, used_until: datetime | None, now: datetime) -> datetime:
    """From when on what is allowed counts. Not from the future, where a clock that was set back leaves `used_until`."""
    step = timedelta(seconds=1 / per_second)
    return now - step if used_until is None else min(max(used_until, now - step - BURST), now)
