"""The only place that asks the system for the time."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Final

Steady = Callable[[], float]
"""Seconds from some fixed moment: never set, never adjusted, going on while we are stopped or the machine sleeps."""

Wall = Callable[[], datetime]
"""What people call the time: told to them and written down, never trusted to decide anything."""

# Deadlines and leases are measured by this one: a wall clock that is set an hour forward must not time everything out.
_STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

# Asked for every run: not through a function of ours.
steady: Final[Steady] = partial(time.clock_gettime, _STEADY)
wall: Final[Wall] = partial(datetime.now, UTC)
