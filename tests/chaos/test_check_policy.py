"""How a job is to be run, as its owner wrote it and as the API shows it: the same, or not, whatever the spelling."""

from typing import Any

import pytest

from chaos.oracle import body_of
from chaos.policy import policy_of
from chaos.records import Operation, Outcome
from chaos.timeline import Gate, Standing, Timeline, agrees

SHOWN: dict[str, Any] = {
    "name": "report",
    "key": None,
    "status": "pending",
    "scheduleType": "on_demand",
    "handler": {"type": "function", "name": "quick"},
    "payload": None,
    "priority": "normal",
    "queue": "default",
    "labels": {},
    "maxRetries": 3,
    "backoff": {"initial": "PT1S", "factor": 2.0, "max": "PT10M"},
    "timeoutSeconds": 300.0,
    "delivery": "atLeastOnce",
    "onDisconnect": "finish",
    "overlap": "skip",
}
"""A job of which its owner wrote nothing but a name and a handler."""
COMMAND = {"type": "command", "argv": ["/bin/true"]}
ONCE = {"delivery": "atMostOnce", "maxRetries": 0, "onDisconnect": "stop"}


def standing(gate: Gate = Gate.OPEN, **fields: Any) -> Standing:
    return Standing(body_of({"name": "report", "handler": "quick", **fields}), gate)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ({}, {}),
        ({"priority": 0}, {"priority": "high"}),
        ({"priority": "Bulk"}, {"priority": "bulk"}),
        ({"timeoutSeconds": 20}, {"timeoutSeconds": 20.0}),
        ({"backoff": {"initial": 90}}, {"backoff": {"initial": "PT1M30S", "factor": 2.0, "max": "PT10M"}}),
        ({"delivery": "atMostOnce"}, ONCE),
        ({"delivery": "atMostOnce", "maxRetries": 2}, {**ONCE, "maxRetries": 2}),
        ({"concurrency": {"limit": 1}}, {"concurrency": {"limit": 1}, "onDisconnect": "stop"}),
        ({"requires": ["tpu", "gpu", "gpu"]}, {"requires": ["gpu", "tpu"]}),
        ({"requires": [], "labels": {}, "retry": []}, {}),
        ({"retry": [{"on": ["timeout"], "backoff": {"initial": 1}}]},
         {"retry": [{"on": ["timeout"], "backoff": {"initial": "PT1S", "factor": 2.0, "max": "PT10M"}}]}),
        ({"handler": "https://a.test/do"},
         {"handler": {"type": "http", "url": "https://a.test/do", "method": "POST", "headers": {}}}),
        ({"handler": COMMAND}, {"handler": COMMAND}),
        ({"calendar": {"name": "thirds", "rule": "skip"}}, {"calendar": "thirds"}),
        ({"dependsOn": ["top", {"job": "left", "when": "done"}]},
         {"dependsOn": [{"job": "job_1", "when": "success"}, {"job": "job_2", "when": "done"}]}),
    ],
)  # fmt: skip
def test_another_spelling_is_the_same(written: dict[str, Any], shown: dict[str, Any]):
    assert agrees({**SHOWN, **shown}, standing(**written))


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ({}, {"name": "another"}),
        ({}, {"queue": "reports"}),
        ({"key": "report"}, {}),
        ({"labels": {"team": "blue"}}, {}),
        ({"requires": ["gpu"]}, {}),
        ({"retry": [{"on": ["timeout"], "never": True}]}, {}),
        ({"concurrency": {"limit": 2, "key": "payload.account"}}, {"concurrency": {"limit": 2}}),
        ({"dependsOn": [{"job": "left", "when": "done"}]}, {"dependsOn": [{"job": "job_2", "when": "success"}]}),
        ({"calendar": "thirds"}, {"calendar": "halves"}),
        ({"onDisconnect": "stop"}, {}),
        ({"handler": "slow"}, {}),
    ],
)
def test_what_its_owner_wrote_is_missed_where_it_is_not_shown(written: dict[str, Any], shown: dict[str, Any]):
    assert not agrees({**SHOWN, **shown}, standing(**written))


def test_a_cancelled_job_may_have_lost_its_key_and_its_place_in_a_graph():
    gone = {**SHOWN, "status": "cancelled"}
    assert agrees(gone, standing(Gate.CANCELLED, key="report", dependsOn=["top"]))
    assert not agrees(gone, standing(Gate.CANCELLED, queue="reports"))


def test_of_a_view_that_shows_less_only_that_is_compared():
    assert agrees({"status": "pending", "payload": None}, standing(maxRetries=7, queue="reports"))


def test_what_its_owner_wrote_outlives_edits_of_what_it_would_follow_otherwise():
    one, two = (("changeJob", {"concurrency": {"limit": limit}}) for limit in (1, 2))
    for written, end in (({}, "finish"), ({"onDisconnect": "stop"}, "stop"), ({"onDisconnect": "finish"}, "finish")):
        after = _after(("createJob", {"concurrency": {"limit": 2}, **written}), one, two)
        assert policy_of(after.body)["onDisconnect"] == end


def _after(*calls: tuple[str, dict[str, Any]]) -> Standing:
    """How a job stands after these."""
    (found,) = Timeline(
        Operation(
            number=at, client=0, tenant="acme", kind=kind, body=body, invoked=at, completed=at + 0.5, outcome=Outcome.OK
        )
        for at, (kind, body) in enumerate(calls, 1)
    ).last
    assert found is not None
    return found
