"""Dead letters over the API: filtered, read, replayed, discarded, retried."""

from typing import Any

import pytest

from api.calling import Caller, rows
from burying import bury, names
from foliot.domain.ids import encode
from foliot.domain.outcome import Ending, Outcome
from operating import operator, settle_down
from world import World

REPLAY, DISCARD = "/v1/dead-letters:replay", "/v1/dead-letters:discard"


async def test_they_are_found_by_what_they_died_of_and_read_whole(api: Caller, world: World):
    (run,) = await bury(world)
    await bury(world, 1, Outcome.dead(Ending.TIMED_OUT, "timed out after 3 s", "timeout"))
    found = (await api.get("/v1/dead-letters?errorClass=ValueError&text=BOO&queue=default&handler=noop")).json["items"]
    assert [(each["runId"], each["errorClass"], each["attempts"]) for each in found] == [(*names(run), "ValueError", 1)]
    assert "payload" not in found[0]
    whole = (await api.get(f"/v1/dead-letters/{names(run)[0]}")).json
    assert (whole["payload"], whole["errorMessage"], len(whole["executions"])) == ({}, "boom", 1)
    assert whole["executions"][0]["errorClass"] == "ValueError"
    assert (await api.get("/v1/dead-letters?since=2099-01-01T00:00:00Z")).json["items"] == []


async def test_by_id_they_are_done_at_once(api: Caller, world: World):
    first, second = await bury(world, 2)
    answer = await api.post(REPLAY, {"runIds": [*names(first), *names(first), encode("run", 1)]})
    assert (answer.status, answer.json["runIds"], answer.json["operation"]) == (200, names(first), None)
    assert [each["runId"] for each in answer.json["refused"]] == [encode("run", 1)]
    assert (await api.post(DISCARD, {"runIds": names(second)})).json["runIds"] == names(second)
    assert (await api.get(f"/v1/runs/{names(second)[0]}")).json["state"] == "discarded"


async def test_by_filter_they_become_an_operation(api: Caller, world: World):
    await bury(world, 3)
    body = {"filter": {"errorClass": "ValueError"}, "perSecond": 5000, "name": "mend"}
    before = await rows(world)
    planned = await api.post(REPLAY, {**body, "dryRun": True}, idempotency_key="k")
    assert (planned.status, planned.json["operation"]["progress"]["total"]) == (200, 3)
    assert await rows(world) == before
    answer = await api.post(REPLAY, body, idempotency_key="k")
    assert (answer.status, answer.json["operation"]["status"]) == (202, "pending")
    assert (await api.post(REPLAY, body, idempotency_key="k")).json == answer.json
    made = answer.json["operation"]
    assert (made["kind"], made["name"], made["jobId"]) == ("replay", "mend", None)
    assert made["arguments"] == {"filter": body["filter"], "perSecond": 5000, "concurrency": 1000}
    where = answer.headers["location"]
    async with operator(world) as duty:
        await settle_down(duty)
    assert (await api.get(where)).json["progress"]["submitted"] >= 1
    assert (await api.post(f"{where}:cancel")).json["status"] == "cancelled"
    swept = await api.post(DISCARD, {"filter": {}})
    assert (swept.status, swept.json["operation"]["kind"]) == (202, "discard")


async def test_one_run_is_retried(api: Caller, world: World):
    job = await api.create()
    (run,) = await bury(world)
    where = f"/v1/runs/{names(run)[0]}:retry"
    again = await api.post(where)
    assert (again.status, again.json["state"], again.json["attempts"]) == (200, "ready", 1)
    assert (await api.post(where)).status == 409
    assert (await api.post(f"/v1/runs/{job['jobId']}:retry")).status == 404


WRONG: list[tuple[Any, str]] = [
    ({}, "runIds"),
    ({"runIds": [], "filter": {}}, "runIds"),
    ({"runIds": ["run_x"]}, "runIds[0]"),
    ({"runIds": ["run_0000000000000"] * 1001}, "runIds"),
    ({"runIds": ["run_0000000000000"], "filter": {}}, "runIds"),
    ({"runIds": ["run_0000000000000"], "dryRun": True}, "dryRun"),
    ({"runIds": ["run_0000000000000"], "perSecond": 3}, "perSecond"),
    ({"filter": {"job": "job_x"}}, "filter.job"),
    ({"filter": {"nope": 1}}, "filter.nope"),
    ({"filter": {"text": "a\0b"}}, "filter.text"),
    ({"filter": {"since": "2026-02-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"}}, "filter.since"),
    ({"filter": {"since": "2026-02-01T00:00:00"}}, "filter.since"),
    ({"filter": {}, "perSecond": 0}, "perSecond"),
    ({"filter": {}, "perSecond": 10001}, "perSecond"),
    ({"filter": {}, "concurrency": 1001}, "concurrency"),
    ({"filter": {}, "name": "a\nb"}, "name"),
]


async def test_what_cannot_be_says_which_field_and_writes_nothing(api: Caller, world: World, subtests: pytest.Subtests):
    await bury(world)
    before = await rows(world)
    for body, field in WRONG:
        with subtests.test(f"{field}: {str(body)[:80]}"):
            assert (await api.post(REPLAY, body)).field == field
    assert await rows(world) == before


WRONG_RULES: list[tuple[Any, str]] = [
    ([{"on": []}], "retry[0].on"),
    ([{"on": ["A"]}, {"on": ["http:9"]}], "retry[1].on[0]"),
    ([{"on": ["A"], "never": True, "maxRetries": 1}], "retry[0].never"),
    ([{"on": ["A"], "maxRetries": 1001}], "retry[0].maxRetries"),
    ([{"on": ["A"], "backoff": {"max": "P31D"}}], "retry[0].backoff.max"),
    ([{"on": ["A"], "tries": 1}], "retry[0].tries"),
    ([{"on": ["A"]}] * 21, "retry"),
    ([{}], "retry[0].on"),
]


async def test_a_wrong_rule_about_retries_says_where(api: Caller, subtests: pytest.Subtests):
    for retry, field in WRONG_RULES:
        with subtests.test(field):
            assert (await api.post("/v1/jobs", {"name": "x", "handler": "noop", "retry": retry})).field == field


async def test_rules_about_retries_are_kept_shown_and_taken_away(api: Caller):
    rules = [
        {"on": ["ConnectionError", "http:503"], "maxRetries": 10, "backoff": {"initial": "PT5S", "max": "PT1M"}},
        {"on": ["ValueError"], "never": True},
    ]
    job = await api.create(retry=rules)
    assert job["retry"] == [{**rules[0], "backoff": {"initial": "PT5S", "factor": 2.0, "max": "PT1M"}}, rules[1]]
    assert (await api("PATCH", f"/v1/jobs/{job['jobId']}", {"maxRetries": 1})).json["retry"] == job["retry"]
    assert "retry" not in (await api("PATCH", f"/v1/jobs/{job['jobId']}", {"retry": None})).json
    assert "retry" not in await api.create()
