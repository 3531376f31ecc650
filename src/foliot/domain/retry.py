"""When to try again, and when to stop."""

import math
from datetime import timedelta
from enum import StrEnum
from typing import Final

import msgspec

from foliot.domain.errors import InvalidField

LONGEST_RETRY_AFTER: Final = timedelta(hours=24)
LONGEST_BACKOFF: Final = timedelta(days=30)
MOST_RETRIES: Final = 1_000
_NONE: Final = timedelta(0)


class Backoff(msgspec.Struct, frozen=True):
    """The longest wait: `initial` after the first failure, times `factor` after each further one, up to `max`."""

    initial: timedelta = timedelta(seconds=1)
    factor: float = 2.0
    max: timedelta = timedelta(minutes=10)

    def __post_init__(self) -> None:
        if not _NONE <= self.max <= LONGEST_BACKOFF:
            raise InvalidField("backoff.max", "must lie between 0 and 30 days", 'for example "PT10M"')
        if not _NONE <= self.initial <= self.max:
            raise InvalidField("backoff.initial", "must lie between 0 and backoff.max", "raise max or lower initial")
        if not 1 <= self.factor <= 10:
            raise InvalidField("backoff.factor", "must lie between 1 and 10", "2 doubles the wait after each failure")


class StopReason(StrEnum):
    PERMANENT = "permanent"  # the handler said that trying again is no use
    EXHAUSTED = "exhausted"  # all retries are used


class Again(msgspec.Struct, frozen=True):
    delay: timedelta


class Stop(msgspec.Struct, frozen=True):
    reason: StopReason


def decide(
    *,
    failures: int,
    max_retries: int,
    backoff: Backoff,
    permanent: bool,
    retry_after: timedelta | None,
    chance: float,
) -> Again | Stop:
    """Say what follows a failed attempt; `failures` counts this one too.

    `retry_after`, at most 24 hours of it, comes on top of the jitter: it is kept as a minimum, and the runs a
    handler turned away together do not return together.
    """
    if permanent:
        return Stop(StopReason.PERMANENT)
    if failures > max_retries:
        return Stop(StopReason.EXHAUSTED)
    least = min(max(retry_after or _NONE, _NONE), LONGEST_RETRY_AFTER)
    return Again(least + delay(backoff, failures, chance))


def delay(backoff: Backoff, failures: int, chance: float) -> timedelta:
    """Full jitter: the share `chance`, in [0, 1), of the ceiling after `failures` failed attempts."""
    if failures < 1:
        raise ValueError(f"a delay follows a failure, and there were {failures}")
    return _ceiling(backoff, failures - 1) * chance


def _ceiling(backoff: Backoff, growths: int) -> timedelta:
    if backoff.initial == _NONE or backoff.factor == 1:
        return backoff.initial
    # Compare exponents, not powers: factor ** growths overflows a float long before retries run out.
    if growths >= math.log(backoff.max / backoff.initial, backoff.factor):
        return backoff.max
    return min(backoff.max, backoff.initial * backoff.factor**growths)
