"""How much may come in: a bucket that fills steadily, and from which every call takes what it costs."""

from collections.abc import Sequence
from math import ceil
from typing import Final, NamedTuple

from foliot.domain.errors import InvalidField

FASTEST: Final = 1_000_000.0
LARGEST_BURST: Final = 10_000_000
_HAIR: Final = 1e-6
"""Who waits as long as it was told shall not fail by a rounding."""


class RateLimit(NamedTuple):
    """So many a second in the long run, and so many at once after a while of silence."""

    per_second: float
    burst: int


def rate_limit(per_second: float, burst: int | None, field: str = "rateLimit") -> RateLimit:
    """A limit that makes sense, or InvalidField. Without a burst it is what one second brings, at least 1."""
    if not 0 < per_second <= FASTEST:
        hint = f"use a number above 0, up to {FASTEST:,.0f}; null takes the limit away"
        raise InvalidField(f"{field}.perSecond", f"a rate of {per_second:g} cannot be", hint)
    if burst is None:
        return RateLimit(per_second, max(1, ceil(per_second)))
    if not 1 <= burst <= LARGEST_BURST:
        raise InvalidField(f"{field}.burst", f"a burst of {burst} cannot be", f"from 1 to {LARGEST_BURST:,}")
    return RateLimit(per_second, burst)


class Bucket:
    """What is left of a limit, as far as one process knows.

    A call that costs more than the whole bucket holds is let in when the bucket is full, and leaves a debt: nobody
    follows until it is worked off. So over any time no more comes in than the rate allows, plus one bucket or one call.
    """

    __slots__ = ("_asked", "_at", "_spent", "level", "limit", "share")

    def __init__(self, limit: RateLimit, now: float) -> None:
        self.limit = limit
        self.level = float(limit.burst)
        self.share = 1.0
        """Of what fills the bucket, the part that this process lets in; the rest is for others who share the limit."""
        self._at = now
        self._spent = 0
        self._asked = 0

    def wait(self, now: float, cost: int, paid: int = 0) -> float:
        """Seconds until a call that costs so much may come in, of which some is paid already; 0 if it may now."""
        self._fill(now)
        short = min(cost, self.limit.burst) - paid - self.level
        return 0.0 if short <= _HAIR else short / self.limit.per_second

    def spend(self, cost: int) -> None:
        self.level -= cost
        self._spent += cost

    def note_asked(self, cost: int) -> None:
        """Somebody wanted so much, whether or not it was let in."""
        self._asked += cost

    @property
    def remaining(self) -> int:
        return max(0, int(self.level + _HAIR))

    @property
    def reset(self) -> int:
        """Whole seconds until it is full again, if nobody comes."""
        return ceil(max(0.0, self.limit.burst - self.level - _HAIR) / self.limit.per_second)

    def change(self, limit: RateLimit, now: float) -> None:
        """Go by another limit from now on; what is there is kept, as far as it fits, and so is a debt."""
        if limit != self.limit:
            self._fill(now)
            self.limit, self.level = limit, min(self.level, limit.burst)

    def report(self) -> tuple[int, int]:
        """What was spent and what was asked for since the last report."""
        told, self._spent, self._asked = (self._spent, self._asked), 0, 0
        return told

    def take_back(self, spent: int, asked: int) -> None:
        """The report did not arrive: it is told again, with the next."""
        self._spent, self._asked = self._spent + spent, self._asked + asked

    def adopt(self, level: float, share: float, now: float) -> None:
        """Go on from what is left for all who share the limit; what was spent since the report is not in it."""
        self.level, self.share, self._at = level - self._spent, share, now

    def _fill(self, now: float) -> None:
        gained = (now - self._at) * self.limit.per_second * self.share
        self._at = now
        self.level = min(float(self.limit.burst), self.level + gained)


def tightest(buckets: Sequence[Bucket]) -> Bucket:
    """The one that will be empty first."""
    return min(buckets, key=lambda each: each.level)
