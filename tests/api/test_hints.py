"""Names that no call has are answered with the one that was meant; what is too large, with how large it may be."""

import asyncio
import json
import re
import socket
from typing import Any

import pytest

from api.calling import PLAIN, Caller
from foliot.api.head import LARGEST
from foliot.api.reading import LONGEST_QUERY
from foliot.api.server import serve
from foliot.services.insights import Insights
from foliot.store.database import LOOKING
from world import World

MEANT = (
    ({"cron": "0 9 * * *"}, "cron", "cronExpression"),
    ({"retries": 3}, "retries", "maxRetries"),
    ({"timeout": 3}, "timeout", "timeoutSeconds"),
    ({"max_retries": 3}, "max_retries", "maxRetries"),
    ({"Name": "x"}, "Name", "name"),
    ({"backoff": {"inital": 1}}, "backoff.inital", "initial"),
    ({"handler": {"type": "http", "uri": "http://x"}}, "handler.uri", "url"),
    ({"retry": [{"on": ["http:404"], "nevr": True}]}, "retry[0].nevr", "never"),
)


async def test_an_unknown_name_is_answered_with_the_one_that_was_meant(api: Caller, subtests: pytest.Subtests):
    job = (await api.create())["jobId"]
    for fields, field, meant in MEANT:
        with subtests.test(field):
            answers = [
                await api.post("/v1/jobs", {**PLAIN, **fields}),
                await api("PATCH", f"/v1/jobs/{job}", fields),
                await api.post("/v1/jobs:batch", {"jobs": [PLAIN, {**PLAIN, **fields}]}),
            ]
            assert [each.field for each in answers] == [field, field, f"jobs[1].{field}"]
            for each in answers:
                assert "did you mean" in each.json["hint"]
                assert meant in each.json["hint"]


async def test_so_is_an_unknown_parameter_and_what_is_like_nothing_is_not(api: Caller):
    answer = await api.get("/v1/jobs?stauts=pending")
    assert (answer.field, answer.json["hint"]) == ("stauts", "did you mean status?")
    answer = await api.post("/v1/jobs", {**PLAIN, "uid": 0})  # what ran as root elsewhere
    assert (answer.field, "did you mean" in answer.json["hint"]) == ("uid", False)


async def test_a_fraction_where_a_whole_number_belongs_is_told(api: Caller):
    answer = await api("POST", "/v1/jobs", raw=b'{"name":"x","handler":"f","maxRetries":3.0}')
    assert answer.field == "maxRetries"
    assert "without a fraction" in answer.json["hint"]


WRONG = (
    ({"maxRetries": -1}, "maxRetries", "is too small", "at least 0"),
    ({"timeoutSeconds": 700_000}, "timeoutSeconds", "is too large", "at most 604,800"),
    ({"maxRetries": "many"}, "maxRetries", "is text", "write a whole number"),
    ({"labels": ["growth"]}, "labels", "is a list", "write an object"),
    ({"scheduleAt": 7}, "scheduleAt", "is a whole number", "write instants like 2026-01-31T09:00:00Z"),
)


async def test_a_value_that_cannot_be_is_told_in_words_for_people(api: Caller, subtests: pytest.Subtests):
    for fields, field, wrong, right in WRONG:
        with subtests.test(field, wrong=wrong):
            told = (await api.post("/v1/jobs", {**PLAIN, **fields})).json["errors"][0]
            assert (told["field"], told["message"]) == (field, wrong)
            assert told["hint"].startswith(right)


LISTS = ("jobs?status=", "jobs?scheduleType=", "runs?status=", "runs?state=", "workers?state=", "operations?status=")


@pytest.mark.parametrize("path", LISTS)
async def test_a_word_that_no_list_knows_is_answered_with_those_that_it_does(api: Caller, path: str):
    told = (await api.get(f"/v1/{path}nonsense")).json["errors"][0]
    assert re.fullmatch(r"one of [a-z_]+(, [a-z_]+)+", told["hint"])
    for word in told["hint"].removeprefix("one of ").split(", "):
        assert (await api.get(f"/v1/{path}{word}")).status == 200


async def test_the_plain_body_works_as_it_stands(api: Caller):
    parent = await api.create()
    plain = {
        "name": "nightly-report",
        "handler": "https://reports.internal/run",
        "payload": {"team": 7},
        "priority": 1,
        "maxRetries": 3,
        "timeoutSeconds": 300,
    }
    timed = {"scheduleAt": "2030-01-01T09:00:00Z", "cronExpression": "0 9 * * MON", "dependsOn": []}
    for more in (timed, {"dependsOn": [parent["jobId"]]}, {"scheduleAt": "2030-01-01T09:00:00Z"}):
        made = await api.post("/v1/jobs", {**plain, **more})
        assert made.status == 201, made.content
        assert made.json["priority"] == "normal"


async def test_a_query_has_an_end(api: Caller):
    answer = await api.get("/v1/jobs?name=" + "x" * LONGEST_QUERY)
    assert (answer.status, answer.json["type"]) == (413, "urn:foliot:problem:too-large")


async def test_a_search_has_an_end_and_what_changes_something_has_longer(
    guarded: Caller, monkeypatch: pytest.MonkeyPatch
):
    async def search(insights: Insights, *_: Any, **__: Any) -> None:
        async with insights._database.connection() as connection:
            await connection.fetch("SELECT pg_sleep(60)")

    with monkeypatch.context() as slowly:
        slowly.setattr("foliot.store.database.LOOK", "20ms")
        slowly.setattr(Insights, "jobs", search)
        answer = await guarded.get("/v1/jobs")
    assert (answer.status, answer.json["type"]) == (503, "urn:foliot:problem:unavailable")
    assert "too much to look through" in answer.json["detail"]
    assert "since" in answer.json["hint"]
    assert LOOKING.get()
    await guarded.create()
    assert not LOOKING.get()
    assert (await guarded.get("/v1/jobs")).status == 200, "the connections are as good as new"


async def test_a_head_without_end_is_cut_off_and_a_large_one_is_not(api: Caller, world: World):
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    stop = asyncio.Event()
    serving = asyncio.create_task(serve(api.app, listener, stop))
    try:
        for size, status in ((LARGEST // 2, b"200"), (64 * LARGEST, b"431")):
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(f"GET /v1/jobs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {api.key}\r\nx-long: ".encode())
            writer.write(b"x" * size)
            if status == b"200":
                writer.write(b"\r\n\r\n")
            async with asyncio.timeout(30):
                line = await reader.readline()
                rest = await reader.read(2_000)
            assert line.split()[1] == status
            if status == b"431":
                assert json.loads(rest.partition(b"\r\n\r\n")[2])["hint"]
            writer.close()
    finally:
        stop.set()
        await serving
