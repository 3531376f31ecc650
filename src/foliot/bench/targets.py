"""What the measurements are held to, and what stood in the way where they miss it."""

import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

Found = dict[str, Any]
"""What one repeat found: numbers by name, and `busy`, the processors that each process kept busy."""
Row = tuple[str, str, str, str, str]
"""What was measured, the median, what it is held to, whether it was met, and the repeats."""
A_BYTE_OF_EACH: Final = 36
"""MB an hour at 10,000 runs a second, if a single byte were kept of every run: nothing kept of each is smaller."""
SHARED: Final = ("backends", "helpers", "others", "idle")
"""Names in `busy` that are not those of one process with one processor."""


class Target(NamedTuple):
    name: str
    title: str
    unit: str
    bound: float | None = None
    """At most this, or at least; none where it is only told."""
    at_least: bool = False

    def is_met(self, value: float) -> bool:
        if self.bound is None:
            return True
        return value >= self.bound if self.at_least else value <= self.bound

    def shown(self, value: float) -> str:
        """The value with its unit; a rate has none between."""
        return f"{value:,g}{self.unit if self.unit.startswith('/') else f' {self.unit}'}".rstrip()

    @property
    def wanted(self) -> str:
        if self.bound is None:
            return ""
        return f"at least {self.shown(self.bound)}" if self.at_least else self.shown(self.bound)

    def row(self, value: float, repeats: Sequence[float]) -> Row:
        verdict = "" if self.bound is None else "met" if self.is_met(value) else "MISSED"
        if verdict == "met" and not all(map(self.is_met, repeats)):
            verdict = "met, not always"
        return self.title, self.shown(value), self.wanted, verdict, ", ".join(f"{each:,g}" for each in repeats)


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
    Target("quietShared", "another tenant's job of that instant, same recurrence", "ms", 500),
    Target("chunk", "longest transaction that moved schedules on or made runs", "ms", 100),
    Target("freshAlone", "fresh fires without timers, start lateness p95", "ms"),
    Target("freshBeside", "the same beside a backlog of late instants", "ms", 250),
    Target("madeUpFor", "late instants made up for meanwhile, runs settled", "", 1, at_least=True),
    Target("adHoc", "ad-hoc run started, every scheduler stopped, at most", "ms", 500),
)
RATES: Final = (
    Target("sustained", "sustained end to end (aim 60,000)", "/s", 40_000, at_least=True),
    Target("ratio", "sustained, share of the raw floor", "", 0.7, at_least=True),
    Target("wal", "WAL per run, sustained (aim 1,024)", "B", 1_331),
    Target("p50", "start latency at 200/s p50", "ms", 1.5),
    Target("p95", "start latency at 200/s p95", "ms", 2.5),
    Target("p99", "start latency at 200/s p99", "ms", 5),
)
"""Of the sections that stand beside the raw floor."""
DISPATCH: Final[Mapping[str, tuple[Target, ...]]] = MappingProxyType(
    {
        "http": (
            Target("rate", "HTTP targets called", "/s"),
            Target("bare", "bare aiohttp, same target, same concurrency", "/s"),
            Target("ratio", "share of bare aiohttp", "", 0.75, at_least=True),
        ),
        "submissions": (
            Target("rate", "runs acknowledged, one to a call", "/s", 8_000, at_least=True),
            Target("bare", "bare Starlette and msgspec, nothing kept", "/s"),
            Target("ratio", "share of bare Starlette and msgspec", "", 0.5, at_least=True),
            Target("wrk", "processors kept busy by wrk meanwhile", ""),
            Target("p50", "time to an answer at that rate p50", "ms"),
            Target("batch", "runs acknowledged, 1,000 to a call", "/s", 40_000, at_least=True),
            Target("paced", "calls at a steady pace", "/s", 1_900, at_least=True),
            Target("pacedP50", "time to an answer at that pace p50", "ms"),
            Target("pacedP99", "time to an answer at that pace p99", "ms", 50),
        ),
        "gateway": (
            Target("rate", "sustained through the gateway", "/s", 15_000, at_least=True),
            Target("floor", "raw floor, SQL, in the same run, not tuned", "/s"),
            Target("connections", "connections to PostgreSQL", "", 100),
        ),
        "fleet": (
            Target("few", "claimed and settled by 8 workers", "/s"),
            Target("many", "claimed and settled by 500 workers", "/s"),
            Target("ratio", "500 workers, share of 8", "", 0.8, at_least=True),
            Target("floor", "raw floor, SQL, in the same run, not tuned", "/s"),
            Target("connections", "connections to PostgreSQL, two APIs and a scheduler", "", 100),
        ),
        "held": (
            Target("quiet", "settled before, at 10,000/s offered", "/s", 9_900, at_least=True),
            Target("rate", "settled while a transaction is held", "/s"),
            Target("loss", "lost meanwhile", "%", 20),
            Target("lossAtEnd", "lost in its last tenth", "%", 20),
            Target("worst", "settled in the worst second", "/s"),
            Target("slowSeconds", "seconds that settled less than 80 % of the pace before", "%", 5),
            Target("floor", "raw floor before, not tuned, nothing held", "/s"),
            Target("claimQuiet", "claim of 100 runs before, median", "ms"),
            Target("claimQuiet95", "the same, p95", "ms"),
            Target("claimFirst", "median claim in the first tenth", "ms"),
            Target("claimLast", "median claim in the last tenth", "ms"),
            Target("claimLast95", "the same, p95", "ms"),
            Target("claimGrowth", "median claim, last tenth by first", "", 1.5),
            Target("claimByQuiet", "median claim, last tenth by before", "", 2),
        ),
        "cold": (
            Target("fresh", "first 10 s after a fresh migrate, by the seconds after", "%", 80, at_least=True),
            Target("freshWorst", "its worst second", "%", 50, at_least=True),
            Target("empty", "first 10 s after an empty, idle time, by the seconds after", "%", 80, at_least=True),
            Target("emptyWorst", "its worst second", "%", 50, at_least=True),
            Target("steady", "the seconds after", "/s"),
            Target("floor", "raw floor in the same run, not tuned", "/s"),
        ),
        "inflight": (
            Target("missing", "of 100,000 runs not in flight at once", "", 0),
            Target("reached", "until all were in flight", "s"),
            Target("leaseAge", "age of a lease at most (it ends at 15)", "s", 10),
            Target("memory", "memory of one of the two workers at most", "MB"),
            Target("resting", "processors kept busy by a worker while they wait", ""),
            Target("settled", "until all had ended and were settled", "s"),
            Target("lost", "leases lost, runs run twice", "", 0),
        ),
        "fairness": (
            Target("quiet", "a run a second, p99 wait, no backlog", "ms"),
            Target("beside", "the same beside 1,000,000 queued runs of another tenant", "ms"),
            Target("times", "times its quiet value", "", 2),
            Target("nextClaim", "one high run behind 100,000 normal ones, in the next claim", "%", 100, at_least=True),
            Target("offShare", "priorities' shares, furthest from their weights", "%", 10),
        ),
        "limits": (
            Target("free", "the same job without a limit", "/s"),
            Target("job", "under a limit of 100 for the job", "/s", 10_000, at_least=True),
            Target("keys", "under a limit of 1 for each of 100,000 keys", "/s", 10_000, at_least=True),
            Target("tenant", "under a limit of 200 for the tenant", "/s", 10_000, at_least=True),
        ),
        "graphs": (
            Target("rate", "runs of graphs of 10 jobs, fired and settled", "/s", 10_000, at_least=True),
            Target("large", "one graph of 1,000 jobs and 10,000 edges, start to end", "s", 2),
            Target("making", "the same graph, defined in one call", "s"),
        ),
        "encryption": (
            Target("sealed", "a run of 100 bytes sealed", "µs"),
            Target("opened", "and opened", "µs"),
            Target("sealedLarge", "a run of 16 KiB sealed", "µs"),
            Target("openedLarge", "and opened", "µs"),
            Target("beside", "a run of a tenant without encryption, to see that there is none", "µs"),
        ),
        "soak": (
            Target("rate", "settled, at 10,000/s offered", "/s", 9_900, at_least=True),
            Target("tables", "growth of tables besides history and keys", "%", 10),
            Target("indexes", "growth of their indexes", "%", 10),
            Target("worker", "growth of the worker's memory", "%", 10),
            Target("scheduler", "growth of the scheduler's memory", "%", 10),
            Target("api", "growth of the API's memory", "%", 10),
            Target("producer", "growth of the producer's memory", "%", 10),
            Target("backends", "growth of PostgreSQL's own memory", "%", 20),
            Target("tablesSlope", "slope of the tables", "MB/h", A_BYTE_OF_EACH),
            Target("indexesSlope", "slope of their indexes", "MB/h", A_BYTE_OF_EACH),
            Target("workerSlope", "slope of the worker's memory", "MB/h", A_BYTE_OF_EACH),
            Target("schedulerSlope", "slope of the scheduler's memory", "MB/h", A_BYTE_OF_EACH),
            Target("apiSlope", "slope of the API's memory", "MB/h", A_BYTE_OF_EACH),
            Target("producerSlope", "slope of the producer's memory", "MB/h", A_BYTE_OF_EACH),
            Target("backendsSlope", "slope of PostgreSQL's own memory", "MB/h", A_BYTE_OF_EACH),
        ),
    }
)


