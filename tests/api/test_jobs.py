"""Jobs through the API: made, read, changed, stopped."""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest

from api.calling import PLAIN, Caller
from world import World

LATER = "2030-01-31T09:00:00Z"


async def test_the_plain_body_works_as_it_stands(api: Caller):
    body = {
        "name": "nightly-report",
        "handler": "https://reports.example/run",
        "payload": {"team": 7},
        "scheduleAt": LATER,
        "cronExpression": "0 9 * * MON",
        "priority": 1,
        "maxRetries": 3,
        "dependsOn": [],
        "timeoutSeconds": 300,
    }
    answer = await api.post("/v1/jobs", body)
    assert answer.status == 201
    job = answer.json
    assert answer.headers["location"] == f"/v1/jobs/{job['jobId']}"
    assert job["jobId"].startswith("job_")
    assert (job["tenant"], job["status"], job["scheduleType"], job["version"]) == ("acme", "pending", "recurring", 1)
    assert job["nextRunAt"] == "2030-02-04T09:00:00Z"  # the first Monday not before scheduleAt
    assert (job["priority"], job["maxRetries"], job["timeoutSeconds"]) == ("normal", 3, 300)
    assert job["payload"] == {"team": 7}
    assert job["lastRun"] is None
    assert (await api.get(answer.headers["location"])).json == job


@pytest.mark.parametrize(
    ("fields", "kind", "following"),
    [
        ({}, "on_demand", None),
        ({"scheduleAt": LATER}, "one_time", LATER),
        ({"scheduleAt": "2030-01-31T10:00:00+01:00"}, "one_time", LATER),
        ({"every": "PT1H", "scheduleAt": LATER}, "recurring", LATER),
        ({"every": 3600, "scheduleAt": LATER}, "recurring", LATER),
        ({"every": "3600", "scheduleAt": LATER}, "recurring", LATER),
        (
            {"cronExpression": "0 9 * * *", "timezone": "Europe/Berlin", "scheduleAt": LATER},
            "recurring",
            "2030-02-01T08:00:00Z",
        ),
    ],
)
async def test_what_is_given_decides_when_a_job_runs(api: Caller, fields: dict[str, Any], kind: str, following: str):
    job = await api.create(**fields)
    assert (job["scheduleType"], job["nextRunAt"]) == (kind, following)


@pytest.mark.parametrize(
    ("given", "shown"), [(0, "high"), (1, "normal"), (2, "low"), ("bulk", "bulk"), ("Critical", "critical")]
)
async def test_priorities_are_words_or_0_1_2(api: Caller, given: Any, shown: str):
    assert (await api.create(priority=given))["priority"] == shown


async def test_durations_are_numbers_or_iso(api: Caller):
    job = await api.create(backoff={"initial": 0.5, "factor": 3, "max": "PT1H"}, timeoutSeconds=0.25, every="P1D")
    assert job["backoff"] == {"initial": "PT0.5S", "factor": 3, "max": "PT1H"}
    assert (job["timeoutSeconds"], job["every"]) == (0.25, "P1D")


async def test_instants_are_answered_in_utc(api: Caller):
    job = await api.create(scheduleAt="2030-01-31T12:00:00.5+03:00")
    assert job["scheduleAt"] == job["nextRunAt"] == "2030-01-31T09:00:00.500Z"
    for name in ("createdAt", "updatedAt"):
        assert job[name].endswith("Z")
        assert abs(datetime.fromisoformat(job[name]) - datetime.now(UTC)) < timedelta(minutes=1)


async def test_a_change_replaces_what_it_names_and_keeps_the_rest(api: Caller):
    job = await api.create(every="PT1H", labels={"team": "growth"}, payload={"a": 1, "b": 2}, maxRetries=7)
    answer = await api("PATCH", f"/v1/jobs/{job['jobId']}", {"name": "other", "payload": {"a": 3}})
    changed = answer.json
    assert (changed["name"], changed["payload"], changed["version"]) == ("other", {"a": 3}, 2)
    kept = ("jobId", "every", "labels", "maxRetries", "handler", "createdAt", "priority", "timeoutSeconds")
    assert {name: changed[name] for name in kept} == {name: job[name] for name in kept}


async def test_a_new_cron_expression_keeps_its_zone(api: Caller):
    job = await api.create(cronExpression="0 9 * * *", timezone="Europe/Berlin")
    changed = (await api("PATCH", f"/v1/jobs/{job['jobId']}", {"cronExpression": "0 10 * * *"})).json
    assert (changed["cronExpression"], changed["timezone"]) == ("0 10 * * *", "Europe/Berlin")


