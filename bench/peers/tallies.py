"""What the workers wrote down about the runs they started."""

import json
import statistics
from bisect import bisect_left
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Starts:
    """The starts that one process counted: how many until when."""

    first: float
    last: float
    ticks: tuple[tuple[float, int], ...]
    waits: tuple[tuple[float, float], ...] = ()

    def until(self, at: float) -> float:
        """How many had started at this instant, between two ticks in proportion."""
        place = bisect_left(self.ticks, (at, 0))
        if place == len(self.ticks):
            return self.ticks[-1][1]
        after, count = self.ticks[place]
        before, less = self.ticks[place - 1] if place else (self.first, 0)
        if after <= before or at <= before:
            return less if at <= before else count
        return less + (count - less) * (at - before) / (after - before)


@dataclass(frozen=True)
class Tallies:
    """All processes of a peer's workers together."""

    processes: tuple[Starts, ...] = field(default=())

    @classmethod
    def read(cls, folder: Path) -> "Tallies":
        return cls(tuple(starts for path in sorted(folder.glob("*.jsonl")) if (starts := _read(path))))

    @property
    def count(self) -> int:
        return sum(each.ticks[-1][1] for each in self.processes)

    @property
    def span(self) -> float:
        """Seconds from the first start of any process to the last."""
        if not self.processes:
            return 0.0
        return max(each.last for each in self.processes) - min(each.first for each in self.processes)

    @property
    def waits(self) -> list[float]:
        return [began - sent for each in self.processes for sent, began in each.waits]

    def rate(self, began: float, ended: float) -> float:
        done = sum(each.until(ended) - each.until(began) for each in self.processes)
        return done / (ended - began) if ended > began else 0.0


def _read(path: Path) -> Starts | None:
    # What follows the last line's end is still being written.
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    if not lines:
        return None
    return Starts(
        first=lines[0]["first"],
        last=lines[-1]["last"],
        ticks=tuple((line["at"], line["count"]) for line in lines),
        waits=tuple((sent, began) for line in lines for sent, began in line["waits"]),
    )


def percentiles(values: list[float], *wanted: int) -> dict[str, float]:
    """The wanted percentiles of `values`, by name, in the unit of `values`."""
    if len(values) < 2:
        return {f"p{percent}": value for percent in wanted for value in values}
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return {f"p{percent}": cuts[percent - 1] for percent in wanted}
