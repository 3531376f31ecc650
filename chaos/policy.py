"""How a job is to be run, in one spelling, so that what its owner wrote can be compared with what the API shows.

A second, independent reading of the fields that have nothing to do with time; the oracle reads the others.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import msgspec

from chaos.oracle import Body, duration

LEFT_OUT: Final = frozenset({"requires", "retry", "concurrency", "calendar", "dependsOn"})
"""Fields that the API does not show where there is nothing to show."""
LETS_GO: Final = frozenset({"key", "dependsOn"})
"""What is no longer a job's own when it has been cancelled."""
_PRIORITIES: Final = {"0": "high", "1": "normal", "2": "low"}
_BACKOFF: Final = {"initial": "PT1S", "factor": 2.0, "max": "PT10M"}


def policy_of(body: Body) -> dict[str, Any]:
    """All of it, with what is usual where its owner wrote nothing."""
    return _read(tuple(each for each in body if each[0] in FIELDS))


@cache  # thousands of versions of a job differ in their payload alone
def _read(body: Body) -> dict[str, Any]:
    fields = {name: msgspec.json.decode(value) for name, value in body}
    usual = _usual(fields)
    return {name: spelled(fields.get(name, usual.get(name))) for name, spelled in _SPELLED.items()}


def _usual(fields: dict[str, Any]) -> dict[str, Any]:
    once = fields.get("delivery") == "atMostOnce"
    one_by_one = (fields.get("concurrency") or {}).get("limit") == 1
    return {
        "delivery": "atLeastOnce",
        "maxRetries": 0 if once else 3,
        "onDisconnect": "stop" if once or one_by_one else "finish",
    }


def _handler(given: Any) -> dict[str, Any] | None:
    """What is empty counts as left out."""
    if given is None:
        return None
    if isinstance(given, str):
        given = {"type": "http", "url": given} if "://" in given else {"type": "function", "name": given}
    usual = {"method": "POST"} if given["type"] == "http" else {}
    return usual | {name: value for name, value in given.items() if value not in (None, "", [], {})}


def _priority(given: Any) -> str:
    word = "normal" if given is None else str(given).lower()
    return _PRIORITIES.get(word, word)


def _backoff(given: Any) -> dict[str, float]:
    whole = _BACKOFF | (given or {})
    return {"initial": duration(whole["initial"]), "factor": whole["factor"], "max": duration(whole["max"])}


def _rule(given: dict[str, Any]) -> dict[str, Any]:
    written = given.get("backoff")
    return {"never": False, "maxRetries": None} | given | {"backoff": None if written is None else _backoff(written)}


def _needs(given: Any) -> list[str]:
    """Upon what: the API names jobs by their ids, which their owner did not know."""
    return sorted("success" if isinstance(each, str) else each.get("when", "success") for each in given or ())


def _same(given: Any) -> Any:
    return given


_SPELLED: Final[dict[str, Callable[[Any], Any]]] = {
    "name": _same,
    "key": _same,
    "handler": _handler,
    "priority": _priority,
    "queue": lambda given: given or "default",
    "requires": lambda given: sorted({*(given or ())}),
    "labels": lambda given: given or {},
    "maxRetries": _same,
    "backoff": _backoff,
    "retry": lambda given: [_rule(each) for each in given or ()],
    "timeoutSeconds": lambda given: 300.0 if given is None else float(given),
    "delivery": _same,
    "onDisconnect": _same,
    "concurrency": lambda given: {"key": None} | (given or {}),
    "calendar": lambda given: given["name"] if isinstance(given, dict) else given,
    "dependsOn": _needs,
}
FIELDS: Final = frozenset(_SPELLED)
