"""What a process tells about itself: its log lines and its metrics."""

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any, Final, TextIO

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, start_http_server

from foliot.kit.hush import HUSH

REGISTRY: Final = CollectorRegistry()
"""What a process knows of itself."""
SEEN: Final = CollectorRegistry()
"""What stands in the database: told only by who has just looked. An old number would say that all is well."""
_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

RUNS_ACCEPTED: Final = Counter("foliot_runs_accepted", "Runs acknowledged by this process", registry=REGISTRY)
RUNS_FIRED: Final = Counter("foliot_runs_fired", "Runs made by schedules in this process", registry=REGISTRY)
OCCURRENCES_SKIPPED: Final = Counter(
    "foliot_occurrences_skipped", "Occurrences recorded as skipped by this process", registry=REGISTRY
)
OCCURRENCES_MISSED: Final = Counter(
    "foliot_occurrences_missed", "Instants of schedules recorded as missed by this process", registry=REGISTRY
)
OCCURRENCES_PASSED_OVER: Final = Counter(
    "foliot_occurrences_passed_over", "Late occurrences that their jobs' catch-up did not want", registry=REGISTRY
)
RUNS_PROMOTED: Final = Counter("foliot_runs_promoted", "Runs that fell due in this process", registry=REGISTRY)
RUNS_BACKFILLED: Final = Counter("foliot_runs_backfilled", "Runs made by back-fills in this process", registry=REGISTRY)
RUNS_REAPED: Final = Counter("foliot_runs_reaped", "Runs taken back from dead workers", registry=REGISTRY)
RUNS_UNKNOWN: Final = Counter(
    "foliot_runs_unknown", "At-most-once runs that had begun when their worker was lost", registry=REGISTRY
)
LEFT_BEHIND: Final = Counter(
    "foliot_left_behind",
    "Runs and lines found by the sweeper that nobody had let in though it was their turn; above 0 is a fault",
    registry=REGISTRY,
)
RUNS_GLEANED: Final = Counter(
    "foliot_runs_gleaned", "Ready runs brought back from where no worker looked any more", registry=REGISTRY
)
ATTEMPTS: Final = Counter("foliot_attempts", "Attempts settled by this process", ["ending"], registry=REGISTRY)
TARGETS_REFUSED: Final = Counter(
    "foliot_targets_refused", "Calls not made, because handlers may not call their target", registry=REGISTRY
)
CALLS_DENIED: Final = Counter(
    "foliot_calls_denied", "Calls turned away by this process: no key, or no right", registry=REGISTRY
)
CALLS_REFUSED: Final = Counter(
    "foliot_calls_refused",
    "Calls answered with 429 or 503 by this process: over a rate limit, or too much waits",
    ["reason"],
    registry=REGISTRY,
)
BACKLOG: Final = Gauge(
    "foliot_backlog_runs", "Runs of all tenants that are due and have not ended, estimated", registry=REGISTRY
)
AUDIT_SEALED: Final = Counter(
    "foliot_audit_sealed", "Entries of the audit trail sealed by this process", registry=REGISTRY
)
LATE_RESULTS: Final = Counter(
    "foliot_late_results", "Results without effect, because they came after the lease was lost", registry=REGISTRY
)
FIRE_LATENESS: Final = Histogram(
    "foliot_fire_lateness_seconds", "From the nominal instant to its firing", buckets=_BUCKETS, registry=REGISTRY
)
LONGEST_FIRING: Final = Gauge(
    "foliot_longest_firing_seconds",
    "The longest transaction in which this process has moved schedules on or made runs; meant to stay below 0.1",
    registry=REGISTRY,
)
CLAIM_SECONDS: Final = Histogram(
    "foliot_claim_seconds",
    "Time to claim a batch, of claims that brought something; of those that wait for it one a second, without the wait",
    buckets=_BUCKETS,
    registry=REGISTRY,
)
REQUESTS: Final = Histogram(
    "foliot_http_request_seconds",
    "Time to answer an API call",
    ["operation", "status"],
    buckets=_BUCKETS,
    registry=REGISTRY,
)
READY_RUNS: Final = Gauge("foliot_ready_runs", "Runs that may run now and wait for a worker", ["queue"], registry=SEEN)
DEAD_LETTERS: Final = Gauge("foliot_dead_letters", "Runs that have used their attempts", registry=SEEN)
QUEUE_DEAD_LETTERS: Final = Gauge(
    "foliot_queue_dead_letters", "Runs that have used their attempts, by queue", ["queue"], registry=SEEN
)
LETTERS_REPLAYED: Final = Counter(
    "foliot_dead_letters_replayed", "Dead letters brought back by this process", registry=REGISTRY
)
LETTERS_DISCARDED: Final = Counter(
    "foliot_dead_letters_discarded", "Dead letters given up by this process, the too old included", registry=REGISTRY
)
WORKERS: Final = Gauge("foliot_workers", "Workers that live or are being drained", ["state"], registry=SEEN)
LANES_WITHOUT_WORKER: Final = Gauge(
    "foliot_lanes_without_worker",
    "Handlers of a queue whose runs wait while no live worker offers them",
    registry=SEEN,
)
QUEUES_PAUSED: Final = Gauge("foliot_queues_paused", "Queues that are paused", registry=SEEN)
OVERDUE_SCHEDULES: Final = Gauge(
    "foliot_overdue_schedules", "Schedules whose next fire is in the past by more than 5 seconds", registry=SEEN
)
OVERDUE_FIRINGS: Final = Gauge(
    "foliot_overdue_firings",
    "Fire times that were begun and not finished within 30 seconds, or within an hour if they are late; up to 11,000",
    registry=SEEN,
)
OVERDUE_TIMERS: Final = Gauge(
    "foliot_overdue_timers",
    "One-time jobs and delayed runs that were due more than 5 seconds ago and wait all the same; up to 10,000",
    registry=SEEN,
)
GATEWAY_WAITING: Final = Gauge(
    "foliot_gateway_waiting", "Remote workers that wait for work at this process", registry=REGISTRY
)
GATEWAY_CLAIMS: Final = Counter(
    "foliot_gateway_claims",
    "Claims that this process made for remote workers, each for all that waited",
    registry=REGISTRY,
)
SCHEDULERS: Final = Gauge("foliot_schedulers", "Schedulers that live", registry=SEEN)
SHARDS_UNHELD: Final = Gauge(
    "foliot_shards_unheld", "Shards of the schedules that no living scheduler looks after", registry=SEEN
)
CLOCK_BEHIND: Final = Gauge(
    "foliot_clock_behind_seconds",
    "How far the database's clock is behind what has been fired; 0 up to 5 seconds",
    registry=SEEN,
)
SHARDS_HELD: Final = Gauge("foliot_shards_held", "Shards that this process looks after", registry=REGISTRY)
SHARDS_TAKEN: Final = Counter("foliot_shards_taken", "Shards that came to this process", registry=REGISTRY)
OVERDUE_TAKEN: Final = Counter(
    "foliot_overdue_taken",
    "Schedules, firings and runs of others' shards that were 6 seconds late and done by this process",
    registry=REGISTRY,
)
CLOCK_JUMPS: Final = Counter(
    "foliot_clock_jumps", "Jumps of the database's clock that this process noticed", registry=REGISTRY
)

