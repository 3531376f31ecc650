"""What the workers wrote down about the runs they started."""

import json
import statistics
from bisect import bisect_left
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Starts:
    """The starts that one process counted: how many until when."""

    first: float
    last: float
    ticks: list[tuple[float, int]] = field(default_factory=list)
    waits: list[tuple[float, float]] = field(default_factory=list)

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

    processes: tuple[Starts, ...] = ()

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


class Reader:
    """Reads on where it stopped: who looks five times a second must not take the processor from what it measures."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offsets: dict[Path, int] = {}
        self._processes: dict[Path, Starts] = {}

    def read(self) -> Tallies:
        for path in self._folder.glob("*.jsonl"):
            self._read_on(path)
        return Tallies(tuple(self._processes.values()))

    def _read_on(self, path: Path) -> None:
        with path.open("rb") as file:
            file.seek(self._offsets.get(path, 0))
            # What follows the last line's end is still being written.
            whole, end, _ = file.read().rpartition(b"\n")
        self._offsets[path] = self._offsets.get(path, 0) + len(whole) + len(end)
        for line in map(json.loads, filter(None, whole.split(b"\n"))):
            starts = self._processes.setdefault(path, Starts(first=line["first"], last=line["last"]))
            starts.last = line["last"]
            starts.ticks.append((line["at"], line["count"]))
            starts.waits.extend((sent, began) for sent, began in line["waits"])


def percentiles(values: list[float], *wanted: int) -> dict[str, float]:
    """The wanted percentiles of `values`, by name, in the unit of `values`."""
    if len(values) < 2:
        return {f"p{percent}": value for percent in wanted for value in values}
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return {f"p{percent}": cuts[percent - 1] for percent in wanted}
