"""The only place that asks the system for the time."""

import time
from collections.abc import Callable
from typing import Final

Steady = Callable[[], float]
"""Seconds from some fixed moment: never set, never adjusted, going on while we are stopped or the machine sleeps."""

# Deadlines and leases are measured by this one: a wall clock that is set an hour forward must not time everything out.
_STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def steady() -> float:
    return time.clock_gettime(_STEADY)