async def test_a_new_recurrence_takes_the_place_of_the_old_one(api: Caller):
    job = await api.create(cronExpression="0 9 * * *", timezone="Europe/Berlin")
    address = f"/v1/jobs/{job['jobId']}"
    changed = (await api("PATCH", address, {"every": "PT5M"})).json
    assert changed["every"] == "PT5M"
    assert not changed.keys() & {"cronExpression", "timezone"}
    changed = (await api("PATCH", address, {"cronExpression": "@daily"})).json
    assert (changed["cronExpression"], changed["timezone"]) == ("@daily", "UTC")
    assert "every" not in changed


async def test_null_takes_a_field_away(api: Caller):
    job = await api.create(cronExpression="0 9 * * *", timezone="Europe/Berlin", labels={"a": "b"}, payload=1)
    address = f"/v1/jobs/{job['jobId']}"
    changed = (await api("PATCH", address, {"labels": None, "payload": None})).json
    assert (changed["labels"], changed["payload"]) == ({}, None)
    changed = (await api("PATCH", address, {"cronExpression": None})).json
    assert (changed["scheduleType"], changed["nextRunAt"]) == ("on_demand", None)
    assert not changed.keys() & {"cronExpression", "timezone"}
    assert (await api("PATCH", address, {"name": None})).field == "name"


async def test_taking_away_what_is_not_there_changes_nothing(api: Caller):
    job = await api.create(cronExpression="0 9 * * *", timezone="Europe/Berlin")
    changed = (await api("PATCH", f"/v1/jobs/{job['jobId']}", {"every": None})).json
    assert (changed["cronExpression"], changed["timezone"]) == ("0 9 * * *", "Europe/Berlin")


async def test_a_key_is_put_once_and_then_replaced(api: Caller):
    address = "/v1/jobs/by-key/team/load.daily"
    first = await api("PUT", address, {**PLAIN, "every": 60, "labels": {"a": "b"}})
    again = await api("PUT", "/v1/jobs/by-key/team%2Fload.daily", {**PLAIN, "every": 120, "key": "team/load.daily"})
    assert (first.status, again.status) == (201, 200)
    assert again.json["jobId"] == first.json["jobId"]
    assert (again.json["key"], again.json["every"], again.json["labels"]) == ("team/load.daily", "PT2M", {})


async def test_a_key_that_contradicts_the_address_is_refused(api: Caller):
    assert (await api("PUT", "/v1/jobs/by-key/one", {**PLAIN, "key": "two"})).field == "key"


async def test_the_same_key_is_not_created_twice(api: Caller):
    await api.create(key="load")
    answer = await api.post("/v1/jobs", {**PLAIN, "key": "load"})
    assert answer.status == 409
    assert "PUT" in answer.json["hint"]


async def test_a_batch_is_created_in_its_order(api: Caller):
    jobs = [{**PLAIN, "name": str(number), "payload": number} for number in range(5)]
    jobs[1] |= {"cronExpression": "0 9 * * *", "key": "nightly"}
    jobs[3] |= {"scheduleAt": "2030-01-31T09:00:00Z"}
    answer = await api.post("/v1/jobs:batch", {"jobs": jobs})
    assert answer.status == 201
    made = [(await api.get(f"/v1/jobs/{each}")).json for each in answer.json["jobIds"]]
    assert [(job["name"], job["payload"]) for job in made] == [(str(number), number) for number in range(5)]
    kinds = ["on_demand", "recurring", "on_demand", "one_time", "on_demand"]
    assert [job["scheduleType"] for job in made] == kinds
    assert (made[1]["nextRunAt"] is not None, made[3]["nextRunAt"]) == (True, "2030-01-31T09:00:00Z")


async def test_a_batch_with_a_key_that_is_taken_creates_nothing_and_says_which(api: Caller):
    await api.create(key="nightly")
    answer = await api.post("/v1/jobs:batch", {"jobs": [PLAIN, {**PLAIN, "key": "nightly"}]})
    assert answer.status == 409
    assert "'nightly'" in answer.json["detail"]
    assert answer.json["hint"]
    assert len((await api.get("/v1/jobs")).json["items"]) == 1


async def test_a_job_is_paused_resumed_and_cancelled(api: Caller):
    job = await api.create(every=60)
    address = f"/v1/jobs/{job['jobId']}"
    paused = (await api.post(f"{address}:pause")).json
    assert (paused["status"], paused["nextRunAt"]) == ("paused", None)
    assert (await api.post(f"{address}:pause")).json["status"] == "paused"
    resumed = (await api.post(f"{address}:resume")).json
    assert resumed["status"] == "pending"
    assert resumed["nextRunAt"]
    cancelled = (await api.post(f"{address}:cancel")).json
    assert (cancelled["status"], cancelled["nextRunAt"]) == ("cancelled", None)
    assert (await api("DELETE", address)).json["status"] == "cancelled"
    assert (await api.get(address)).json["status"] == "cancelled"


