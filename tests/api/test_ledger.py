"""Occurrences and gaps over the wire."""

from api.calling import Caller

MINUTELY = {"name": "tick", "handler": "noop", "every": "PT1M"}


async def test_fire_times_to_come_are_expected_and_pages_follow_each_other(api: Caller):
    job = (await api.post("/v1/jobs", MINUTELY)).json["jobId"]
    path = f"/v1/jobs/{job}/occurrences?until=2030-01-01T00:02:00Z&limit=2"
    first = (await api.get(path)).json
    assert [each["at"] for each in first["items"]] == ["2030-01-01T00:02:00Z", "2030-01-01T00:01:00Z"]
    assert {each["status"] for each in first["items"]} == {"expected"}
    second = (await api.get(f"{path}&cursor={first['nextCursor']}")).json
    assert second["items"][0]["at"] == "2030-01-01T00:00:00Z"


async def test_the_instant_of_a_one_time_job_is_told_too(api: Caller):
    body = {"name": "once", "handler": "noop", "scheduleAt": "2030-01-01T00:00:00Z"}
    job = (await api.post("/v1/jobs", body)).json["jobId"]
    path = f"/v1/jobs/{job}/occurrences?until=2030-01-02T00:00:00Z"
    assert [(each["at"], each["status"]) for each in (await api.get(path)).json["items"]] == [
        ("2030-01-01T00:00:00Z", "expected")
    ]
    await api("DELETE", f"/v1/jobs/{job}")
    (told,) = (await api.get(path)).json["items"]
    assert (told["status"], told["reason"], told["runId"]) == ("skipped", "the job was cancelled", None)


async def test_a_status_that_does_not_exist_is_refused_with_those_that_do(api: Caller):
    job = (await api.post("/v1/jobs", MINUTELY)).json["jobId"]
    answer = await api.get(f"/v1/jobs/{job}/occurrences?status=gone")
    assert answer.status == 422
    assert "missed" in answer.json["errors"][0]["hint"]


async def test_there_are_no_gaps_at_first(api: Caller):
    assert (await api.get("/v1/gaps")).json == {"items": [], "nextCursor": None}


async def test_catch_up_and_jitter_are_told_as_they_were_written(api: Caller):
    body = {**MINUTELY, "catchUp": {"mode": "all", "window": 600}, "jitter": "PT0.5S"}
    job = (await api.post("/v1/jobs", body)).json
    assert job["catchUp"] == {"mode": "all", "window": "PT10M"}
    assert job["jitter"] == "PT0.5S"
    changed = (await api("PATCH", f"/v1/jobs/{job['jobId']}", {"catchUp": None, "jitter": None})).json
    assert "catchUp" not in changed
    assert "jitter" not in changed


async def test_windows_out_of_bounds_and_jobs_that_do_not_recur_are_refused(api: Caller):
    for wrong, field in (
        ({"catchUp": {"window": "PT1S"}}, "catchUp.window"),
        ({"catchUp": {"window": "P32D"}}, "catchUp.window"),
        ({"jitter": "PT2H"}, "jitter"),
        ({"jitter": 0}, "jitter"),
        ({"every": None, "jitter": "PT1S"}, "jitter"),
        ({"every": None, "catchUp": {}}, "catchUp"),
    ):
        answer = await api.post("/v1/jobs", {**MINUTELY, **wrong})
        assert answer.status == 422
        assert [each["field"] for each in answer.json["errors"]] == [field]
