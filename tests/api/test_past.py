"""What was: definitions that a job has had, steps of a run, and runs found by when they came and what they say."""

from datetime import datetime

import pytest

from api.calling import Caller
from foliot.domain.ids import decode, instant_of
from foliot.domain.outcome import Ending, Outcome
from foliot.domain.states import Event, State
from foliot.wire.codec import rfc3339
from world import World

OVER = Outcome(ending=Ending.FAILED, event=Event.DIED, error="no such account")


async def test_every_definition_of_a_job_is_kept_with_its_time(guarded: Caller):
    job = await guarded.create(cronExpression="0 9 * * *", payload={"n": 1}, dependsOn=[], labels={"a": "b"})
    place = f"/v1/jobs/{job['jobId']}"
    await guarded.post(f"{place}:pause")  # no new definition
    await guarded("PATCH", place, {"payload": {"n": 2}, "maxRetries": 7})
    await guarded("PATCH", place, {"cronExpression": "0 10 * * *"})
    listed = (await guarded.get(f"{place}/versions")).json["items"]
    assert [each["version"] for each in listed] == [4, 3, 2]
    assert [each["definition"]["payload"]["n"] for each in listed] == [2, 2, 1]
    assert [each["definition"]["cronExpression"] for each in listed] == ["0 10 * * *", "0 9 * * *", "0 9 * * *"]
    assert [each["until"] for each in listed] == [None, listed[0]["since"], listed[1]["since"]]
    assert listed[2]["since"] == job["createdAt"]
    first = (await guarded.get(f"{place}/versions?limit=1")).json
    rest = (await guarded.get(f"{place}/versions?cursor={first['nextCursor']}")).json
    assert first["items"] + rest["items"] == listed


async def test_a_definition_of_before_can_be_sent_again(api: Caller):
    parent = await api.create(key="load")
    job = (await api.create(dependsOn=["load"], overlap="skip", concurrency={"limit": 2}))["jobId"]
    await api("PATCH", f"/v1/jobs/{job}", {"dependsOn": None, "name": "alone"})
    now, before = (await api.get(f"/v1/jobs/{job}/versions")).json["items"]
    assert before["definition"]["dependsOn"] == [{"job": parent["jobId"], "when": "success"}]
    assert "dependsOn" not in now["definition"]
    again = await api("PUT", "/v1/jobs/by-key/again", before["definition"])
    assert again.status == 201, again.content
    assert again.json["concurrency"] == {"limit": 2}


async def test_only_the_last_hundred_definitions_are_kept(api: Caller, world: World):
    job = (await api.create())["jobId"]
    for number in range(103):
        await world.sql("UPDATE job SET name = $1, version = version + 1", f"report {number}")
    listed = (await api.get(f"/v1/jobs/{job}/versions?limit=500")).json["items"]
    assert [each["version"] for each in listed] == [*range(104, 3, -1)]


async def test_a_run_tells_what_happened_to_it(api: Caller, world: World):
    run = await api.submit(maxRetries=1)
    hand = await world.worker()
    await hand.conclude(await hand.claim(), OVER)
    await api.post("/v1/dead-letters:replay", {"runIds": [run]})
    told = (await api.get(f"/v1/runs/{run}/transitions")).json["items"]
    assert [(each["event"], each["state"]) for each in told] == [
        ("accepted", "ready"),
        ("started", "running"),
        ("failed", "dead"),
        ("replayed", "ready"),
    ]
    assert (told[2]["errorMessage"], told[2]["attempt"]) == ("no such account", 1)
    await hand.settle(await hand.claim())
    pages, address = [], f"/v1/runs/{run}/transitions?limit=3"
    while address:
        page = (await api.get(address)).json
        pages += page["items"]
        address = page["nextCursor"] and f"/v1/runs/{run}/transitions?limit=3&cursor={page['nextCursor']}"
    assert pages[: len(told)] == told
    assert [each["event"] for each in pages[len(told) :]] == ["started", "completed"]


async def test_runs_are_found_by_when_they_came_and_by_what_they_say(api: Caller, world: World):
    old = await api.submit(handler="send_mail")
    await world.sql("SELECT pg_sleep(0.002)")
    job = await api.create(handler="other_thing")
    new = (await api.post(f"/v1/jobs/{job['jobId']}:run", {"delay": 60})).json["runId"]
    between = rfc3339(instant_of(decode("run", new)))

    async def found(query: str) -> list[str]:
        return [each["runId"] for each in (await api.get(f"/v1/{query}")).json["items"]]

    assert await found(f"runs?since={between}") == [new]
    assert await found(f"runs?until={between}") == [old]
    assert await found("runs?text=SEND_") == [old]
    assert await found("runs?text=nothing") == []
    assert await found(f"jobs/{job['jobId']}/runs?status=pending") == [new]
    assert await found(f"jobs/{job['jobId']}/runs?until={between}") == []
    hand = await world.worker("send_mail")
    await hand.conclude(await hand.claim(), OVER)
    assert await found("runs?text=no such ACCOUNT".replace(" ", "%20")) == [old]
    assert (await api.get("/v1/runs?since=yesterday")).field == "since"


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.CANCELLED])
async def test_a_run_that_ended_ends_with_its_last_step(api: Caller, world: World, state: State):
    run = await api.submit()
    hand = await world.worker()
    if state is State.CANCELLED:
        await api.post(f"/v1/runs/{run}:cancel")
    else:
        await hand.settle(await hand.claim())
    told = (await api.get(f"/v1/runs/{run}/transitions")).json["items"]
    assert told[-1]["state"] == state.word
    assert told == sorted(told, key=lambda each: datetime.fromisoformat(each["at"]))


async def test_a_purge_leaves_nothing_of_a_job_but_the_audit_trail(guarded: Caller, world: World):
    job = (await guarded.create(every=3600, key="mine"))["jobId"]
    place = f"/v1/jobs/{job}"
    await guarded("PATCH", place, {"name": "other"})
    await guarded.post(f"{place}:run")
    hand = await world.worker()
    held = await hand.claim()
    refused = await guarded("DELETE", f"{place}?purge=true")
    assert (refused.status, (await guarded.get(place)).json["status"]) == (409, "cancelled")
    assert "repeat the call" in refused.json["hint"]
    await hand.settle(held)
    assert (await guarded("DELETE", f"{place}?purge=true")).status == 200
    assert (await guarded.get(place)).status == 404
    for table in ("history", "subscription", "past_subscription", "job_version", "by_hand"):
        assert await world.count(table) == 0, table
    told = (await guarded.get(f"/v1/audit?subject={job}")).json["items"]
    assert told[0]["action"] == "deleteJob"
    assert (await guarded("PUT", "/v1/jobs/by-key/mine", {"name": "x", "handler": "noop"})).status == 201


async def test_what_others_wait_for_is_not_erased(api: Caller):
    root = (await api.create(key="root"))["jobId"]
    child = (await api.create(dependsOn=["root"]))["jobId"]
    refused = await api("DELETE", f"/v1/jobs/{root}?purge=true")
    assert refused.status == 409
    assert (await api("DELETE", f"/v1/jobs/{child}?purge=true")).status == 200
    assert (await api("DELETE", f"/v1/jobs/{root}?purge=true")).status == 200
