"""What `foliot top` looks at: queues, workers, what runs, what died, taken together from the API."""

import urllib.request
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families

from foliot.kit.settings import Access
from foliot.sdk import ApiError
from foliot.sdk.client import Foliot
from foliot.wire.codec import rfc3339

_FORBIDDEN: Final = 403
_MOST: Final = 100
_PATIENCE: Final = 5.0
_GAUGES: Final = {
    "schedulers": "foliot_schedulers",
    "overdueSchedules": "foliot_overdue_schedules",
    "shardsUnheld": "foliot_shards_unheld",
    "clockBehindSeconds": "foliot_clock_behind_seconds",
    "deadLetters": "foliot_dead_letters",
}

Sight = dict[str, Any]
"""JSON: totals, and lists of queues, workers and runs. Null is what this key may not see, or nobody told."""


def look(client: Foliot, access: Access) -> Sight:
    """One look; what only operators may see is left out for others."""
    gauges, dead = _gauges(access)
    queues = _for_operators(lambda: [each.values for each in client.queues(limit=_MOST)])
    workers = _for_operators(lambda: [each.values for each in client.workers(limit=_MOST) if each.state != "dead"])
    runs = [each.values for each in client.list_runs(status="running", limit=_MOST)]
    if queues is not None:
        queues = [{**each, "deadLetters": dead.get(each["name"], 0)} for each in queues]
    return {
        "at": rfc3339(datetime.now(UTC).replace(microsecond=0)),
        "url": access.url,
        **gauges,
        **_totals(queues, workers, runs),
        "queues": queues,
        "workers": workers,
        "runs": sorted(runs, key=lambda run: run["startedAt"] or ""),
    }


def _totals(
    queues: Sequence[Mapping[str, Any]] | None,
    workers: Sequence[Mapping[str, Any]] | None,
    runs: Sequence[Mapping[str, Any]],
) -> Sight:
    ages = [each["oldestAgeSeconds"] or 0 for each in queues or () if each["ready"]]
    sums = {
        total: None if queues is None else sum(each[name] for each in queues)
        for total, name in (("ready", "ready"), ("running", "running"), ("scheduled", "scheduled"), ("rate", "rate"))
    }
    if sums["running"] is None:
        sums["running"] = len(runs)
    return {
        **sums,
        "oldestAgeSeconds": max(ages, default=None),
        "liveWorkers": None if workers is None else sum(each["state"] == "live" for each in workers),
        "drainingWorkers": None if workers is None else sum(each["state"] == "draining" for each in workers),
    }


def _for_operators(ask: Any) -> list[dict[str, Any]] | None:
    try:
        found: list[dict[str, Any]] = ask()
    except ApiError as error:
        if error.status == _FORBIDDEN:
            return None
        raise
    return found


def _gauges(access: Access) -> tuple[Sight, dict[str, float]]:
    """What the API shows without a key, and dead letters by queue; a proxy may keep it from us."""
    try:
        with urllib.request.urlopen(f"{access.url}/metrics", timeout=_PATIENCE) as answer:  # noqa: S310 - it was checked
            families = {each.name: each for each in text_string_to_metric_families(answer.read().decode())}
    except (OSError, ValueError):
        return dict.fromkeys(_GAUGES), {}
    seen = {name: families[metric].samples[0].value if metric in families else None for name, metric in _GAUGES.items()}
    by_queue = families["foliot_queue_dead_letters"].samples if "foliot_queue_dead_letters" in families else []
    return seen, {sample.labels["queue"]: int(sample.value) for sample in by_queue}
