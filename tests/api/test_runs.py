"""Runs through the API: handed in, by hand for a job, looked at with their attempts."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from api.calling import PLAIN, Answer, Caller
from foliot.domain.ids import decode, encode
from foliot.domain.outcome import Ending, Outcome
from world import World


async def test_a_run_goes_from_pending_to_completed(api: Caller, world: World):
    hand = await world.worker()
    run = await api.submit(payload={"n": 1})
    seen = (await api.get(f"/v1/runs/{run}")).json
    assert (seen["status"], seen["state"], seen["attempts"], seen["payload"]) == ("pending", "ready", 0, {"n": 1})
    claimed = await hand.claim()
    seen = (await api.get(f"/v1/runs/{run}")).json
    assert (seen["status"], seen["state"]) == ("running", "running")
    assert seen["workerId"] == encode("wrk", hand.id)
    await hand.settle(claimed)
    seen = (await api.get(f"/v1/runs/{run}")).json
    assert (seen["status"], seen["state"], seen["attempts"]) == ("completed", "succeeded", 1)
    assert seen["finishedAt"].endswith("Z")


async def test_every_attempt_is_listed_newest_first(api: Caller, world: World):
    job = await api.create()
    run = (await api.post(f"/v1/jobs/{job['jobId']}:run")).json["runId"]
    hand = await world.worker()
    await hand.conclude(await hand.claim(), Outcome.again(Ending.FAILED, "it broke", timedelta(0)))
    await world.promoter.run_once()
    await hand.settle(await hand.claim())
    for address in (f"/v1/runs/{run}/attempts", f"/v1/jobs/{job['jobId']}/executions"):
        items = (await api.get(address)).json["items"]
        assert [(each["attempt"], each["status"]) for each in items] == [(2, "completed"), (1, "failed")]
        last, first = items
        assert (first["errorMessage"], last["errorMessage"]) == ("it broke", None)
        assert first["executionId"] != last["executionId"]
        assert first["runId"] == last["runId"] == run
        assert first["jobId"] == job["jobId"]
        assert first["workerId"] == encode("wrk", hand.id)
        assert first["fence"] < last["fence"]
        page = (await api.get(f"{address}?limit=1")).json
        assert page["items"] == [last]
        assert (await api.get(f"{address}?limit=1&cursor={page['nextCursor']}")).json == {
            "items": [first],
            "nextCursor": None,
        }


async def test_a_run_by_hand_takes_what_it_is_given_and_the_rest_from_its_job(api: Caller, world: World):
    job = await api.create(payload={"own": 1}, priority="low")
    address = f"/v1/jobs/{job['jobId']}:run"
    for body, payload, priority in (
        (None, {"own": 1}, "low"),
        ({}, {"own": 1}, "low"),
        ({"payload": {"n": 2}, "priority": 0}, {"n": 2}, "high"),
        ({"payload": None}, None, "low"),
    ):
        answer = await api.post(address, body)
        assert answer.status == 201
        seen = (await api.get(f"/v1/runs/{answer.json['runId']}")).json
        assert (seen["payload"], seen["priority"], seen["jobId"]) == (payload, priority, job["jobId"])


async def test_a_run_waits_for_its_delay_or_its_instant(api: Caller):
    now = datetime.now(UTC)
    later = await api.submit(delay="PT1H")
    at = await api.submit(runAt="2030-01-31T10:00:00+01:00")
    soon = await api.submit(delay=2)
    seen = (await api.get(f"/v1/runs/{later}")).json
    assert seen["state"] == "scheduled"
    assert abs(datetime.fromisoformat(seen["dueAt"]) - now - timedelta(hours=1)) < timedelta(seconds=30)
    assert (await api.get(f"/v1/runs/{at}")).json["scheduledAt"] == "2030-01-31T09:00:00Z"
    assert (await api.get(f"/v1/runs/{soon}")).json["state"] == "scheduled"


async def test_a_paused_job_is_not_run_by_hand(api: Caller):
    job = await api.create()
    await api.post(f"/v1/jobs/{job['jobId']}:pause")
    answer = await api.post(f"/v1/jobs/{job['jobId']}:run")
    assert answer.status == 409
    assert "resume" in answer.json["hint"]


async def test_a_batch_is_accepted_in_its_order(api: Caller, world: World):
    runs = [{"handler": "noop", "payload": number} for number in range(25)]
    runs[3]["delay"] = 3600
    answer = await api.post("/v1/runs:batch", {"runs": runs})
    assert answer.status == 201
    ids = answer.json["runIds"]
    assert len(set(ids)) == 25
    for number in (0, 3, 24):
        assert (await api.get(f"/v1/runs/{ids[number]}")).json["payload"] == number
    assert await world.count("run") == 24
    assert await world.count("timer") == 1


async def test_a_thousand_addresses_share_one_spec(api: Caller, world: World):
    runs = [{"handler": f"http://example.com/{number}", "payload": None} for number in range(1_000)]
    assert (await api.post("/v1/runs:batch", {"runs": runs})).status == 201
    assert await world.count("spec") == 1


async def test_runs_are_found_by_job_status_and_state(api: Caller, world: World):
    job = await api.create()
    of_job = (await api.post(f"/v1/jobs/{job['jobId']}:run")).json["runId"]
    hand = await world.worker()
    await hand.settle(await hand.claim())
    waiting = await api.submit(delay=3600)
    for query, wanted in {
        f"job={job['jobId']}": [of_job],
        "status=completed": [of_job],
        "state=succeeded": [of_job],
        "status=succeeded": [of_job],
        "status=pending": [waiting],
        "state=scheduled": [waiting],
        "status=failed": [],
        "status=pending&state=ready": [],
        "": [waiting, of_job],
        "limit=1": [waiting],
    }.items():
        found = (await api.get(f"/v1/runs?{query}")).json["items"]
        assert [run["runId"] for run in found] == wanted, query


async def test_the_same_key_twice_is_done_once(api: Caller, world: World, subtests: pytest.Subtests):
    job = await api.create()
    calls = {
        "/v1/runs": {"handler": "noop"},
        "/v1/runs:batch": {"runs": [{"handler": "noop"}, {"handler": "noop"}]},
        "/v1/jobs": PLAIN,
        "/v1/jobs:batch": {"jobs": [PLAIN, {**PLAIN, "key": "nightly", "every": 60}]},
        f"/v1/jobs/{job['jobId']}:run": {"payload": 1},
    }
    for address, body in calls.items():
        with subtests.test(address):
            first = await api.post(address, body, idempotency_key=f"key of {address}".replace(" ", "-"))
            counts = [await world.count(table) for table in ("run", "job")]
            again = await api.post(address, body, idempotency_key=f"key of {address}".replace(" ", "-"))
            assert (first.status, first.content, _lasting(first)) == (again.status, again.content, _lasting(again))
            assert [await world.count(table) for table in ("run", "job")] == counts


def _lasting(answer: Answer) -> dict[str, str]:
    """Its headers, but for the name of the request."""
    return {name: value for name, value in answer.headers.items() if name != "x-request-id"}


async def test_the_same_key_at_the_same_time_is_done_once(api: Caller, world: World):
    answers = await asyncio.gather(
        *(api.post("/v1/runs", {"handler": "noop"}, idempotency_key="same") for _ in range(20))
    )
    assert len({answer.content for answer in answers}) == 1
    assert await world.count("run") == 1


async def test_a_key_that_stood_for_something_else_is_refused(api: Caller, world: World):
    await api.post("/v1/runs", {"handler": "noop"}, idempotency_key="once")
    for address, body in (("/v1/runs", {"handler": "other"}), ("/v1/jobs", PLAIN)):
        assert (await api.post(address, body, idempotency_key="once")).field == "Idempotency-Key"
    assert await world.count("run") == 1
    assert await world.count("job") == 0


async def test_ids_carry_the_time_of_their_making(api: Caller):
    run = await api.submit()
    seen = (await api.get(f"/v1/runs/{run}")).json
    assert abs(datetime.fromisoformat(seen["createdAt"]) - datetime.now(UTC)) < timedelta(minutes=1)
    assert encode("run", decode("run", run)) == run
