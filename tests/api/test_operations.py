"""Back-fills over the API: asked for, looked at, called off."""

from datetime import datetime

import pytest

from api.calling import Answer, Caller, rows
from filling import finish
from operating import operator, settle_down
from world import World

JANUARY = {"from": "2026-01-01T00:00:00Z", "until": "2026-01-10T00:00:00Z"}


async def _ask(api: Caller, job: str, **fields) -> Answer:
    headers = {"idempotency_key": fields.pop("key")} if "key" in fields else {}
    return await api.post(f"/v1/jobs/{job}:backfill", {**JANUARY, **fields}, **headers)


@pytest.fixture
async def job(api: Caller) -> str:
    return (await api.create(name="nightly", every="PT24H"))["jobId"]


async def test_a_backfill_is_accepted_and_its_progress_told(api: Caller, world: World, job: str):
    answer = await _ask(api, job, concurrency=4, name="mend january")
    assert (answer.status, answer.json["status"]) == (202, "pending")
    where = answer.headers["location"]
    assert where == f"/v1/operations/{answer.json['operationId']}"
    assert answer.json["operationId"].startswith("op_")
    assert (answer.json["kind"], answer.json["name"], answer.json["jobId"]) == ("backfill", "mend january", job)
    assert answer.json["arguments"] == {**JANUARY, "concurrency": 4, "order": "oldest", "reprocess": "none"}
    async with operator(world) as duty:
        await settle_down(duty)
        progress = (await api.get(where)).json["progress"]
        assert progress == {
            "total": 10, "submitted": 4, "running": 4, "succeeded": 0, "failed": 0, "cancelled": 0, "skipped": 0
        }  # fmt: skip
        await finish(world, duty)
    done = (await api.get(where)).json
    assert (done["status"], done["progress"]["succeeded"]) == ("completed", 10)
    instants = [datetime.fromisoformat(done[name]) for name in ("createdAt", "startedAt", "finishedAt")]
    assert instants == sorted(instants)
    assert "plan" not in done


async def test_a_dry_run_answers_with_the_plan_and_writes_nothing(api: Caller, world: World, job: str):
    before = await rows(world)
    answer = await _ask(api, job, dryRun=True, order="newest", key="dry")
    assert (answer.status, answer.json["status"], answer.json["operationId"]) == (200, "planned", None)
    assert answer.json["plan"]["toRun"] == 10
    assert answer.json["plan"]["first"][0] == JANUARY["until"]
    assert answer.json["plan"]["last"][-1] == JANUARY["from"]
    assert await rows(world) == before
    assert (await _ask(api, job, key="dry")).status == 202  # the key is still free


async def test_the_same_key_makes_one_backfill(api: Caller, world: World, job: str):
    first, second = await _ask(api, job, key="k"), await _ask(api, job, key="k")
    assert (first.status, second.status) == (202, 202)
    assert first.json == second.json
    assert (await _ask(api, job, key="k", concurrency=2)).field == "Idempotency-Key"
    assert await world.count("operation") == 1


async def test_it_is_cancelled(api: Caller, job: str):
    where = (await _ask(api, job)).headers["location"]
    stopped = await api.post(f"{where}:cancel")
    assert (stopped.status, stopped.json["status"]) == (200, "cancelled")
    assert stopped.json["finishedAt"] is not None
    assert (await api.get("/v1/operations?status=cancelled")).json["items"] == [stopped.json]
    assert (await api.get("/v1/operations?status=running")).json["items"] == []
    assert (await _ask(api, job)).status == 202  # the range is free again


async def test_operations_are_listed_page_by_page(api: Caller, job: str):
    made = []
    for day in range(1, 4):
        at = f"2026-01-0{day}T00:00:00Z"
        made.append((await api.post(f"/v1/jobs/{job}:backfill", {"from": at, "until": at})).json["operationId"])
    first = (await api.get(f"/v1/operations?limit=2&job={job}")).json
    second = (await api.get(f"/v1/operations?limit=2&job={job}&cursor={first['nextCursor']}")).json
    assert [each["operationId"] for each in first["items"] + second["items"]] == made[::-1]
    assert second["nextCursor"] is None


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": 1001}, "concurrency"),
        ({"order": "random"}, "order"),
        ({"reprocess": "some"}, "reprocess"),
        ({"name": ""}, "name"),
        ({"name": "a\tb"}, "name"),
        ({"from": "2026-01-01T00:00:00"}, "from"),
        ({"from": "2026-01-11T00:00:00Z"}, "from"),
        ({"from": "0001-01-01T00:00:00Z"}, "from"),
        ({"until": "2099-01-01T00:00:00Z"}, "until"),
        ({"until": None}, "until"),
        ({"from": "2026-01-01T01:00:00Z", "until": "2026-01-01T02:00:00Z"}, "until"),
        ({"window": "PT1H"}, "window"),
    ],
)
async def test_what_cannot_be_is_refused_by_its_field(api: Caller, world: World, job: str, fields: dict, field: str):
    assert (await _ask(api, job, **fields)).field == field
    assert await world.count("operation") == 0


async def test_questions_that_make_no_sense_are_refused(api: Caller):
    assert (await api.get("/v1/operations?status=ready")).field == "status"
    assert (await api.get("/v1/operations?job=nonsense")).field == "job"
    assert (await api.get("/v1/operations?cursor=nonsense")).status == 400
    assert (await api.get("/v1/operations/nonsense")).status == 404
    assert (await api.get(f"/v1/operations/job_{'0' * 13}")).status == 404


async def test_a_job_that_cannot_be_filled_is_a_conflict_with_a_hint(api: Caller, job: str):
    conflicts = [await _ask(api, (await api.create())["jobId"])]
    for verb in ("pause", "cancel"):
        await api.post(f"/v1/jobs/{job}:{verb}")
        conflicts.append(await _ask(api, job))
    for conflict in conflicts:
        assert (conflict.status, conflict.headers["content-type"]) == (409, "application/problem+json")
        assert conflict.json["hint"]
