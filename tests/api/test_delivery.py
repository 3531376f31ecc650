"""How often a run may be run, and what a worker does with it that is cut off: said, shown, and changed."""

from typing import Any

import pytest

from api.calling import PLAIN, Caller
from foliot.domain.ids import decode
from foliot.store import fleet
from world import World

ONCE = {"delivery": "atMostOnce"}


def policy(job: dict[str, Any]) -> tuple[str, str, int]:
    return job["delivery"], job["onDisconnect"], job["maxRetries"]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, ("atLeastOnce", "finish", 3)),
        ({"onDisconnect": "stop"}, ("atLeastOnce", "stop", 3)),
        ({"concurrency": {"limit": 1}}, ("atLeastOnce", "stop", 3)),
        ({"concurrency": {"limit": 1}, "onDisconnect": "finish"}, ("atLeastOnce", "finish", 3)),
        ({"concurrency": {"limit": 2}}, ("atLeastOnce", "finish", 3)),
        (ONCE, ("atMostOnce", "stop", 0)),
        ({**ONCE, "maxRetries": 0, "onDisconnect": "finish"}, ("atMostOnce", "finish", 0)),
    ],
)
async def test_what_is_not_said_follows_the_delivery(api: Caller, given: dict[str, Any], shown: tuple[str, str, int]):
    job = await api.create(**given)
    assert policy(job) == shown
    assert policy((await api.get(f"/v1/jobs/{job['jobId']}")).json) == shown
    run = await api.submit(**given)
    assert (await api.get(f"/v1/runs/{run}")).json["delivery"] == shown[0]


async def test_retries_of_what_is_delivered_at_most_once_are_refused(api: Caller):
    for address, body in (("/v1/jobs", PLAIN), ("/v1/runs", {"handler": "noop"})):
        assert (await api.post(address, {**body, **ONCE, "maxRetries": 1})).field == "maxRetries"
    for name, word in (("delivery", "exactlyOnce"), ("onDisconnect", "panic")):
        assert (await api.post("/v1/jobs", {**PLAIN, name: word})).field == name


async def test_a_change_of_the_delivery_takes_along_what_was_not_said(api: Caller):
    job = (await api.create())["jobId"]

    async def change(**fields: Any) -> Any:
        return await api("PATCH", f"/v1/jobs/{job}", fields)

    assert policy((await change(**ONCE)).json) == ("atMostOnce", "stop", 0)
    assert policy((await change(delivery="atLeastOnce")).json) == ("atLeastOnce", "finish", 0)
    assert policy((await change(maxRetries=5, onDisconnect="stop")).json) == ("atLeastOnce", "stop", 5)
    assert (await change(**ONCE)).field == "maxRetries"  # somebody asked for them
    assert policy((await change(**ONCE, maxRetries=None)).json) == ("atMostOnce", "stop", 0)


@pytest.mark.parametrize(("said", "ends"), [({}, "stop finish"), ({"onDisconnect": "stop"}, "stop stop")])
@pytest.mark.parametrize(
    ("there", "back"), [({"concurrency": {"limit": 1}}, {"concurrency": None}), (ONCE, {"delivery": "atLeastOnce"})]
)
async def test_what_its_owner_said_of_the_end_outlives_a_change_that_implies_it(
    api: Caller, said: dict[str, Any], ends: str, there: dict[str, Any], back: dict[str, Any]
):
    job = (await api.create(**said))["jobId"]
    shown = [(await api("PATCH", f"/v1/jobs/{job}", fields)).json["onDisconnect"] for fields in (there, back)]
    assert " ".join(shown) == ends


async def test_an_end_that_was_said_and_is_taken_back_follows_the_delivery_again(api: Caller):
    job = (await api.create(onDisconnect="finish"))["jobId"]
    fields = (ONCE, {"onDisconnect": None})
    shown = [(await api("PATCH", f"/v1/jobs/{job}", each)).json["onDisconnect"] for each in fields]
    assert shown == ["finish", "stop"]


async def test_an_unknown_end_is_told_and_alarms_nobody_twice(api: Caller, world: World):
    job = await api.create(**ONCE, scheduleAt="2026-01-01T00:00:00Z")
    await world.promoter.run_once()
    hand = await world.worker()
    taken = await hand.claim()
    await hand.note_started(taken)
    await hand.die()
    await fleet.reap(hand.line)
    (run,) = (await api.get("/v1/runs?state=unknown")).json["items"]
    assert (run["status"], run["state"], run["attempts"]) == ("failed", "unknown", 1)
    assert "not run again" in run["errorMessage"]
    assert decode("run", run["runId"]) == taken[0].id
    assert (await api.get(f"/v1/jobs/{job['jobId']}")).json["status"] == "failed"
    (attempt,) = (await api.get(f"/v1/runs/{run['runId']}/attempts")).json["items"]
    assert (attempt["status"], attempt["lateResult"]) == ("unknown", None)