async def test_a_cancelled_job_can_be_neither_changed_nor_run(api: Caller, subtests: pytest.Subtests):
    job = await api.create(every=60)
    address = f"/v1/jobs/{job['jobId']}"
    assert (await api("DELETE", address)).status == 200
    for method, verb, body in (
        ("POST", ":pause", None),
        ("POST", ":resume", None),
        ("POST", ":run", None),
        ("PATCH", "", {"name": "x"}),
    ):
        with subtests.test(f"{method} {verb}"):
            answer = await api(method, address + verb, body)
            assert answer.status == 409
            assert answer.json["hint"]


async def test_an_operator_lists_the_jobs_of_any_tenant_and_anybody_else_its_own(
    guarded: Caller, stranger: Caller, world: World
):
    theirs = Caller(guarded.app, stranger.key)
    job, _ = (await theirs.create(name="theirs"))["jobId"], await guarded.create(name="mine")
    (found,) = (await guarded.get("/v1/jobs?tenant=rival")).json["items"]
    assert (found["jobId"], found["tenant"]) == (job, "rival")
    for name, caller in (("acme", guarded), ("rival", theirs)):
        assert [each["tenant"] for each in (await caller.get(f"/v1/jobs?tenant={name}")).json["items"]] == [name]
    assert [each["name"] for each in (await guarded.get("/v1/jobs")).json["items"]] == ["mine"]
    assert (await theirs.get("/v1/jobs?tenant=acme")).status == 404
    assert (await guarded.get("/v1/jobs?tenant=nobody")).status == 404


async def test_jobs_are_listed_page_by_page_newest_first(api: Caller):
    made = [(await api.create(name=f"job {number}"))["jobId"] for number in range(5)]
    seen, address = [], "/v1/jobs?limit=2"
    while True:
        page = (await api.get(address)).json
        seen += [job["jobId"] for job in page["items"]]
        if page["nextCursor"] is None:
            break
        assert len(page["items"]) == 2
        address = f"/v1/jobs?limit=2&cursor={page['nextCursor']}"
    assert seen == made[::-1]


async def test_jobs_are_found_by_name_label_status_and_type(api: Caller, world: World):
    growth = await api.create(name="a", labels={"team": "growth", "tier": "1"}, every=60)
    other = await api.create(name="b", labels={"team": "sales"})
    await api.post(f"/v1/jobs/{growth['jobId']}:pause")
    for query, wanted in {
        "name=a": [growth],
        "label=team=sales": [other],
        "label=team=growth": [growth],
        "status=paused": [growth],
        "status=pending": [other],
        "scheduleType=recurring": [growth],
        "scheduleType=one_time": [],
        "name=a&label=team=sales": [],
    }.items():
        found = (await api.get(f"/v1/jobs?{query}")).json["items"]
        assert [job["jobId"] for job in found] == [job["jobId"] for job in wanted], query


async def test_a_job_is_read_by_its_key_and_a_cancelled_one_gives_it_up(api: Caller):
    assert (await api("GET", "/v1/jobs/by-key/team/load")).status == 404
    first = (await api("PUT", "/v1/jobs/by-key/team/load", PLAIN)).json["jobId"]
    assert (await api("GET", "/v1/jobs/by-key/team/load")).json["jobId"] == first
    taken = await api.post("/v1/jobs", {**PLAIN, "key": "team/load"})
    assert taken.status == 409
    assert (await api("DELETE", f"/v1/jobs/{first}")).json["key"] == "team/load"
    assert (await api("GET", "/v1/jobs/by-key/team/load")).status == 404
    second = await api("PUT", "/v1/jobs/by-key/team/load", PLAIN)
    assert second.status == 201
    assert second.json["jobId"] != first
    former = (await api("GET", f"/v1/jobs/{first}")).json
    assert (former["status"], former["key"]) == ("cancelled", None)
    await api("DELETE", f"/v1/jobs/{second.json['jobId']}")
    assert (await api.post("/v1/jobs", {**PLAIN, "key": "team/load"})).status == 201


@pytest.mark.parametrize("key", ["executions", "occurrences", "no key!", "x" * 64])
async def test_any_key_can_be_asked_for(api: Caller, key: str):
    assert (await api("GET", f"/v1/jobs/by-key/{quote(key)}")).json["detail"] == "there is no such job"
