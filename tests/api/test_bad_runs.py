"""What is wrong with a run, a batch, a query or a key."""

import pytest

from api.calling import Caller, rows
from world import World

BAD = {
    "an unknown field": ({"name": "x"}, "name"),
    "no handler": ({"handler": 7}, "handler"),
    "argv as a string": ({"handler": {"type": "command", "argv": "/bin/report"}}, "handler.argv"),
    "an empty argv": ({"handler": {"type": "command", "argv": []}}, "handler.argv"),
    "NUL in a word": ({"handler": {"type": "command", "argv": ["/bin/report", "\0"]}}, "handler.argv[1]"),
    "an environment": ({"handler": {"type": "command", "argv": ["/bin/report"], "env": {"A": "1"}}}, "handler.env"),
    "a naive time": ({"runAt": "2026-01-31T09:00:00"}, "runAt"),
    "31 February": ({"runAt": "2026-02-31T09:00:00Z"}, "runAt"),
    "an instant beyond the calendar": ({"runAt": "9999-12-31T23:59:59-12:00"}, "runAt"),
    "a negative delay": ({"delay": -1}, "delay"),
    "an endless delay": ({"delay": "P999999999D"}, "delay"),
    "a delay of months": ({"delay": "P1Y"}, "delay"),
    "two beginnings": ({"delay": 1, "runAt": "2030-01-01T00:00:00Z"}, "delay"),
    "a large payload": ({"payload": "x" * 262_144}, "payload"),
    "negative retries": ({"maxRetries": -1}, "maxRetries"),
    "an unknown priority": ({"priority": "urgent"}, "priority"),
    "a bad queue": ({"queue": "UPPER"}, "queue"),
    "a limit of nothing": ({"concurrency": {"limit": 0}}, "concurrency.limit"),
    "a payload without the limit key": (
        {"concurrency": {"limit": 1, "key": "payload.account"}, "payload": {"acount": 7}},
        "payload",
    ),
    "no payload for the limit key": ({"concurrency": {"limit": 1, "key": "payload.account"}}, "payload"),
    "an overlap, which only fire times have": ({"overlap": "queue"}, "overlap"),
}
BY_HAND = {
    name: case for name, case in BAD.items() if not case[0].keys() & {"handler", "maxRetries", "queue", "concurrency"}
}

QUERIES = {
    "limit=0": "limit",
    "limit=501": "limit",
    "limit=-1": "limit",
    "limit=many": "limit",
    "limit=": "limit",
    "limit=1&limit=2": "limit",
    "cursor=c_%00": "cursor",
    "colour=blue": "colour",
    "status=nonsense": "status",
    "status=%00": "status",
}
OF_JOBS = QUERIES | {
    "label=team": "label",
    "label=team=%00": "label",
    "name=%00": "name",
    "scheduleType=sometimes": "scheduleType",
    "status=skipped": "status",
}
OF_RUNS = QUERIES | {"job=nonsense": "job", "job=run_0000000000000": "job", "state=nonsense": "state"}


async def test_every_fault_of_a_run_is_told_by_its_field_and_nothing_is_written(
    api: Caller, world: World, subtests: pytest.Subtests
):
    before = await rows(world)
    for fault, (fields, field) in BAD.items():
        with subtests.test(fault):
            assert (await api.post("/v1/runs", {"handler": "noop", **fields})).field == field
    assert await rows(world) == before


async def test_one_bad_run_spoils_its_batch_and_is_named(api: Caller, world: World, subtests: pytest.Subtests):
    before = await rows(world)
    good = {"handler": "noop"}
    for fault, (fields, field) in BAD.items():
        with subtests.test(fault):
            answer = await api.post("/v1/runs:batch", {"runs": [good, good, {**good, **fields}]})
            assert answer.field == f"runs[2].{field}"
    left = await rows(world)
    assert {**left, "spec": before["spec"], "lane": before["lane"]} == before  # the good ones' spec may be known


async def test_a_run_by_hand_is_checked_like_any_other(api: Caller, world: World, subtests: pytest.Subtests):
    made, before = await api.create(), await rows(world)
    for fault, (fields, field) in BY_HAND.items():
        with subtests.test(fault):
            assert (await api.post(f"/v1/jobs/{made['jobId']}:run", fields)).field == field
    assert await rows(world) == before


async def test_a_batch_takes_one_to_ten_thousand(api: Caller):
    assert (await api.post("/v1/runs:batch", {"runs": []})).field == "runs"
    assert (await api.post("/v1/runs:batch", {"runs": [{"handler": "f"}] * 10_001})).field == "runs"
    assert (await api.post("/v1/runs:batch", {})).field == "runs"


@pytest.mark.parametrize(("address", "queries"), [("/v1/jobs", OF_JOBS), ("/v1/runs", OF_RUNS)])
async def test_bad_queries_are_told_by_their_parameter(
    api: Caller, address: str, queries: dict[str, str], subtests: pytest.Subtests
):
    for query, field in queries.items():
        with subtests.test(query):
            assert (await api.get(f"{address}?{query}")).field == field


async def test_bad_pages_of_attempts_are_told_too(api: Caller, subtests: pytest.Subtests):
    made, run = await api.create(), await api.submit()
    for address in (f"/v1/jobs/{made['jobId']}/executions", f"/v1/runs/{run}/attempts"):
        for query in ("limit=0", "limit=501", "cursor=1&cursor=2"):
            with subtests.test(f"{address}?{query}"):
                assert (await api.get(f"{address}?{query}")).field == query.partition("=")[0]


async def test_calls_without_parameters_refuse_them(api: Caller):
    made = await api.create()
    assert (await api.get(f"/v1/jobs/{made['jobId']}?verbose=1")).field == "verbose"
    assert (await api.post("/v1/runs?dry=1", {"handler": "noop"})).field == "dry"


@pytest.mark.parametrize("key", ["", " ", "x" * 201, "späť", "tab\there"])
async def test_an_idempotency_key_is_visible_ascii(api: Caller, world: World, key: str):
    before = await rows(world)
    answer = await api.post("/v1/runs", {"handler": "noop"}, idempotency_key=key.encode().decode("latin-1"))
    assert answer.field == "Idempotency-Key"
    left = await rows(world)
    assert left["run"] == before["run"]


@pytest.mark.parametrize("key", ["%00", "a%00b", "no%20spaces", "x" * 64, "-first", "%C3%A4"])
async def test_a_key_in_the_address_is_checked_before_it_is_looked_up(api: Caller, key: str):
    assert (await api("PUT", f"/v1/jobs/by-key/{key}", {"name": "x", "handler": "f"})).field == "key"


async def test_ids_that_are_none_are_as_unknown_as_any(api: Caller, subtests: pytest.Subtests):
    for odd in ("job_", "job_%00", "JOB_0000000000000", "run_0000000000000", "1", "job_zzzzzzzzzzzzz", "%F0%9F%8F%A6"):
        with subtests.test(odd):
            assert (await api.get(f"/v1/jobs/{odd}")).status == 404
            assert (await api.get(f"/v1/runs/{odd}{odd}")).status == 404
