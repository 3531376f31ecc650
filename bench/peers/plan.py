"""How much is measured, and for how long at most."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

SCHEDULES: Final = (1_000, 10_000, 100_000)


@dataclass(frozen=True)
class Plan:
    """The sizes of one run of the bench; `make bench-peers SECONDS=2 RUNS=2000` makes it a smoke test."""

    seconds: float = 10.0
    """Of sustained load; the other windows follow from it."""
    runs: int = 100_000
    """Most runs that a drain begins with; slow peers get fewer."""
    repeats: int = 3
    minutes: float = 60.0
    """No repeat begins that would end later than this."""
    only: tuple[str, ...] = ()
    fresh: bool = False

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> Self:
        def number(name: str, otherwise: float) -> float:
            return float(environment.get(name) or otherwise)

        return cls(
            seconds=number("SECONDS", cls.seconds),
            runs=int(number("RUNS", cls.runs)),
            repeats=int(number("REPEATS", cls.repeats)),
            minutes=number("MINUTES", cls.minutes),
            only=tuple(filter(None, (environment.get("ONLY") or "").replace(",", " ").split())),
            fresh=(environment.get("FRESH") or "0") not in {"0", "no"},
        )

    @property
    def try_seconds(self) -> float:
        """Of sustained load, each time that a candidate is tried."""
        return min(5.0, self.seconds / 2)

    @property
    def single_seconds(self) -> float:
        return min(3.0, self.seconds / 3)

    @property
    def latency_seconds(self) -> float:
        """Long enough that the 99th percentile is that of thirty runs and not of ten."""
        return min(15.0, 1.5 * self.seconds)

    @property
    def drain_seconds(self) -> float:
        """After so long a drain ends, and what was done until then counts."""
        return max(20.0, self.seconds * 3)

    @property
    def schedules(self) -> tuple[int, ...]:
        """How many are due at once, in the cells of a repeat."""
        return tuple(count for count in SCHEDULES if count <= max(self.runs, 1_000))
