"""Ten million jobs as their owners would write them: which there are, and when each of them is due."""

import math
from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from foliot.bench.produce import PAYLOAD, TENANTS
from foliot.domain.duration import format_duration
from foliot.wire.codec import rfc3339

TEN_MILLION: Final = 10_000_000
MOST_SHARED: Final = 2_000
HOUR: Final = 3_600
SHORTEST, PERIODS = 600, 3_001
"""Intervals last so many seconds, and so many more: 10 to 60 minutes."""
ANCHOR: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The anchors of the intervals lie in the hour before."""
LATER: Final = datetime(2090, 1, 1, tzinfo=UTC)
"""Timers wait for this day, one after the other, until a measurement calls some of them up."""
ODD: Final = 997
"""Instants end in 1 to 997 microseconds: all in one notation, and none of them on a tick."""
SCATTER: Final = 7_919
"""A prime: multiplied by it, numbers that follow each other end up far apart."""
MORE: Final = 1.01
"""Of the rate, on average: crons and intervals come in lumps, and fewer than the rate would be less than promised."""
_MICROSECOND: Final = timedelta(microseconds=1)
_SECOND: Final = 1_000_000


class Load(msgspec.Struct, frozen=True):
    """So many jobs: four tenths crons that share schedules, one tenth intervals of their own, the rest timers."""

    jobs: int
    crowd: int | None = None
    """Jobs of one instant, if others than usual."""

    @property
    def crons(self) -> int:
        return self.jobs * 4 // 10

    @property
    def shared(self) -> int:
        """Schedules of the crons, each hourly at a second of its own."""
        return min(MOST_SHARED, self.crons)

    @property
    def intervals(self) -> int:
        return self.jobs // 10

    @property
    def timers(self) -> int:
        return self.jobs - self.crons - self.intervals

    @property
    def burst(self) -> int:
        """Jobs besides that are due at one instant."""
        return self.crowd or max(100, self.jobs // 100)

    @property
    def rate(self) -> int:
        """Runs that fall due each second, of all kinds together."""
        return max(1, self.jobs // 1_000)

    @property
    def timer_rate(self) -> int:
        """Timers a second: what crons and intervals leave of the rate, and so many more that no window has less."""
        recurring = self.crons / HOUR + self.intervals * math.log((SHORTEST + PERIODS) / SHORTEST) / PERIODS
        return max(1, round(MORE * self.rate - recurring))

    def cron(self, schedule: int) -> str:
        minute, second = divmod(schedule * HOUR // self.shared, 60)
        return f"{second} {minute} * * * *"

    @property
    def anchors(self) -> tuple[datetime, int]:
        """Since when they follow each other, and how many a second."""
        return ANCHOR - timedelta(hours=1), max(1, self.intervals // HOUR)

    def anchor(self, interval: int) -> datetime:
        since, rate = self.anchors
        return since + _spread(interval, rate)

    def due(self, timer: int, since: datetime = LATER) -> datetime:
        return since + _spread(timer, self.timer_rate)

    def called_up(self, duration: float) -> int:
        """Timers for so many seconds; never so many that scattering them would put two in one place."""
        count = min(self.timers, round(duration * self.timer_rate))
        return count if count % SCATTER else count - 1

    def due_within(self, since: datetime, after: datetime, until: datetime) -> int:
        """How many runs fall due after `after` and up to `until`, the timers being called up for `since`."""
        first, last = (
            bisect_right(range(self.timers), end, key=lambda n: self.due(n, since)) for end in (after, until)
        )
        begin, end = ((each - ANCHOR) // _MICROSECOND for each in (after, until))
        found = last - first
        for place in range(self.shared):
            second = place * HOUR // self.shared
            jobs = self.crons // self.shared + (place < self.crons % self.shared)
            found += jobs * _instants(second * _SECOND, HOUR * _SECOND, begin, end)
        for interval in range(self.intervals):
            anchor = (self.anchor(interval) - ANCHOR) // _MICROSECOND
            found += _instants(anchor, seconds(interval) * _SECOND, begin, end)
        return found

    def tenant(self, number: int) -> int:
        """Whose job this is: each of the shared schedules is one tenant's."""
        return number % self.shared % TENANTS if number < self.crons else number % TENANTS

    def body(self, number: int) -> dict[str, Any]:
        """The job as its owner would send it to the API."""
        common = {"handler": "noop", "payload": msgspec.Raw(PAYLOAD)}
        if number < self.crons:
            return common | {"name": "report", "cronExpression": self.cron(number % self.shared)}
        if (interval := number - self.crons) < self.intervals:
            anchor = rfc3339(self.anchor(interval))
            return common | {"name": "probe", "every": period(interval), "scheduleAt": anchor}
        return common | {"name": "reminder", "scheduleAt": rfc3339(self.due(interval - self.intervals))}

    def sample(self, count: int) -> Iterator[int]:
        """`count` of the jobs' numbers, spread over kinds, schedules and tenants."""
        step = self.jobs // count
        return (index * step + index // 3 % step for index in range(count))


def _instants(anchor: int, period: int, after: int, until: int) -> int:
    return (until - anchor) // period - (after - anchor) // period


def seconds(interval: int) -> int:
    return SHORTEST + interval * SCATTER % PERIODS


def period(interval: int) -> str:
    return format_duration(timedelta(seconds=seconds(interval)))


def _spread(place: int, rate: int) -> timedelta:
    return timedelta(milliseconds=place * 1_000 // rate, microseconds=1 + place % ODD)