_STEERS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
"""Control characters, but for tabs and line ends."""
_FURTHER: Final = "\n    "
"""Before further lines of a text, so that none passes for an event of its own."""


def exposition(*, seen: bool) -> bytes:
    """All metrics in Prometheus' text format, with or without those of the database."""
    return generate_latest(REGISTRY) + (generate_latest(SEEN) if seen else b"")


def serve_metrics(host: str, port: int) -> None:
    """Show the metrics at http://host:port/metrics, from a thread of its own."""
    start_http_server(port, host, REGISTRY)


def start_logging(*, process: str, level: str = "info", json: bool = False, stream: TextIO | None = None) -> None:
    """One line per event: readable by people, or as JSON by machines. Standard library loggers join in."""
    output = stream or sys.stderr
    render: list[Any] = [structlog.processors.JSONRenderer()] if json else [_Readable(process)]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso" if json else "%H:%M:%S", utc=json),
            structlog.processors.format_exc_info,
            _hush,
            *render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.WriteLoggerFactory(output),
        cache_logger_on_first_use=True,
    )
    if json:
        structlog.contextvars.bind_contextvars(process=process)
    handler = logging.StreamHandler(output)
    handler.setFormatter(_Hushed(f"{process}: %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


def _hush(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """What handlers log may hold what they were entrusted with."""
    hidden: MutableMapping[str, Any] = HUSH.hidden(event)
    return hidden


class _Hushed(logging.Formatter):
    """As above, for what comes through the standard library."""

    def format(self, record: logging.LogRecord) -> str:
        return _harmless(HUSH.hide(super().format(record))).replace("\n", _FURTHER)


class _Readable:
    """`20:15:01 scheduler  took work back  runs=12`: one write per line, so processes may share a terminal."""

    def __init__(self, process: str) -> None:
        self._process = process

    def __call__(self, _: Any, __: str, event: MutableMapping[str, Any]) -> str:
        at, level = event.pop("timestamp"), event.pop("level")
        trace = event.pop("exception", "")
        text = str(event.pop("event"))
        mark = "" if level == "info" else f"{level}: "
        fields = "".join(f"  {name}={value}" for name, value in event.items())
        line = _harmless(f"{mark}{text}{fields}").replace("\n", "\\n")
        return f"{at} {self._process:<10} {line}" + (
            _FURTHER + _harmless(trace).replace("\n", _FURTHER) if trace else ""
        )


def _harmless(text: str) -> str:
    """What handlers and their targets say must not steer the terminal of who reads it, nor pass for a line of ours."""
    return _STEERS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
