"""What the measurements with schedules in place are held to, and what stood in the way where they miss it."""

import os
import statistics
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

Found = dict[str, Any]
"""What one repeat found: numbers by name, and `busy`, the processors that each process kept busy."""


class Target(NamedTuple):
    name: str
    title: str
    unit: str
    bound: float | None = None
    """At most this; none where it is only told."""


TARGETS: Final = (
    Target("startUp", "start-up to first firing", "s", 10),
    Target("memory", "scheduler's memory at most", "MB", 300),
    Target("unsettledShare", "due in the window and not settled in it", "%", 1),
    Target("p50", "start lateness p50", "ms"),
    Target("p95", "start lateness p95", "ms", 250),
    Target("p99", "start lateness p99", "ms", 1_000),
    Target("max", "start lateness at most", "ms"),
    Target("burstReady", "burst of one instant: last run ready", "ms", 2_000),
    Target("burstStarted", "burst of one instant: last run started", "ms"),
    Target("quietAlone", "another tenant's job of that instant, own schedule", "ms", 500),
    Target("quietShared", "another tenant's job of that instant, same schedule", "ms", 500),
    Target("adHoc", "ad-hoc run started, every scheduler stopped, at most", "ms", 500),
)


def summarise(repeats: Sequence[Found]) -> Found:
    """The median of each number, and for each target whether it was met."""
    names = [name for name in repeats[0] if name != "busy"]
    medians = {name: statistics.median(each[name] for each in repeats) for name in names}
    processes = repeats[0]["busy"]
    busy = {name: round(statistics.median(each["busy"][name] for each in repeats), 2) for name in processes}
    met = {each.name: medians[each.name] <= each.bound for each in TARGETS if each.bound is not None}
    return {**medians, "busy": busy, "met": met, "boundBy": None if all(met.values()) else what_bounds(busy)}


def what_bounds(busy: dict[str, float]) -> str:
    """Who used the machine while it was measured; nobody has more than one processor but the database."""
    told = ", ".join(f"{name} {share:.2f}" for name, share in busy.items())
    processors = os.cpu_count() or 1
    if busy["idle"] < 0.1 * processors:
        return f"all {processors} processors were busy ({told})"
    for name in ("scheduler", "worker"):
        if busy[name] > 0.85:
            return f"the {name}'s one processor ({told})"
    return f"no processor; it waited, for commits or for locks ({told})"