def schedule_targets(per_second: int) -> tuple[Target, ...]:
    """Those of the schedules, with so many that were to fall due a second: a load may be smaller than ten million."""
    return (
        Target("dueRate", "scheduled runs that fell due", "/s", per_second, at_least=True),
        Target("rate", "scheduled runs settled", "/s", 0.99 * per_second, at_least=True),
        *TARGETS,
    )


def summarise(repeats: Sequence[Found], targets: Sequence[Target] = TARGETS) -> Found:
    """The median of each number, for each target whether it was met, and what bounds those that a repeat missed."""
    names = [name for name, value in repeats[0].items() if isinstance(value, int | float)]
    medians = {name: statistics.median(each[name] for each in repeats) for name in names}
    met = {each.name: each.is_met(medians[each.name]) for each in targets if each.bound is not None}
    short = [repeat for repeat in repeats if not all(each.is_met(repeat[each.name]) for each in targets)]
    bounds = what_bounds(_usually_busy(short)) if short else None
    if bounds and len(short) < len(repeats):
        bounds += f", in {len(short)} of {len(repeats)} repeats"
    return {**medians, "busy": _usually_busy(repeats), "met": met, "boundBy": bounds}


def _usually_busy(repeats: Sequence[Found]) -> dict[str, float]:
    processes = repeats[0]["busy"]
    return {name: round(statistics.median(each["busy"][name] for each in repeats), 2) for name in processes}


def rows(found: Found, targets: Sequence[Target]) -> Iterator[Row]:
    """A summary, target by target."""
    for target in targets:
        yield target.row(found[target.name], [each[target.name] for each in found["repeats"]])


def what_bounds(busy: dict[str, float]) -> str:
    """Who used the machine while it was measured; nobody has more than one processor but the database."""
    told = ", ".join(f"{name} {share:.2f}" for name, share in busy.items())
    processors = os.cpu_count() or 1
    if busy["idle"] < 0.1 * processors:
        return f"all {processors} processors were busy ({told})"
    for name, share in busy.items():
        if name not in SHARED and share > 0.85:
            return f"the {name}'s one processor ({told})"
    return f"no processor; it waited, for commits or for locks ({told})"
